"""Each operator is one undo step: undone nothing of it is left, redone it is there again."""

import bpy
import numpy as np
import pytest
from rigs import make_capture, make_cloud, make_rig

from gaussianimate.core.formats import write_sequence
from gaussianimate.core.skinning.skin import make_skin
from gaussianimate.gaussianimate_addon.capture_object import capture_from_point_cloud
from gaussianimate.gaussianimate_addon.rig_object import apply_rig
from gaussianimate.gaussianimate_addon.subject import active_splats

ops = bpy.ops.gaussianimate
CLOUD = make_cloud(count=300, degree=0)
RIG = make_rig(CLOUD, frames=4)


@pytest.fixture(scope="module")
def sequence(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bar")
    capture = make_capture(CLOUD, RIG)
    write_sequence((capture.load_cloud(frame) for frame in range(4)), folder, "bar", 1, 4)
    return folder


def state():
    """What the user sees: objects, where they are, modifiers, actions, scene time, splats."""
    scene, found = bpy.context.scene, {}
    for object in scene.objects:
        splats = None
        if object.type == "POINTCLOUD":
            splats = np.empty(3 * len(object.data.points), np.float32)
            object.data.attributes["scale"].data.foreach_get("vector", splats)
        animation = object.animation_data
        found[object.name] = (
            tuple(round(v, 5) for row in object.matrix_world for v in row),
            tuple((m.name, m.show_viewport) for m in object.modifiers),
            animation.action.name if animation and animation.action else None,
            object.mode,
            object.hide_get(),
            None if splats is None else float(splats.sum()),
            [tuple(b.matrix_basis.to_quaternion()) for b in object.pose.bones] if object.pose else None,
        )
    return found, (scene.frame_start, scene.frame_end, scene.render.fps)


def check(operator, **settings):
    """Call with undo as a button does, undo, redo; compare what the user sees."""
    before = state()
    bpy.ops.ed.undo_push(message="before")
    assert operator("EXEC_DEFAULT", True, **settings) == {"FINISHED"}
    after = state()
    assert after != before
    bpy.ops.ed.undo()
    assert state() == before
    bpy.ops.ed.redo()
    assert state() == after


@pytest.fixture
def imported(empty_scene, sequence):
    ops.import_capture(filepath=str(sequence), up="Z")
    bpy.context.view_layer.update()


@pytest.fixture
def rigged(imported):
    """A rig of known bones, applied by the bridge: what is tested here is what the operators do with it."""
    from gaussianimate.gaussianimate_addon.motion_switch import remember_replay

    splats = active_splats(bpy.context)
    capture = capture_from_point_cloud(splats)
    assert capture.point_count == len(RIG.rest)
    skin = make_skin(RIG.rest, RIG.indices, RIG.weights)
    armature = apply_rig(bpy.context, splats, RIG, skin)
    remember_replay(armature)
    bpy.context.view_layer.objects.active = armature


def test_import(empty_scene, sequence):
    check(ops.import_capture, filepath=str(sequence), up="Y")


def test_import_twice_and_back(empty_scene, sequence):
    check(ops.import_capture, filepath=str(sequence))
    check(ops.import_capture, filepath=str(sequence))
    bpy.ops.ed.undo()
    bpy.ops.ed.undo()
    bpy.ops.ed.undo()
    assert not bpy.context.scene.objects


def test_capture_from_object(empty_scene):
    bpy.ops.mesh.primitive_cube_add()
    bpy.context.scene.frame_end = 3
    check(ops.capture_from_object, splat_count=100)


def test_build_rig(imported):
    check(ops.build_rig, max_bones=3)


def test_set_motion(rigged):
    check(ops.set_motion, motion="POSE")
    check(ops.set_motion, motion="REPLAY")


def test_reset_pose(rigged):
    ops.set_motion(motion="POSE")
    bpy.context.active_object.pose.bones[0].rotation_quaternion = (0.8, 0.6, 0, 0)
    bpy.context.view_layer.update()
    check(ops.reset_pose)


def test_apply_transform(imported):
    bpy.context.active_object.scale = (2, 2, 2)
    bpy.context.view_layer.update()
    check(ops.apply_transform)


def test_rebind(imported):
    bpy.context.active_object.scale = (2, 2, 2)
    bpy.ops.object.transform_apply(location=False, rotation=False, scale=True)
    bpy.context.view_layer.update()
    check(ops.rebind)


def test_baking_changes_nothing(rigged, tmp_path):
    bpy.context.scene.frame_set(3)
    before = state()
    bpy.ops.ed.undo_push(message="before")
    ops.bake_ply("EXEC_DEFAULT", True, filepath=str(tmp_path) + "/", frame_start=1, frame_end=2)
    assert state() == before and bpy.context.scene.frame_current == 3
