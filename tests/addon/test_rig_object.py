"""From a finished rig to a posable object, and back out as clouds."""

from dataclasses import replace

import bpy
import numpy as np
import pytest
from compare import assert_equal_bits, assert_same_splats, evaluated
from mathutils import Matrix
from rigs import make_capture, make_cloud, make_rig, make_skin_of

from gaussianimate.core.deform.deform import deform_cloud
from gaussianimate.core.deform.transforms import transform_cloud
from gaussianimate.core.errors import Cancelled, RigError
from gaussianimate.gaussianimate_addon.bake import bake_sequence, posed_cloud
from gaussianimate.gaussianimate_addon.capture_object import create_capture_object, source_matrix
from gaussianimate.gaussianimate_addon.deformer import bind_is_stale, deformer_armature
from gaussianimate.gaussianimate_addon.modifiers import PLAYBACK, find_modifier, set_input
from gaussianimate.gaussianimate_addon.rig_object import apply_rig, remove_rig
from gaussianimate.gaussianimate_addon.skin_attributes import read_skin


def rigged(scene, axis="y", degree=1, world=None, cloud=None):
    """Return (object, armature, rig, skin, cloud) of a rigged capture."""
    cloud = cloud or make_cloud(150, degree=degree)
    rig = make_rig(cloud)
    capture = make_capture(cloud, rig)
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), axis)
    if world is not None:
        object.matrix_world = world
    skin = make_skin_of(rig)
    armature = apply_rig(bpy.context, object, rig, skin)
    return object, armature, rig, skin, cloud


def depsgraph():
    return bpy.context.evaluated_depsgraph_get()


@pytest.mark.parametrize("world", [None, Matrix.Translation((3, 1, 2)) @ Matrix.Diagonal((2, 1, 0.5, 1))])
def test_rig_replays_the_capture(scene, world):
    object, armature, rig, skin, cloud = rigged(scene, world=world)
    assert deformer_armature(object) == armature and object.parent == armature
    np.testing.assert_allclose(np.array(armature.matrix_world), np.array(object.matrix_world), atol=1e-6)
    for f in range(len(rig.frames)):
        scene.frame_set(scene.frame_start + f)
        expected = deform_cloud(cloud, skin, rig.bone_transforms[f])
        assert_same_splats(evaluated(object), expected)
        assert_same_splats(posed_cloud(depsgraph(), object, "OBJECT"), expected)


def test_moving_the_armature_object_moves_the_splats_rigidly(scene):
    object, armature, *_, cloud = rigged(scene)
    armature.location = (5, 0, 0)
    bpy.context.view_layer.update()
    assert_equal_bits(evaluated(object), cloud)
    np.testing.assert_allclose(object.matrix_world.translation, (5, 0, 0), atol=1e-6)


def test_rest_frame_of_the_rig_becomes_the_rest_state(scene):
    cloud = make_cloud(150)
    rig = make_rig(cloud)
    capture = make_capture(cloud, rig)
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), "y")
    shown = replace(rig, canonical_frame=4, rest=capture.positions[4])
    armature = apply_rig(bpy.context, object, shown, make_skin_of(shown))
    armature.animation_data.action = None
    for bone in armature.pose.bones:
        bone.matrix_basis.identity()
    bpy.context.view_layer.update()
    assert_equal_bits(evaluated(object), capture.load_cloud(4))


def test_a_rig_of_other_splats_is_refused(scene):
    object, *_ = rigged(scene)
    other = make_rig(make_cloud(40))
    with pytest.raises(RigError, match="40"):
        apply_rig(bpy.context, object, other, make_skin_of(other))
    moved = make_rig(make_cloud(150, seed=9))
    with pytest.raises(RigError, match="rest pose"):
        apply_rig(bpy.context, object, moved, make_skin_of(moved))
    assert deformer_armature(object) is not None, "a refused rig leaves the earlier one as it was"


def test_rigging_anew_replaces_the_rig(scene):
    object, armature, rig, skin, _ = rigged(scene)
    place = np.array(object.matrix_world)
    again = apply_rig(bpy.context, object, rig, skin)
    assert [o for o in bpy.data.objects if o.type == "ARMATURE"] == [again]
    assert len(bpy.data.armatures) == len(bpy.data.actions) == 1
    np.testing.assert_allclose(np.array(object.matrix_world), place, atol=1e-6)
    assert [m.name for m in object.modifiers] == ["Playback", "Deform"]


def test_removing_the_rig_brings_playback_back(scene):
    object, _, rig, skin, cloud = rigged(scene)
    remove_rig(object)
    scene.frame_set(4)
    assert_equal_bits(evaluated(object), deform_cloud(cloud, skin, rig.bone_transforms[3]))


def test_an_action_of_the_users_survives_rigging_anew(scene):
    object, armature, rig, skin, _ = rigged(scene)
    own = bpy.data.actions.new("my dance")
    armature.animation_data.action = own
    apply_rig(bpy.context, object, rig, skin)
    assert bpy.data.actions.get("my dance") == own


def test_parents_are_kept(scene):
    cloud = make_cloud(150)
    rig = make_rig(cloud)
    capture = make_capture(cloud, rig)
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), "y")
    empty = bpy.data.objects.new("empty", None)
    scene.collection.objects.link(empty)
    object.parent = empty
    empty.matrix_world = Matrix.Translation((1, 2, 3)) @ Matrix.Scale(2, 4)
    bpy.context.view_layer.update()
    place = np.array(object.matrix_world)
    armature = apply_rig(bpy.context, object, rig, make_skin_of(rig))
    assert armature.parent == empty and object.parent == armature
    np.testing.assert_allclose(np.array(object.matrix_world), place, atol=1e-5)
    empty.location.x += 5
    bpy.context.view_layer.update()
    assert_equal_bits(evaluated(object), cloud)
    remove_rig(object)
    bpy.context.view_layer.update()
    assert object.parent == empty
    np.testing.assert_allclose(np.array(object.matrix_world)[:3, 3], place[:3, 3] + [5, 0, 0], atol=1e-5)


def test_replay_keeps_the_time_of_playback(scene):
    cloud = make_cloud(150)
    rig = make_rig(cloud)
    capture = make_capture(cloud, rig)
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), "y")
    set_input(find_modifier(object, PLAYBACK), "Frame Step", 2.0)
    set_input(find_modifier(object, PLAYBACK), "Start Frame", 10.0)
    apply_rig(bpy.context, object, rig, make_skin_of(rig))
    for f in (0, 3, 7):
        scene.frame_set(10 + 2 * f)
        assert_same_splats(evaluated(object), capture.load_cloud(f))


def test_skin_is_read_back(scene):
    object, _, _, skin, _ = rigged(scene)
    back = read_skin(object.data)
    for name in ("indices", "weights", "gradients"):
        np.testing.assert_array_equal(getattr(back, name), getattr(skin, name))


@pytest.mark.parametrize("axis", ["y", "z", "-y"])
def test_rest_pose_bakes_to_the_imported_cloud_bit_by_bit(scene, axis):
    object, armature, *_, cloud = rigged(scene, axis=axis, degree=3)
    armature.animation_data.action = None
    for bone in armature.pose.bones:
        bone.matrix_basis.identity()
    bpy.context.view_layer.update()
    for space in ("WORLD", "OBJECT"):
        assert_equal_bits(posed_cloud(depsgraph(), object, space), cloud)


def test_world_space_applies_the_object_and_undoes_the_axes(scene):
    turn = Matrix.Translation((1, 2, 3)) @ Matrix.Rotation(0.7, 4, "Z") @ Matrix.Scale(2, 4)
    object, armature, rig, skin, cloud = rigged(scene, axis="-y", degree=2)
    armature.matrix_world = turn @ armature.matrix_world
    bpy.context.view_layer.update()
    scene.frame_set(4)
    expected = deform_cloud(cloud, skin, rig.bone_transforms[3])
    axes = source_matrix(object)
    expected = transform_cloud(expected, np.linalg.inv(axes) @ np.array(turn, np.float64) @ axes)
    assert_same_splats(posed_cloud(depsgraph(), object), expected)


def test_viewport_and_bake_agree_on_a_new_pose(scene):
    object, armature, *_ = rigged(scene, degree=3)
    armature.animation_data.action = None
    armature.pose.bones["joint_1"].rotation_quaternion = (0.8, 0.1, 0.6, 0)
    armature.pose.bones["joint_0"].location = (0, 1, 0)
    bpy.context.view_layer.update()
    baked = posed_cloud(depsgraph(), object, "OBJECT")
    assert np.abs(baked.positions - evaluated(object).positions).max() < 1e-4
    assert_same_splats(baked, evaluated(object))


def test_sequence_restores_the_frame(scene):
    object, _, rig, skin, cloud = rigged(scene)
    scene.frame_set(2, subframe=0.5)
    baked = dict(bake_sequence(bpy.context, object, 1, 5, "OBJECT"))
    assert (scene.frame_current, scene.frame_subframe) == (2, 0.5)
    assert list(baked) == [1, 2, 3, 4, 5]
    for frame, posed in baked.items():
        assert_same_splats(posed, deform_cloud(cloud, skin, rig.bone_transforms[frame - 1]))


def test_cancelled_sequence_restores_the_frame(scene):
    object, *_ = rigged(scene)
    scene.frame_set(7)

    def stop(stage, fraction):
        if fraction > 0.4:
            raise Cancelled

    with pytest.raises(Cancelled):
        list(bake_sequence(bpy.context, object, 1, 5, progress=stop))
    assert scene.frame_current == 7


def test_other_objects_cannot_be_baked(scene):
    empty = bpy.data.objects.new("empty", None)
    with pytest.raises(RigError, match="empty"):
        posed_cloud(depsgraph(), empty)


def test_a_rigged_object_is_not_stale(scene):
    object, *_ = rigged(scene, world=Matrix.Translation((3, 1, 2)) @ Matrix.Diagonal((2, 1, 0.5, 1)))
    assert bind_is_stale(object) is None
