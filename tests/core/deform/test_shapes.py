"""Covariances: factored exactly, named steadily, never NaN."""

import numpy as np
import pytest

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.deform.covariance import deform_shapes
from gaussianimate.core.deform.deform import deform_cloud, deform_with_report, jacobian_terms, jacobians
from gaussianimate.core.deform.elastic import elastic_limits, inversion_limit
from gaussianimate.core.deform.svd3 import CUBE_ROTATIONS, polar_rotation, svd3
from gaussianimate.core.rotations import matrix_to_quaternion, quaternion_multiply, quaternion_to_matrix
from gaussianimate.core.skinning.skin import Skin, make_skin


def stretches(rng, count, dtype=np.float64, spread=0.4):
    return (np.eye(3) + spread * rng.normal(size=(count, 3, 3))).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_svd_agrees_with_lapack(rng, dtype):
    a = stretches(rng, 3000, dtype)
    u, s, v = svd3(a)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(s, np.linalg.svd(a)[1], atol=16 * eps)
    signed = s * np.stack([np.ones(len(a)), np.ones(len(a)), np.sign(np.linalg.det(a))], axis=1)
    np.testing.assert_allclose((u * signed[:, None]) @ v.swapaxes(1, 2), a, atol=32 * eps)
    for rotation in (u, v):
        product = rotation @ rotation.swapaxes(1, 2)
        np.testing.assert_allclose(product, np.tile(np.eye(3), (3000, 1, 1)), atol=16 * eps)
        assert (np.linalg.det(rotation) > 0).all()


def test_svd_of_singular_matrices_has_orthonormal_axes(rng):
    a = stretches(rng, 6)
    a[0] = 0
    a[1] = np.outer([1, 2, 3], [4, 5, 6])
    a[2, :, 1] = 0
    a[3] = np.diag([0, 0, 1])
    a[4] *= 1e-30
    a[5] *= 1e25
    u, s, v = svd3(a.astype(np.float32))
    for rotation in (u, v):
        np.testing.assert_allclose(
            rotation @ rotation.swapaxes(1, 2), np.tile(np.eye(3), (6, 1, 1)), atol=2e-6
        )
    np.testing.assert_allclose(s, np.linalg.svd(a)[1], rtol=1e-5, atol=1e-5)


def test_polar_is_the_nearest_rotation(rng, make):
    a = stretches(rng, 200, spread=1.0)
    assert (np.linalg.det(a) < 0).any()
    p = polar_rotation(a)
    np.testing.assert_allclose(np.linalg.det(p), 1, atol=1e-12)
    overlap = np.einsum("nab,nab->n", p, a)
    for turn in make.rotations(rng, 50, angle=0.3):
        assert (np.einsum("nab,nab->n", turn @ p, a) <= overlap + 1e-12).all()


def test_cube_has_24_rotations():
    assert len(np.unique(CUBE_ROTATIONS.reshape(24, 9), axis=0)) == 24
    np.testing.assert_allclose(np.linalg.det(CUBE_ROTATIONS), 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rest_pose_returns_the_very_cloud(rng, make, dtype):
    cloud = make.cloud(rng, 500, dtype=dtype)
    cloud.rotations[::2] *= -1  # either sign survives
    skin = make.field(rng, 4).skin(cloud.positions, dtype)
    posed = deform_cloud(cloud, skin, np.repeat(np.eye(3, 4)[None], 4, axis=0))
    for name in GaussianCloud.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(posed, name), getattr(cloud, name))


def test_almost_at_rest_keeps_names_and_signs(rng, make):
    """Just beyond what counts as the identity, axes are found anew and must come out as they were."""
    cloud = make.cloud(rng, 500, dtype=np.float32)
    nudge = np.eye(3) + 3e-5 * rng.normal(size=(500, 3, 3))
    shapes = deform_shapes(cloud.rotations, cloud.scales, cloud.sh, nudge.astype(np.float32))
    np.testing.assert_allclose(shapes.scales, cloud.scales, rtol=3e-4)
    apart = np.abs(np.subtract.outer(np.arange(3), np.arange(3)))[None] > 0
    gap = np.abs(cloud.scales[:, :, None] / cloud.scales[:, None, :] - 1)
    distinct = np.where(apart, gap, 1).min(axis=(1, 2)) > 0.1
    np.testing.assert_allclose(shapes.rotations[distinct], cloud.rotations[distinct], atol=5e-3)
    np.testing.assert_allclose(shapes.sh, cloud.sh, atol=2e-3)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-10)])
@pytest.mark.parametrize("spread", [0.4, 1.0])
def test_covariance_is_factored_exactly(rng, make, dtype, tolerance, spread):
    cloud, r = make.cloud(rng, 2000, dtype=dtype), stretches(rng, 2000, dtype, spread)
    shapes = deform_shapes(cloud.rotations, cloud.scales, None, r)
    r = r.astype(np.float64)
    expected = r @ make.covariance(cloud.rotations, cloud.scales) @ r.swapaxes(1, 2)
    found = make.covariance(shapes.rotations, shapes.scales)
    error = np.abs(found - expected).max(axis=(1, 2)) / np.abs(expected).max(axis=(1, 2))
    assert error.max() < tolerance
    np.testing.assert_allclose(np.linalg.norm(shapes.rotations, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(shapes.inverted, np.linalg.det(r) <= 0)


@pytest.mark.parametrize("wobble", [0.0, 1e-4])
def test_pure_rotation_keeps_scales(rng, make, wobble):
    """Exact rotations take the short way; almost-rotations must give the same by the long one."""
    cloud, turns = make.cloud(rng, 500), make.rotations(rng, 500)
    r = turns @ (np.eye(3) + 1e-9 * wobble * rng.normal(size=(500, 3, 3)))
    shapes = deform_shapes(cloud.rotations, cloud.scales, None, r)
    np.testing.assert_allclose(shapes.scales, cloud.scales, rtol=1e-6)
    expected = quaternion_multiply(matrix_to_quaternion(turns), cloud.rotations)
    same = np.abs(np.einsum("ni,ni->n", shapes.rotations, expected))
    np.testing.assert_allclose(same, 1, atol=1e-6)


def test_single_precision_keeps_the_thinnest_scales(rng, make):
    count = 20000
    q = make.cloud(rng, count, dtype=np.float32).rotations
    s = (10 ** rng.uniform(-6, 0, (count, 3))).astype(np.float32)
    r = stretches(rng, count, np.float32)
    found = np.sort(deform_shapes(q, s, None, r).scales, axis=1)
    product = r.astype(np.float64) @ quaternion_to_matrix(q.astype(np.float64)) * s[:, None, :]
    truth = np.sort(svd3(product)[1], axis=1)
    assert np.quantile(np.abs(found - truth) / truth, 0.99) < 1e-5


def test_degenerate_splats_stay_finite_and_are_reported(rng, make):
    cloud = make.cloud(rng, 6, dtype=np.float32)
    cloud.scales[0] = 0
    cloud.scales[1, 1] = 0
    cloud.scales[2, :2] = 0
    r = stretches(rng, 6, np.float32)
    r[3] = np.nan
    r[4] = 1e30
    r[5] = -np.eye(3)
    shapes = deform_shapes(cloud.rotations, cloud.scales, cloud.sh, r)
    for array in (shapes.rotations, shapes.scales, shapes.sh):
        assert np.isfinite(array).all()
    np.testing.assert_allclose(np.linalg.norm(shapes.rotations, axis=1), 1, atol=1e-6)
    assert shapes.degenerate.tolist() == [False, False, False, True, True, False]
    assert shapes.inverted[5]
    np.testing.assert_array_equal(shapes.scales[3:5], cloud.scales[3:5])
    assert (np.sort(shapes.scales[1])[:1] < 1e-7).all() and (np.sort(shapes.scales[2])[:2] < 1e-7).all()


def test_a_broken_bone_leaves_its_splats_at_rest(rng, make):
    cloud, transforms = make.cloud(rng, 40, dtype=np.float32), make.transforms(rng, 3)
    skin = make_skin(cloud.positions, np.arange(40)[:, None] % 3, np.ones((40, 1)))
    transforms[1, 0, 3] = np.nan
    posed, report = deform_with_report(cloud, skin, transforms)
    broken = np.arange(40) % 3 == 1
    np.testing.assert_array_equal(report.degenerate, broken)
    assert len(report.notes) == 1 and report.notes[0].startswith("13 splats")
    for name in GaussianCloud.__dataclass_fields__:
        assert np.isfinite(getattr(posed, name)).all() and len(getattr(posed, name)) == 40
        np.testing.assert_array_equal(getattr(posed, name)[broken], getattr(cloud, name)[broken])


def test_a_collapsed_bone_flattens_but_never_breaks(rng, make):
    """A pose that makes covariances singular: every array stays whole, no scale falls to zero."""
    cloud = make.cloud(rng, 50, dtype=np.float32)
    transforms = np.eye(3, 4)[None] * np.array([1, 1, 0])[:, None]
    skin = make_skin(cloud.positions, np.zeros((50, 1)), np.ones((50, 1)))
    posed, report = deform_with_report(cloud, skin, transforms)
    assert report.inverted.all() and not report.degenerate.any()
    assert (posed.scales > 0).all() and np.isfinite(np.log(posed.scales)).all()
    assert np.abs(posed.positions[:, 2]).max() < 1e-6


def test_half_bent_elbow_bakes_the_deformed_covariance(rng, make):
    """Two bones at equal weight, one bent by 90 degrees: the blend is no rotation."""
    cloud = make.cloud(rng, 300, dtype=np.float32)
    transforms = np.repeat(np.eye(3, 4)[None], 2, axis=0)
    transforms[1, :, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    indices = np.tile(np.array([0, 1], np.int32), (300, 1))
    skin = Skin(indices, np.full((300, 2), 0.5, np.float32), np.zeros((300, 2, 3), np.float32))
    posed = deform_cloud(cloud, skin, transforms)
    np.testing.assert_allclose(np.linalg.norm(posed.rotations, axis=1), 1, atol=1e-6)
    r = transforms[:, :, :3].mean(axis=0)
    expected = r @ make.covariance(cloud.rotations, cloud.scales) @ r.T
    eigenvalues = np.linalg.eigvalsh(expected)
    np.testing.assert_allclose(np.sort(posed.scales**2, axis=1), eigenvalues, rtol=1e-4, atol=1e-9)
    # What a viewer builds from a file (float32 logarithms of scales, quaternion) is the deformed covariance.
    stored = np.exp(np.log(posed.scales).astype(np.float32))
    found = make.covariance(posed.rotations, stored)
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()


def test_elastic_limits_prevent_inversion_and_overstretch(rng, make):
    cloud, transforms = make.cloud(rng, 600), make.transforms(rng, 4, angle=1.0)
    skin = make.field(rng, 4).skin(cloud.positions)
    skin = Skin(skin.indices, skin.weights, 4 * skin.gradients)
    rigid, elastic = jacobian_terms(cloud.positions, skin, transforms)
    upright = np.linalg.det(rigid) > 1e-6
    assert (np.linalg.det(rigid + elastic)[upright] < 0).sum() > 50, "the pose must try to invert"
    eta = elastic_limits(cloud, skin, transforms, stretch_cap=None)
    for part in (0.25, 0.5, 0.75, 1.0):
        assert (np.linalg.det(jacobians(cloud.positions, skin, transforms, part * eta))[upright] > 0).all()

    def longest(r):
        shape = quaternion_to_matrix(cloud.rotations) * cloud.scales[:, None]
        return np.linalg.svd(r @ shape)[1][:, 0]

    cap = 1.5
    assert (longest(rigid + elastic) > cap * longest(rigid)).sum() > 50, "the pose must try to overstretch"
    eta = elastic_limits(cloud, skin, transforms, stretch_cap=cap, inversion_margin=None)
    ratio = longest(jacobians(cloud.positions, skin, transforms, eta)) / longest(rigid)
    assert ratio.max() <= cap * (1 + 1e-5)
    limited = (eta < 1) & (eta > 0)
    np.testing.assert_allclose(ratio[limited], cap, rtol=1e-3)  # no more is taken than must be
    both = elastic_limits(cloud, skin, transforms, elastic=0.5)
    assert both.max() <= 0.5 and both.min() >= 0


def test_inversion_limit_of_two_influences_is_the_closed_form(rng, make):
    transforms, p = make.transforms(rng, 2, angle=1.0), rng.normal(size=(200, 3))
    skin = make.field(rng, 2).skin(p)
    rigid, elastic = jacobian_terms(p, skin, transforms)
    u = p @ (transforms[0] - transforms[1])[:, :3].T + (transforms[0] - transforms[1])[:, 3]
    slope = np.einsum("na,nab,nb->n", skin.gradients[:, 0], np.linalg.inv(rigid), u)
    expected = np.where(slope < 0, -1 / np.minimum(slope, -1e-300), np.inf)
    np.testing.assert_allclose(inversion_limit(rigid, elastic), expected, rtol=1e-8)
