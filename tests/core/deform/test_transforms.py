"""Poses, spaces, and affine maps of whole clouds."""

import numpy as np
import pytest

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.deform.deform import deform_cloud, deform_points
from gaussianimate.core.deform.transforms import (
    bone_transforms_from_pose,
    object_space_transforms,
    transform_cloud,
)
from gaussianimate.core.errors import RigError
from gaussianimate.core.rotations import affine_inverse, affine_multiply
from gaussianimate.core.skinning.skin import Skin, make_skin


def apply(matrix, p):
    return p @ matrix[:3, :3].T + matrix[:3, 3]


def world(rng, make, scale=1.0):
    matrix = make.transforms(rng, 1, reach=5)[0]
    matrix[:, :3] = matrix[:, :3] * scale
    return np.vstack([matrix, [0, 0, 0, 1]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_rig_at_rest_has_identity_transforms(rng, make, dtype):
    rest = make.transforms(rng, 20, angle=3, reach=10).astype(dtype)
    transforms = bone_transforms_from_pose(rest * (1 + np.finfo(dtype).eps), rest)
    np.testing.assert_array_equal(transforms, np.repeat(np.eye(3, 4)[None], 20, axis=0))
    raw = affine_multiply(rest.astype(np.float64), affine_inverse(rest.astype(np.float64)))
    np.testing.assert_allclose(raw, np.repeat(np.eye(3, 4)[None], 20, axis=0), atol=1e-6)


def test_a_small_pose_is_not_mistaken_for_rest(rng, make):
    rest = make.transforms(rng, 3)
    pose = rest.copy()
    pose[1, 0, 3] += 1e-4
    transforms = bone_transforms_from_pose(pose, rest)
    assert np.abs(transforms[1] - np.eye(3, 4)).max() > 5e-5
    np.testing.assert_array_equal(transforms[[0, 2]], np.repeat(np.eye(3, 4)[None], 2, axis=0))


def test_what_counts_as_rest_scales_with_the_rig(rng, make):
    rest = make.transforms(rng, 3)
    rest[:, :, 3] *= 1e-3
    pose = rest.copy()
    pose[1, 0, 3] += 1e-7
    assert not np.array_equal(bone_transforms_from_pose(pose, rest)[1], np.eye(3, 4))
    assert bone_transforms_from_pose(np.zeros((0, 4, 4)), np.zeros((0, 4, 4))).shape == (0, 3, 4)


def test_points_stay_fixed_in_their_bone(rng, make):
    rest, pose = make.transforms(rng, 3), make.transforms(rng, 3)
    pose[:, :, :3] = pose[:, :, :3] * np.array([1, 2, 0.5])  # stretchy bones
    inside = rng.normal(size=(5, 3))
    transforms = bone_transforms_from_pose(pose, rest)
    for j in range(3):
        np.testing.assert_allclose(
            apply(transforms[j], apply(rest[j], inside)), apply(pose[j], inside), atol=1e-12
        )


def test_a_flat_rest_bone_is_named(rng, make):
    rest = make.transforms(rng, 3)
    rest[2, :, 0] = 0
    with pytest.raises(RigError, match="Bone 2"):
        bone_transforms_from_pose(make.transforms(rng, 3), rest)


def test_deformation_is_the_same_in_the_world_wherever_the_objects_stand(rng, make):
    """Armature scaled by 0.128 and turned, splats elsewhere: the world sees what it would without either."""
    p = rng.normal(size=(100, 3))
    o, h = world(rng, make, np.array([1, 2, 0.5])), world(rng, make, 0.128)
    bones = make.transforms(rng, 4)  # what the world should see, world space
    inside = affine_multiply(
        affine_multiply(affine_inverse(h), bones), h
    )  # the same, as the armature sees it
    skin = make_skin(p, rng.integers(0, 4, (100, 3)), rng.random((100, 3)))
    posed = deform_points(p, skin, object_space_transforms(inside, o, h, o, h))
    np.testing.assert_allclose(apply(o, posed), deform_points(apply(o, p), skin, bones), atol=1e-6)
    # Afterwards the armature object moves: everything bound to it follows, wherever the splat object goes.
    push, o_now = world(rng, make), world(rng, make)
    posed = deform_points(p, skin, object_space_transforms(inside, o_now, push @ h, o, h))
    expected = apply(push, deform_points(apply(o, p), skin, bones))
    np.testing.assert_allclose(apply(o_now, posed), expected, atol=1e-5)


def test_unmoved_objects_at_rest_give_the_exact_identity(rng, make):
    o, h = world(rng, make, 3), world(rng, make, 0.128)
    chained = object_space_transforms(np.repeat(np.eye(3, 4)[None], 2, axis=0), o, h, o, h)
    np.testing.assert_array_equal(chained, np.repeat(np.eye(3, 4)[None], 2, axis=0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["turn", "scale", "mirror", "shear"])
def test_whole_clouds_under_affine_maps(rng, make, kind, dtype):
    linear = {
        "turn": make.rotations(rng, 1)[0],
        "scale": make.rotations(rng, 1)[0] * [1, 3, 0.2],
        "mirror": np.diag([-1.0, 1, 1]),
        "shear": np.array([[1, 0.8, 0], [0, 1, 0], [0.3, 0, 1]]),
    }[kind]
    cloud = make.cloud(rng, 200, dtype=dtype)
    matrix = np.vstack([np.column_stack([linear, [1, 2, 3]]), [0, 0, 0, 1]])
    moved = transform_cloud(cloud, matrix)
    assert all(getattr(moved, name).dtype == dtype for name in GaussianCloud.__dataclass_fields__)
    np.testing.assert_allclose(moved.positions, apply(matrix, cloud.positions), atol=1e-5)
    expected = linear @ make.covariance(cloud.rotations, cloud.scales) @ linear.T
    found = make.covariance(moved.rotations, moved.scales)
    assert np.abs(found - expected).max() < (1e-5 if dtype == np.float32 else 1e-12) * np.abs(expected).max()
    skin = make_skin(cloud.positions, np.zeros((200, 1)), np.ones((200, 1)))
    skinned = deform_cloud(cloud, skin, matrix[None, :3])
    np.testing.assert_allclose(skinned.sh, moved.sh, atol=1e-5)
    np.testing.assert_allclose(skinned.scales, moved.scales, rtol=1e-4)


def test_identity_and_no_splats(rng, make):
    cloud = make.cloud(rng, 20, dtype=np.float32)
    same = transform_cloud(cloud, np.eye(4))
    for name in GaussianCloud.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(same, name), getattr(cloud, name))
    assert len(transform_cloud(cloud.take(np.zeros(20, bool)), 2 * np.eye(4))) == 0
    with pytest.raises(RigError, match="not finite"):
        transform_cloud(cloud, np.full((4, 4), np.nan))


def test_a_broken_bone_does_not_reach_splats_without_weight_there(rng, make):
    p = rng.normal(size=(40, 3))
    transforms = make.transforms(rng, 2)
    indices, weights = np.tile([1, 0], (40, 1)).astype(np.int32), np.tile([1.0, 0.0], (40, 1))
    skin = Skin(indices, weights, np.zeros((40, 2, 3)))
    whole = deform_points(p, skin, transforms)
    transforms[0, 1, 2] = np.nan
    np.testing.assert_array_equal(deform_points(p, skin, transforms), whole)
    assert not np.allclose(whole, p)
