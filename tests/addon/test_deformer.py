"""The geometry nodes do what core does, wherever the objects stand."""

from dataclasses import replace

import bpy
import numpy as np
import pytest
from compare import assert_equal_bits, assert_same_splats, evaluated
from mathutils import Euler, Matrix
from rigs import make_cloud, make_rig, make_skin_of
from scenes import IDENTITY, build, pose, world

from gaussianimate.core.deform.deform import deform_cloud
from gaussianimate.core.errors import RigError
from gaussianimate.core.skinning.skin import Skin
from gaussianimate.gaussianimate_addon.armature import SKIN_BONE, indexed_bones
from gaussianimate.gaussianimate_addon.deformer import (
    add_deformer,
    bind_is_stale,
    deformer,
    deformer_armature,
)
from gaussianimate.gaussianimate_addon.modifiers import set_input
from gaussianimate.gaussianimate_addon.point_cloud import NATIVE_SPLATS, cloud_to_point_cloud
from gaussianimate.gaussianimate_addon.skin_attributes import write_skin

TURNED = Matrix.Translation((3, -2, 1)) @ Euler((0.4, 1.1, -0.6)).to_matrix().to_4x4()
STRETCHED = TURNED @ Matrix.Diagonal((0.5, 2.0, 1.3, 1))
TINY = Matrix.Rotation(np.pi / 2, 4, "X") @ Matrix.Scale(0.128, 4)
MIRRORED = Matrix.Translation((0, 5, 0)) @ Matrix.Diagonal((-1.5, 1, 0.7, 1))
FAR = Matrix.Translation((800, -300, 500)) @ Matrix.Rotation(0.3, 4, "Z")

PLACES = {
    "at the origin": (IDENTITY, IDENTITY),
    "both moved": (TURNED, TURNED),
    "tiny armature": (IDENTITY, TINY),
    "stretched splats": (STRETCHED, IDENTITY),
    "stretched armature": (TURNED, STRETCHED),
    "mirrored splats": (MIRRORED, TINY),
    "mirrored armature": (TINY, MIRRORED),
    "far away": (FAR, FAR @ TINY),
}


def expected_transforms(object, armature, object_rest, armature_rest):
    """O^-1 H P B^-1 H_rest^-1 O_rest of every skin bone, straight from the definition."""
    inverse = np.linalg.inv
    result = []
    for bone in indexed_bones(armature, SKIN_BONE):
        pose_matrix = np.array(armature.pose.bones[bone.name].matrix, np.float64)
        motion = pose_matrix @ inverse(np.array(bone.matrix_local, np.float64))
        chain = inverse(world(object)) @ world(armature) @ motion @ inverse(armature_rest) @ object_rest
        result.append(chain[:3])
    return np.array(result)


@pytest.mark.parametrize("place", PLACES)
def test_rest_pose_is_the_imported_cloud_bit_by_bit(scene, place):
    cloud = make_cloud(300)
    object, _, _ = build(scene, cloud, object_world=PLACES[place][0], armature_world=PLACES[place][1])
    assert_equal_bits(evaluated(object), cloud)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("place", PLACES)
def test_random_poses_agree_with_core(scene, place, seed):
    cloud = make_cloud(300, seed=seed)
    object, armature, skin = build(
        scene, cloud, object_world=PLACES[place][0], armature_world=PLACES[place][1]
    )
    rest = world(object), world(armature)
    pose(armature, seed)
    expected = deform_cloud(cloud, skin, expected_transforms(object, armature, *rest))
    assert np.abs(expected.positions - cloud.positions).max() > 0.2
    assert_same_splats(evaluated(object), expected)


def test_objects_moved_after_binding_agree_with_core(scene):
    cloud = make_cloud(300)
    object, armature, skin = build(scene, cloud, object_world=TURNED, armature_world=TINY)
    rest = world(object), world(armature)
    armature.matrix_world = MIRRORED @ TINY
    object.matrix_world = STRETCHED
    pose(armature, 5)
    expected = deform_cloud(cloud, skin, expected_transforms(object, armature, *rest))
    assert_same_splats(evaluated(object), expected)


def test_moving_both_by_a_parent_deforms_nothing(scene):
    cloud = make_cloud(300)
    object, armature, _ = build(scene, cloud, object_world=TURNED, armature_world=TINY)
    empty = bpy.data.objects.new("empty", None)
    scene.collection.objects.link(empty)
    for child in (object, armature):
        child.parent = empty
    bpy.context.view_layer.update()
    empty.matrix_world = STRETCHED
    bpy.context.view_layer.update()
    assert not np.allclose(world(object), np.array(TURNED))
    assert_equal_bits(evaluated(object), cloud)


def test_moving_the_armature_carries_the_splats(scene):
    cloud = make_cloud(300)
    object, armature, _ = build(scene, cloud)
    armature.location = (0, 0, 2)
    bpy.context.view_layer.update()
    np.testing.assert_allclose(evaluated(object).positions, cloud.positions + [0, 0, 2], atol=1e-6)


@pytest.mark.parametrize("eta", [0.0, 0.5, 2.0])
def test_elastic_input(scene, eta):
    cloud = make_cloud(300)
    object, armature, skin = build(scene, cloud)
    set_input(deformer(object), "Elastic", eta)
    pose(armature, 1)
    rest = np.eye(4), np.eye(4)
    expected = deform_cloud(cloud, skin, expected_transforms(object, armature, *rest), elastic=eta)
    assert_same_splats(evaluated(object), expected)


@pytest.mark.parametrize("degree", range(4))
def test_colours_turn_in_every_band(scene, degree):
    cloud = make_cloud(200, degree=degree)
    object, armature, skin = build(scene, cloud)
    pose(armature, 2, strength=1.0)
    transforms = expected_transforms(object, armature, np.eye(4), np.eye(4))
    turned = deform_cloud(cloud, skin, transforms)
    assert degree == 0 or np.abs(turned.sh - cloud.sh).max() > 0.1
    assert_same_splats(evaluated(object), turned)
    set_input(deformer(object), "Rotate Colours", False)
    assert_same_splats(evaluated(object), replace(turned, sh=cloud.sh), sh=0)


@pytest.mark.parametrize("influences", [1, 2, 3, 4])
def test_any_number_of_influences(scene, influences):
    cloud = make_cloud(200, joints=5)
    rig = make_rig(cloud, joints=5, influences=influences)
    object, armature, skin = build(scene, cloud, rig)
    pose(armature, 3)
    expected = deform_cloud(cloud, skin, expected_transforms(object, armature, np.eye(4), np.eye(4)))
    assert_same_splats(evaluated(object), expected)


def test_static_bone_stays(scene):
    cloud = make_cloud(200)
    skin = make_skin_of(make_rig(cloud))
    indices = np.where(skin.indices == 1, -1, skin.indices).astype(np.int32)
    skin = Skin(indices, skin.weights, skin.gradients)
    object, armature, _ = build(scene, cloud, skin=skin, object_world=TURNED, armature_world=TINY)
    rest = world(object), world(armature)
    pose(armature, 4)
    expected = deform_cloud(cloud, skin, expected_transforms(object, armature, *rest))
    assert_same_splats(evaluated(object), expected)


def test_flat_and_needle_splats_keep_their_shape(scene):
    cloud = make_cloud(300)
    scales = cloud.scales.copy()
    scales[::2, 0], scales[1::4, 1:] = 1e-6, 1e-5
    cloud = replace(cloud, scales=scales)
    object, armature, skin = build(scene, cloud)
    pose(armature, 6)
    expected = deform_cloud(cloud, skin, expected_transforms(object, armature, np.eye(4), np.eye(4)))
    assert_same_splats(evaluated(object), expected)
    assert np.isfinite(evaluated(object).rotations).all()


def test_without_its_armature_the_cloud_stays_at_rest(scene):
    cloud = make_cloud(100)
    object, armature, _ = build(scene, cloud, object_world=TURNED, armature_world=TINY)
    pose(armature, 1)
    bpy.data.objects.remove(armature)
    bpy.context.view_layer.update()
    assert_equal_bits(evaluated(object), cloud)
    assert "armature" in bind_is_stale(object)


def test_binding_again_replaces_the_deformer(scene):
    object, armature, _ = build(scene)
    users = armature.users
    add_deformer(object, armature)
    assert len(object.modifiers) == 1
    assert deformer_armature(object) is armature
    assert armature.users == users, "the deformer that went is no user any more"
    assert sum(group.name.startswith("bar deform") for group in bpy.data.node_groups) == 2


def test_errors_name_the_object(scene):
    cloud = make_cloud(20)
    object = bpy.data.objects.new("bare", cloud_to_point_cloud(cloud, "bare"))
    armature = bpy.data.objects.new("boneless", bpy.data.armatures.new("boneless"))
    with pytest.raises(RigError, match="bare"):
        add_deformer(object, armature)
    write_skin(object.data, make_skin_of(make_rig(cloud)))
    with pytest.raises(RigError, match="boneless"):
        add_deformer(object, armature)


@pytest.mark.skipif(not NATIVE_SPLATS, reason="this Blender has no native splats (5.3 and later have)")
def test_the_result_is_still_drawn_as_splats(scene):
    object, armature, _ = build(scene)
    pose(armature, 1)
    data = object.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    assert data.type == "GAUSSIAN_SPLAT"
    names = {a.name: a.data_type for a in data.attributes if not a.name.startswith("skin:")}
    assert names == {a.name: a.data_type for a in object.data.attributes if not a.name.startswith("skin:")}


@pytest.mark.skipif(NATIVE_SPLATS, reason="this Blender draws splats itself")
def test_radius_follows_the_scale(scene):
    object, armature, _ = build(scene)
    pose(armature, 1)
    data = object.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    radius = np.empty(len(data.points), np.float32)
    data.attributes["radius"].data.foreach_get("value", radius)
    np.testing.assert_allclose(radius, np.median(evaluated(object).scales, axis=1), rtol=1e-5)
