"""Dual-quaternion blending and its derivative."""

import numpy as np
import pytest

from gaussianimate.core.deform.deform import deform_cloud, deform_points, jacobian_terms, jacobians
from gaussianimate.core.skinning.skin import Skin


@pytest.mark.parametrize("bones", [2, 3, 4])
def test_jacobian_is_the_derivative(rng, make, bones):
    field, transforms, p = make.field(rng, bones), make.transforms(rng, bones, 1.2), rng.normal(size=(100, 3))
    way = {"blend": "dual_quaternion"}

    def move(x):  # the centre of the cloud must be the same for all
        both = np.concatenate([p, x])
        return deform_points(both, field.skin(both), transforms, **way)[100:]

    truth = make.finite_differences(move, p)
    r = jacobians(p, field.skin(p), transforms, **way)
    assert np.abs(r - truth).max() < 1e-8 * np.abs(truth).max()
    rigid = jacobian_terms(p, field.skin(p), transforms, **way)[0]
    np.testing.assert_allclose(rigid @ rigid.swapaxes(1, 2), np.tile(np.eye(3), (100, 1, 1)), atol=1e-12)


def test_single_influence_is_the_bone_itself(rng, make):
    transforms, p = make.transforms(rng, 2), rng.normal(size=(50, 3))
    skin = Skin(np.ones((50, 1), np.int32), np.ones((50, 1)), np.zeros((50, 1, 3)))
    posed = deform_points(p, skin, transforms, blend="dual_quaternion")
    np.testing.assert_allclose(posed, p @ transforms[1, :, :3].T + transforms[1, :, 3], atol=1e-12)


def test_weights_may_have_any_sum(rng, make):
    field, transforms, p = make.field(rng, 3), make.transforms(rng, 3, 1.2), rng.normal(size=(50, 3))
    unit = field.skin(p)
    raw = Skin(unit.indices, field.weights(p), field.gradients(p))
    way = {"blend": "dual_quaternion"}
    np.testing.assert_allclose(
        deform_points(p, raw, transforms, **way), deform_points(p, unit, transforms, **way), atol=1e-12
    )
    for a, b in zip(
        jacobian_terms(p, raw, transforms, **way), jacobian_terms(p, unit, transforms, **way), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_rest_pose_returns_the_very_cloud(rng, make):
    cloud = make.cloud(rng, 100, dtype=np.float32)
    skin = make.field(rng, 4).skin(cloud.positions.astype(np.float64), np.float32)
    rest = np.repeat(np.eye(3, 4)[None], 4, axis=0)
    posed = deform_cloud(cloud, skin, rest, blend="dual_quaternion")
    for name in ("positions", "rotations", "scales", "sh"):
        np.testing.assert_array_equal(getattr(posed, name), getattr(cloud, name))


def test_scaling_bones_and_opposed_turns_fall_back(rng, make):
    p = rng.normal(size=(60, 3))
    skin, transforms = make.field(rng, 2).skin(p), make.transforms(rng, 2)
    transforms[1, :, :3] *= 1.5
    np.testing.assert_allclose(
        deform_points(p, skin, transforms, blend="dual_quaternion"),
        deform_points(p, skin, transforms),
        atol=1e-12,
    )
    half_turns = np.repeat(np.eye(3, 4)[None], 3, axis=0)
    for axis in range(3):  # half turns about x, y, z; x against x with the sign forced by its parent cancels
        half_turns[axis, :, :3] = 2 * np.outer(np.eye(3)[axis], np.eye(3)[axis]) - np.eye(3)
    indices = np.tile(np.array([0, 1], np.int32), (60, 1))
    opposed = Skin(indices, np.full((60, 2), 0.5), np.zeros((60, 2, 3)))
    posed = deform_points(p, opposed, half_turns[[0, 0]], blend="dual_quaternion")
    np.testing.assert_allclose(posed, p * [1, -1, -1], atol=1e-12)


def test_no_candy_wrapper(rng):
    """Half a turn apart, linear blending collapses the cross-section; dual quaternions keep its radius."""
    angle = np.linspace(0, 2 * np.pi, 20, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    transforms = np.repeat(np.eye(3, 4)[None], 2, axis=0)
    c, s = np.cos(3.0), np.sin(3.0)
    transforms[1, :, :3] = [[c, -s, 0], [s, c, 0], [0, 0, 1]]
    indices = np.tile(np.array([0, 1], np.int32), (20, 1))
    skin = Skin(indices, np.full((20, 2), 0.5), np.zeros((20, 2, 3)))
    assert np.linalg.norm(deform_points(ring, skin, transforms), axis=1).max() < 0.1
    kept = deform_points(ring, skin, transforms, blend="dual_quaternion")
    np.testing.assert_allclose(np.linalg.norm(kept, axis=1), 1, atol=1e-12)
