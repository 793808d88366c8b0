"""Applying transforms: ours does it right, Blender's own is noticed and mended."""

from dataclasses import replace

import bpy
import numpy as np
import pytest
from compare import assert_same_splats, evaluated
from mathutils import Euler, Matrix
from rigs import make_cloud
from test_rig_object import depsgraph, rigged

from gaussianimate.core.deform.transforms import transform_cloud
from gaussianimate.core.errors import RigError
from gaussianimate.gaussianimate_addon.apply_transform import apply_transform
from gaussianimate.gaussianimate_addon.attributes import read_attribute, write_attribute
from gaussianimate.gaussianimate_addon.bake import posed_cloud
from gaussianimate.gaussianimate_addon.capture_object import capture_from_point_cloud
from gaussianimate.gaussianimate_addon.deformer import bind_is_stale, rebind
from gaussianimate.gaussianimate_addon.modifiers import PLAYBACK, find_modifier
from gaussianimate.gaussianimate_addon.point_cloud import cloud_to_point_cloud, point_cloud_to_cloud
from gaussianimate.gaussianimate_addon.rig_object import remove_rig

CROOKED = (
    Matrix.Translation((1, -2, 0.5)) @ Euler((0.5, 0.2, 1)).to_matrix().to_4x4() @ Matrix.Scale(0.128, 4)
)
UNEVEN = CROOKED @ Matrix.Diagonal((2, 1, 0.5, 1))


def native_apply(object):
    for other in bpy.context.view_layer.objects:
        other.select_set(other == object)
    bpy.context.view_layer.objects.active = object
    assert bpy.ops.object.transform_apply() == {"FINISHED"}
    bpy.context.view_layer.update()


def world_cloud(object):
    """What the viewport shows, in the world."""
    bpy.context.view_layer.update()
    return transform_cloud(evaluated(object), np.array(object.matrix_world, np.float64))


def free(object):
    """Take the object out of its armature's hands, keeping its place."""
    world = object.matrix_world.copy()
    object.parent = None
    object.matrix_world = world
    bpy.context.view_layer.update()


@pytest.fixture
def bound(scene):
    """A rigged object beside its armature, mid-motion."""
    object, armature, *_ = rigged(scene, degree=2)
    free(object)
    scene.frame_set(3)
    return object, armature


@pytest.mark.parametrize("matrix", [CROOKED, UNEVEN])
def test_our_apply_changes_nothing_in_the_world(scene, bound, matrix):
    object, _ = bound
    object.matrix_world = matrix
    before = world_cloud(object)
    exported = posed_cloud(depsgraph(), object)
    apply_transform(object)
    assert np.array_equal(np.array(object.matrix_basis), np.eye(4))
    assert_same_splats(world_cloud(object), before, sh=None if matrix is UNEVEN else 1e-3)
    assert_same_splats(posed_cloud(depsgraph(), object), exported, sh=None if matrix is UNEVEN else 1e-3)
    assert bind_is_stale(object) is None


def test_our_apply_moves_the_captured_frames(scene, bound):
    object, _ = bound
    object.matrix_world = CROOKED
    before = capture_from_point_cloud(object)
    apply_transform(object)
    after = capture_from_point_cloud(object)
    for f in (0, 5):
        expected = transform_cloud(before.load_cloud(f), np.array(CROOKED, np.float64))
        assert_same_splats(after.load_cloud(f), expected)
    assert find_modifier(object, PLAYBACK) is not None


def test_apply_turns_colours_of_a_plain_splat_object(scene):
    cloud = make_cloud(50, degree=3)
    object = bpy.data.objects.new("plain", cloud_to_point_cloud(cloud, "plain"))
    scene.collection.objects.link(object)
    object.matrix_world = Matrix.Rotation(np.pi / 2, 4, "X") @ Matrix.Scale(2, 4)
    bpy.context.view_layer.update()
    expected = transform_cloud(cloud, np.array(object.matrix_world, np.float64))
    apply_transform(object)
    assert_same_splats(point_cloud_to_cloud(object.data), expected)
    assert np.abs(expected.sh - cloud.sh).max() > 0.1


def test_apply_refuses_what_cannot_be_applied(scene):
    cloud = make_cloud(50)
    first = bpy.data.objects.new("first", cloud_to_point_cloud(cloud, "shared"))
    second = bpy.data.objects.new("second", first.data)
    with pytest.raises(RigError, match="shared"):
        apply_transform(first)
    bpy.data.objects.remove(second)
    first.scale = (1, 0, 1)
    with pytest.raises(RigError, match="nothing"):
        apply_transform(first)
    with pytest.raises(RigError, match="empty"):
        apply_transform(bpy.data.objects.new("empty", None))


@pytest.mark.parametrize("matrix", [CROOKED, UNEVEN])
def test_native_apply_on_the_splats_is_noticed_and_mended(scene, bound, matrix):
    object, _ = bound
    object.matrix_world = matrix
    before = world_cloud(object)
    native_apply(object)
    assert "repair" in bind_is_stale(object)
    with pytest.raises(RigError, match="repair"):
        posed_cloud(depsgraph(), object)
    rebind(object)
    assert bind_is_stale(object) is None
    assert_same_splats(world_cloud(object), before, sh=None if matrix is UNEVEN else 1e-3)


def test_our_apply_waits_till_a_native_one_is_mended(scene, bound):
    """It would take what was moved alone for whole."""
    object, _ = bound
    object.matrix_world = CROOKED
    before = world_cloud(object)
    native_apply(object)
    object.location.x = 1
    with pytest.raises(RigError, match="'bar' was applied to its positions only; repair it to fit again"):
        apply_transform(object)
    assert "repair" in bind_is_stale(object)
    object.location.x = 0
    rebind(object)
    apply_transform(object)
    assert_same_splats(world_cloud(object), before)


def test_native_apply_on_an_unrigged_capture_is_mended(scene, bound):
    object, _ = bound
    remove_rig(object)
    object.matrix_world = CROOKED
    before = world_cloud(object)
    native_apply(object)
    assert "repair" in bind_is_stale(object)
    rebind(object)
    assert bind_is_stale(object) is None
    assert_same_splats(world_cloud(object), before)


@pytest.mark.parametrize("frame", [1, 3, 6])
def test_native_apply_on_the_armature_is_noticed_and_mended(scene, bound, frame):
    object, armature = bound
    armature.matrix_world = CROOKED
    scene.frame_set(frame)
    before = world_cloud(object)
    native_apply(armature)
    assert "rest pose" in bind_is_stale(object)
    rebind(object)
    assert bind_is_stale(object) is None
    scene.frame_set(frame)
    assert_same_splats(world_cloud(object), before)


@pytest.mark.parametrize("apply", [native_apply, apply_transform])
def test_apply_on_the_splats_under_their_armature(scene, apply):
    object, armature, *_ = rigged(scene, axis="-y", world=CROOKED)
    scene.frame_set(3)
    before = world_cloud(object)
    exported = posed_cloud(depsgraph(), object)
    apply(object)
    rebind(object)
    assert object.parent == armature and bind_is_stale(object) is None
    assert_same_splats(world_cloud(object), before)
    assert_same_splats(posed_cloud(depsgraph(), object), exported)


def test_native_apply_on_the_armature_above_its_splats(scene):
    object, armature, *_ = rigged(scene, axis="-y", world=CROOKED)
    scene.frame_set(3)
    before = world_cloud(object)
    native_apply(armature)
    rebind(object)
    scene.frame_set(3)
    assert_same_splats(world_cloud(object), before)


def test_uneven_scale_of_the_armature_cannot_be_mended_and_says_so(scene, bound):
    object, armature = bound
    armature.matrix_world = UNEVEN
    bpy.context.view_layer.update()
    native_apply(armature)
    with pytest.raises(RigError, match="unevenly"):
        rebind(object)


def test_renamed_bones_are_followed_again(scene, bound):
    object, armature = bound
    before = world_cloud(object)
    bone = armature.data.bones["skin_002"]
    bone.name = "elbow"
    bpy.context.view_layer.update()
    assert "renamed" in bind_is_stale(object)
    rebind(object)
    assert bind_is_stale(object) is None
    assert_same_splats(world_cloud(object), before)


def test_splats_moved_one_by_one_are_refused(scene, bound):
    object, _ = bound
    positions = read_attribute(object.data, "position")
    positions += np.random.default_rng(0).normal(scale=0.3, size=positions.shape).astype(np.float32)
    write_attribute(object.data, "position", "FLOAT_VECTOR", positions)
    assert "one by one" in bind_is_stale(object)
    with pytest.raises(RigError, match="one by one"):
        rebind(object)


def test_flat_clouds_are_mended_too(scene):
    cloud = make_cloud(50)
    cloud = replace(cloud, positions=cloud.positions * np.float32([1, 1, 0]))
    from gaussianimate.core.capture import Capture
    from gaussianimate.gaussianimate_addon.capture_object import create_capture_object

    capture = Capture("flat", cloud.positions[None], np.ones(1, bool), load_cloud=lambda f: cloud)
    object = create_capture_object(bpy.context, capture, cloud, "z")
    object.matrix_world = CROOKED
    before = world_cloud(object)
    native_apply(object)
    rebind(object)
    assert_same_splats(world_cloud(object), before)
