"""Rigged objects among others: copies, instances, collections, animated, hidden and linked objects."""

import bpy
import numpy as np
import pytest
from compare import evaluated
from mathutils import Matrix
from rigs import make_capture, make_cloud, make_rig, make_skin_of

from gaussianimate.core.deform.transforms import transform_cloud
from gaussianimate.core.errors import CaptureError, RigError
from gaussianimate.gaussianimate_addon import rig_object
from gaussianimate.gaussianimate_addon.apply_transform import apply_transform
from gaussianimate.gaussianimate_addon.bake import bake_sequence, pose_steps, posed_cloud, rest_splats
from gaussianimate.gaussianimate_addon.capture_frames import frames_object
from gaussianimate.gaussianimate_addon.capture_object import capture_from_point_cloud, create_capture_object
from gaussianimate.gaussianimate_addon.deformer import bind_is_stale, deformer_armature, rebind
from gaussianimate.gaussianimate_addon.motion_switch import remember_replay
from gaussianimate.gaussianimate_addon.rig_object import apply_rig

CLOUD = make_cloud(count=200, degree=1)
RIG = make_rig(CLOUD, frames=4)
SKIN = make_skin_of(RIG)
CAPTURE = make_capture(CLOUD, RIG)


@pytest.fixture
def capture(scene):
    return create_capture_object(bpy.context, CAPTURE, CAPTURE.load_cloud(0), "z")


@pytest.fixture
def rigged(capture):
    remember_replay(apply_rig(bpy.context, capture, RIG, SKIN))
    return capture


def duplicate(*objects, linked=False):
    """Duplicate as Shift+D does (Alt+D where ``linked``); return the copies of the splats."""
    for object in bpy.context.view_layer.objects:
        object.select_set(object in objects)
    bpy.context.view_layer.objects.active = objects[0]
    bpy.ops.object.duplicate(linked=linked)
    return next(o for o in bpy.context.selected_objects if o.type == "POINTCLOUD")


def assert_plays(object, world=None):
    """Every frame is the captured one under ``world`` (4, 4)."""
    for frame in range(4):
        bpy.context.scene.frame_set(frame + 1)
        graph = bpy.context.evaluated_depsgraph_get()
        shown = transform_cloud(evaluated(object), np.array(object.evaluated_get(graph).matrix_world))
        expected = transform_cloud(CAPTURE.load_cloud(frame), np.eye(4) if world is None else world)
        np.testing.assert_allclose(shown.positions, expected.positions, atol=2e-4)


def test_applying_on_a_copy_leaves_the_original(rigged):
    copy = duplicate(rigged, deformer_armature(rigged))
    assert deformer_armature(copy) != deformer_armature(rigged)
    copy.matrix_basis = copy.matrix_basis @ Matrix.Scale(2, 4)
    apply_transform(copy)
    bpy.context.view_layer.update()
    assert bind_is_stale(rigged) is None
    assert_plays(rigged)
    assert_plays(copy)


def test_applying_on_a_copied_capture_leaves_the_frames_of_the_original(capture):
    copy = duplicate(capture)
    copy.scale = (2, 2, 2)
    apply_transform(copy)
    assert frames_object(copy) != frames_object(capture)
    assert_plays(capture)
    assert_plays(copy, np.diag([2, 2, 2, 1]))


def test_repairing_a_copy_leaves_the_original(rigged):
    armature = deformer_armature(rigged)
    copy = duplicate(rigged, armature)
    deformer_armature(copy).data.bones["skin_001"].name = "hand"
    rebind(copy)
    assert bind_is_stale(rigged) is None and bind_is_stale(copy) is None
    assert_plays(rigged)
    assert_plays(copy)


@pytest.mark.parametrize("linked", [False, True])
def test_rigging_a_copy_anew_leaves_the_original(rigged, linked):
    armature = deformer_armature(rigged)
    copy = duplicate(rigged, linked=linked)
    new = apply_rig(bpy.context, copy, RIG, SKIN)
    assert deformer_armature(rigged) == armature and new != armature
    assert copy.data != rigged.data
    assert_plays(rigged)
    assert_plays(copy)


def test_rigging_a_linked_copy_keeps_the_rest_state_of_the_original(capture):
    copy = duplicate(capture, linked=True)
    before = [tuple(point.co) for point in capture.data.points]
    rig = make_rig(CAPTURE.load_cloud(2), frames=4)
    apply_rig(bpy.context, copy, type(rig)(**{**vars(rig), "canonical_frame": 2}), make_skin_of(rig))
    assert [tuple(point.co) for point in capture.data.points] == before


@pytest.mark.parametrize("step", ["rig_to_armature", "replay_action"])
def test_a_failure_leaves_the_rig_there_was(rigged, monkeypatch, step):
    def fail(*_):
        raise RuntimeError("no")

    monkeypatch.setattr(rig_object, step, fail)
    armature = deformer_armature(rigged)
    with pytest.raises(RuntimeError, match="no"):
        apply_rig(bpy.context, rigged, RIG, SKIN)
    assert deformer_armature(rigged) == armature
    monkeypatch.undo()
    assert_plays(rigged)


def test_names_are_free_again_after_rigging_anew(rigged):
    armature = apply_rig(bpy.context, rigged, RIG, SKIN)
    assert armature.name == armature.data.name == f"{rigged.name} rig"
    assert armature.animation_data.action.name == f"{armature.name} replay"


def test_an_animated_object_goes_on_moving(capture):
    capture.rotation_euler = (0.2, 0, 0)
    for frame in (1, 4):
        capture.location.x = frame
        capture.keyframe_insert("location", frame=frame)
    curves = capture.animation_data.action.layers[0].strips[0].channelbags[0].fcurves
    for curve in curves:
        for key in curve.keyframe_points:
            key.interpolation = "LINEAR"
    armature = apply_rig(bpy.context, capture, RIG, SKIN)
    turn = np.array(Matrix.Rotation(0.2, 4, "X"))
    for _again in range(2):
        for frame in range(4):
            bpy.context.scene.frame_set(frame + 1)
            graph = bpy.context.evaluated_depsgraph_get()
            shown = transform_cloud(evaluated(capture), np.array(capture.evaluated_get(graph).matrix_world))
            expected = transform_cloud(CAPTURE.load_cloud(frame), turn).positions + [frame + 1, 0, 0]
            np.testing.assert_allclose(shown.positions, expected, atol=2e-4)
        assert armature.parent == capture
        armature = apply_rig(bpy.context, capture, RIG, SKIN)


def test_the_armature_joins_the_collection_and_its_instances(scene, capture):
    hero = bpy.data.collections.new("Hero")
    scene.collection.children.link(hero)
    hero.objects.link(capture)
    scene.collection.objects.unlink(capture)
    armature = apply_rig(bpy.context, capture, RIG, SKIN)
    assert armature.users_collection == (hero,)
    instance = bpy.data.objects.new("instance", None)
    instance.instance_type, instance.instance_collection, instance.location.x = "COLLECTION", hero, 5
    scene.collection.objects.link(instance)
    scene.frame_set(3)
    shown = [
        np.array([tuple(each.matrix_world @ point.co) for point in each.object.data.points])
        for each in bpy.context.evaluated_depsgraph_get().object_instances
        if each.is_instance and each.object.type == "POINTCLOUD"
    ]
    np.testing.assert_allclose(shown, [CAPTURE.positions[2] + [5, 0, 0]], atol=2e-4)


# Baking what is hidden


def poses(object):
    steps = pose_steps(bpy.context, object, 1, 4)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value


def exclude(scene, object):
    collection = bpy.data.collections.new("excluded")
    scene.collection.children.link(collection)
    collection.objects.link(object)
    scene.collection.objects.unlink(object)
    bpy.context.view_layer.layer_collection.children["excluded"].exclude = True


@pytest.mark.parametrize("how", ["hidden", "disabled", "excluded"])
def test_a_hidden_armature_is_baked_as_posed(scene, rigged, how):
    armature = deformer_armature(rigged)
    rigged.parent = None
    if how == "hidden":
        armature.hide_set(True)
    elif how == "disabled":
        armature.hide_viewport = True
    else:
        exclude(scene, armature)
    bpy.context.view_layer.update()
    rest = rest_splats(rigged)
    for frame, pose in poses(rigged).items():
        np.testing.assert_allclose(
            rest.posed(pose, "WORLD").positions, CAPTURE.positions[frame - 1], atol=2e-4
        )


def test_disabled_splats_are_not_baked_from_an_old_frame(capture):
    capture.hide_viewport = True
    with pytest.raises(RigError, match=f"'{capture.name}' is disabled in viewports"):
        next(bake_sequence(bpy.context, capture, 1, 4))


def test_disabled_rigged_splats_are_not_baked_from_an_old_frame(rigged):
    rigged.hide_viewport = deformer_armature(rigged).hide_viewport = True
    with pytest.raises(RigError, match="is disabled in viewports"):
        poses(rigged)


def test_an_armature_in_edit_mode_is_not_baked_at_rest(rigged):
    armature = deformer_armature(rigged)
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    with pytest.raises(RigError, match="Edit Mode"):
        posed_cloud(bpy.context.evaluated_depsgraph_get(), rigged)


# Splats and weights that were edited


@pytest.mark.parametrize("count", [100, 150, 400])
def test_splats_that_were_removed_or_added_are_told(capture, count):
    capture.data.resize(count)  # 4 frames of 200 splats are as many rows as 8 of 100
    with pytest.raises(CaptureError, match="splats of 'bar' were added or removed"):
        capture_from_point_cloud(capture)
    with pytest.raises(RigError, match="splats of 'bar' were"):
        posed_cloud(bpy.context.evaluated_depsgraph_get(), capture)


def test_a_native_apply_is_not_baked_half_done(capture):
    capture.scale = (2, 2, 2)
    bpy.context.view_layer.objects.active = capture
    capture.select_set(True)
    bpy.ops.object.transform_apply(location=False, rotation=False, scale=True)
    with pytest.raises(RigError, match="was applied to its positions only; repair it"):
        posed_cloud(bpy.context.evaluated_depsgraph_get(), capture)


def test_a_missing_attribute_is_named(rigged):
    rigged.data.attributes.remove(rigged.data.attributes["skin:weight_1"])
    with pytest.raises(RigError, match="has lost its attribute 'skin:weight_1'; build the rig again"):
        rest_splats(rigged)


# Other files


@pytest.fixture
def file(rigged, tmp_path):
    path = tmp_path / "rigged.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


def test_appending_from_the_file_menu_does_not_show_the_stored_frames(file):
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    folder = f"{file}/Object/"
    bpy.ops.wm.append(filepath=f"{folder}bar", directory=folder, filename="bar")
    frames = frames_object(bpy.data.objects["bar"])
    assert frames.hide_render and frames.display_type == "BOUNDS"
    assert_plays(bpy.data.objects["bar"])


def test_linked_rigs_play_and_are_not_changed(empty_scene, file):
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    with bpy.data.libraries.load(str(file), link=True) as (_, wanted):
        wanted.objects = ["bar"]
    object = wanted.objects[0]
    for each in (object, deformer_armature(object)):
        bpy.context.scene.collection.objects.link(each)
    bpy.context.view_layer.objects.active = object
    assert_plays(object)
    for name in ("build_rig", "apply_transform", "rebind", "reset_pose", "set_motion"):
        with pytest.raises(RuntimeError, match="is linked from another file; make it local"):
            getattr(bpy.ops.gaussianimate, name)()
    rest, shown = rest_splats(object), poses(object)
    np.testing.assert_allclose(rest.posed(shown[3], "WORLD").positions, CAPTURE.positions[2], atol=2e-4)
