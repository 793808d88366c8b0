"""Spherical harmonics in the 3DGS convention, and colours that turn with splats."""

import numpy as np
import pytest

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.deform.deform import deform_cloud
from gaussianimate.core.deform.sh import rotate_sh, sh_basis
from gaussianimate.core.deform.svd3 import polar_rotation
from gaussianimate.core.deform.transforms import transform_cloud
from gaussianimate.core.rotations import axis_angle_to_quaternion, quaternion_to_matrix
from gaussianimate.core.skinning.skin import Skin

QUARTER = quaternion_to_matrix(axis_angle_to_quaternion(np.array([0.0, 0, 1]), np.pi / 2))


def directions(rng, count=100):
    d = rng.normal(size=(count, 3))
    return d / np.linalg.norm(d, axis=1, keepdims=True)


def test_basis_is_orthonormal():
    x, w = np.polynomial.legendre.leggauss(12)
    phi = np.arange(24) * 2 * np.pi / 24
    z, phi, w = (a.ravel() for a in np.broadcast_arrays(x[:, None], phi, w[:, None]))
    d = np.stack([np.sqrt(1 - z * z) * np.cos(phi), np.sqrt(1 - z * z) * np.sin(phi), z], axis=-1)
    y = sh_basis(d, 3)
    np.testing.assert_allclose(y.T * (w * 2 * np.pi / 24) @ y, np.eye(16), atol=1e-13)


def test_basis_has_the_signs_of_3dgs():
    """Reference values of the 3DGS rasteriser at one direction."""
    x, y, z = d = np.array([1.0, 2, -2]) / 3
    np.testing.assert_allclose(sh_basis(d, 1), [0.28209479, -0.48860251 * y, 0.48860251 * z, -0.48860251 * x])
    np.testing.assert_allclose(sh_basis(d, 2)[4:6], [1.09254843 * x * y, -1.09254843 * y * z])
    np.testing.assert_allclose(sh_basis(d, 3)[15], -0.59004359 * x * (x * x - 3 * y * y), rtol=1e-7)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 2e-6)])
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_rotated_coefficients_show_the_rotated_colours(rng, make, degree, dtype, tolerance):
    sh = rng.normal(size=(100, (degree + 1) ** 2, 3)).astype(dtype)
    turns, d = make.rotations(rng, 100).astype(dtype), directions(rng)
    found = sh_basis(d, degree) @ rotate_sh(sh, turns)  # (100 splats, 100 directions, 3)
    expected = sh_basis(d @ turns, degree) @ sh  # row k of d Q is Q^T d_k
    assert rotate_sh(sh, turns).dtype == dtype
    assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()
    one = rotate_sh(sh, turns[0])
    np.testing.assert_allclose(one, rotate_sh(sh, np.broadcast_to(turns[0], (100, 3, 3))), atol=tolerance)


def test_rotation_of_coefficients_is_a_group(rng, make):
    a, b = make.rotations(rng, 2)
    matrix = lambda turn: rotate_sh(np.eye(16)[:, :, None].repeat(3, 2), turn)[:, :, 0].T  # noqa: E731
    np.testing.assert_allclose(matrix(a) @ matrix(b), matrix(a @ b), atol=1e-10)
    np.testing.assert_allclose(matrix(a) @ matrix(a).T, np.eye(16), atol=1e-10)
    np.testing.assert_allclose(matrix(np.eye(3)), np.eye(16), atol=1e-12)


def test_band_one_turns_as_a_vector(rng, make):
    sh, turn = rng.normal(size=(1, 4, 3)), make.rotations(rng, 1)[0]
    v = turn @ np.stack([-sh[0, 3], -sh[0, 1], sh[0, 2]])
    np.testing.assert_allclose(rotate_sh(sh, turn)[0, 1:], [-v[1], v[2], -v[0]], atol=1e-12)


def red_towards_x(degree: int, rng) -> GaussianCloud:
    sh = np.zeros((1, (degree + 1) ** 2, 3), np.float32)
    sh[:, 1:] = 0.1 * rng.normal(size=sh[:, 1:].shape)
    sh[0, 3, 0] = -1.0  # red grows towards +X
    return GaussianCloud(
        np.float32([[1, 2, 3]]), np.float32([[1, 0, 0, 0]]), np.float32([[1, 2, 3]]), np.float32([1]), sh
    )


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("how", ["object", "bone"])
def test_colours_turn_with_object_and_bone(rng, degree, how):
    cloud, d = red_towards_x(degree, rng), directions(rng)
    motion = np.concatenate([QUARTER, np.zeros((3, 1))], axis=1)
    if how == "object":
        posed = transform_cloud(cloud, motion)
    else:
        skin = Skin(np.zeros((1, 1), np.int32), np.ones((1, 1), np.float32), np.zeros((1, 1, 3), np.float32))
        posed = deform_cloud(cloud, skin, motion[None])
    before, after = sh_basis(d, degree) @ cloud.sh[0], sh_basis(d @ QUARTER.T, degree) @ posed.sh[0]
    np.testing.assert_allclose(after, before, atol=1e-5)
    np.testing.assert_allclose(posed.positions, cloud.positions @ QUARTER.T, atol=1e-5)


def test_bent_splats_turn_by_the_nearest_rotation(rng, make):
    """Skinned colours are those of the cloud's own convention under polar(R), also where R is no rotation."""
    cloud, d = make.cloud(rng, 50), directions(rng)
    r = np.eye(3) + 0.4 * rng.normal(size=(3, 3))
    posed = transform_cloud(cloud, np.concatenate([r, np.zeros((3, 1))], axis=1))
    expected = sh_basis(d @ polar_rotation(r[None])[0], 3) @ cloud.sh
    np.testing.assert_allclose(sh_basis(d, 3) @ posed.sh, expected, atol=1e-10)
    skin = Skin(np.zeros((50, 1), np.int32), np.ones((50, 1)), np.zeros((50, 1, 3)))
    skinned = deform_cloud(cloud, skin, np.concatenate([r, np.zeros((3, 1))], axis=1)[None])
    np.testing.assert_allclose(skinned.sh, posed.sh, atol=1e-10)
    still = deform_cloud(cloud, skin, np.concatenate([r, np.zeros((3, 1))], axis=1)[None], rotate_sh=False)
    np.testing.assert_array_equal(still.sh, cloud.sh)
