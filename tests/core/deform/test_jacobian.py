"""The map of points and its derivative."""

import numpy as np
import pytest

from gaussianimate.core.deform.deform import deform_cloud, deform_points, jacobian_terms, jacobians
from gaussianimate.core.errors import Cancelled, RigError
from gaussianimate.core.rotations import affine_multiply
from gaussianimate.core.skinning.skin import Skin


@pytest.mark.parametrize("bones", [2, 3, 4, 6])
def test_jacobian_is_the_derivative_of_the_point_map(rng, make, bones):
    field, transforms, p = make.field(rng, bones), make.transforms(rng, bones), rng.normal(size=(200, 3))
    truth = make.finite_differences(lambda x: deform_points(x, field.skin(x), transforms), p)
    r = jacobians(p, field.skin(p), transforms)
    assert np.abs(r - truth).max() < 1e-8 * np.abs(truth).max()


def test_elastic_scales_only_the_elastic_term(rng, make):
    field, transforms, p = make.field(rng, 3), make.transforms(rng, 3), rng.normal(size=(50, 3))
    rigid, elastic = jacobian_terms(p, field.skin(p), transforms)
    eta = rng.random(50)
    np.testing.assert_allclose(
        jacobians(p, field.skin(p), transforms, eta), rigid + eta[:, None, None] * elastic, atol=1e-14
    )
    mean = np.einsum("nk,kab->nab", field.skin(p).weights, transforms[:, :, :3])
    np.testing.assert_allclose(rigid, mean, atol=1e-14)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_common_rigid_motion_has_no_elastic_part(rng, make, dtype, tolerance):
    motion = make.transforms(rng, 1)
    transforms, cloud = np.repeat(motion, 4, axis=0), make.cloud(rng, 300, dtype=dtype)
    skin = make.field(rng, 4).skin(cloud.positions.astype(np.float64), dtype)
    rigid, elastic = jacobian_terms(cloud.positions, skin, transforms)
    assert np.abs(elastic).max() < tolerance
    turn = motion[0, :, :3]
    for eta in (0.0, 1.0, 3.0):
        posed = deform_cloud(cloud, skin, transforms, elastic=eta)
        expected = turn @ make.covariance(cloud.rotations, cloud.scales) @ turn.T
        found = make.covariance(posed.rotations, posed.scales)
        assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()


def test_moving_the_whole_rig_moves_the_result(rng, make):
    field, transforms, p = make.field(rng, 4), make.transforms(rng, 4), rng.normal(size=(100, 3))
    whole = make.transforms(rng, 1, reach=3)[0]
    skin, moved = field.skin(p), affine_multiply(whole, transforms)
    before, after = deform_points(p, skin, transforms), deform_points(p, skin, moved)
    np.testing.assert_allclose(after, before @ whole[:, :3].T + whole[:, 3], atol=1e-10)
    np.testing.assert_allclose(
        jacobians(p, skin, moved), whole[:, :3] @ jacobians(p, skin, transforms), atol=1e-10
    )


def test_centred_form_equals_the_plain_one_at_the_origin(rng, make):
    transforms, p = make.transforms(rng, 4), rng.normal(size=(100, 3))
    skin = make.field(rng, 4).skin(p)
    posed = np.einsum("kab,nb->nka", transforms[:, :, :3], p) + transforms[:, :, 3]
    plain = np.einsum("nka,nkb->nab", posed, skin.gradients)
    elastic = jacobian_terms(p, skin, transforms)[1]
    assert np.abs(elastic - plain).max() < 1e-12 * np.abs(plain).max()


def test_linear_weights_and_translations_give_an_affine_map(rng):
    slope = np.array([0.3, 0.1, -0.2])
    transforms = np.repeat(np.eye(3, 4)[None], 2, axis=0)
    transforms[0, :, 3] = 1, 2, 3

    def skin(x):
        weights = np.stack([0.5 + x @ slope, 0.5 - x @ slope], axis=1)
        indices = np.tile(np.array([0, 1], np.int32), (len(x), 1))
        return Skin(indices, weights, np.tile(np.stack([slope, -slope]), (len(x), 1, 1)))

    p = 0.5 * rng.normal(size=(20, 3))
    y = p + 0.3 * rng.normal(size=p.shape)
    linear = np.einsum("nab,nb->na", jacobians(p, skin(p), transforms), y - p)
    np.testing.assert_allclose(
        deform_points(y, skin(y), transforms), deform_points(p, skin(p), transforms) + linear, atol=1e-12
    )


def test_two_influences_have_a_rank_one_elastic_term_and_a_linear_determinant(rng, make):
    transforms, p = make.transforms(rng, 2), rng.normal(size=(100, 3))
    skin = make.field(rng, 2).skin(p)
    rigid, elastic = jacobian_terms(p, skin, transforms)
    u = p @ (transforms[0] - transforms[1])[:, :3].T + (transforms[0] - transforms[1])[:, 3]
    np.testing.assert_allclose(elastic, u[:, :, None] * skin.gradients[:, :1], atol=1e-10)
    det = [np.linalg.det(rigid + eta * elastic) for eta in (0, 0.5, 1)]
    np.testing.assert_allclose(det[1], 0.5 * (det[0] + det[2]), atol=1e-10)


def test_unused_slots_change_nothing(rng, make):
    cloud, transforms = make.cloud(rng, 200, dtype=np.float32), make.transforms(rng, 6)
    two = make.field(rng, 2).skin(cloud.positions.astype(np.float64), np.float32)
    two = Skin(two.indices + 3, two.weights, two.gradients)
    four = Skin(
        np.pad(two.indices, ((0, 0), (0, 2))),
        np.pad(two.weights, ((0, 0), (0, 2))),
        np.pad(two.gradients, ((0, 0), (0, 2), (0, 0))),
    )
    a, b = deform_cloud(cloud, two, transforms), deform_cloud(cloud, four, transforms)
    for name in ("positions", "rotations", "scales", "sh"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-6)


def test_single_precision_holds_far_from_the_origin(rng, make):
    p = rng.normal(size=(500, 3))
    skin, transforms, far = make.field(rng, 4).skin(p), make.transforms(rng, 4), np.array([1000.0, 0, 0])
    there, back = np.eye(3, 4), np.eye(3, 4)
    there[:, 3], back[:, 3] = far, -far
    moved = affine_multiply(affine_multiply(there, transforms), back)
    single = Skin(skin.indices, skin.weights.astype(np.float32), skin.gradients.astype(np.float32))
    found = jacobians((p + far).astype(np.float32), single, moved)
    truth = jacobians((p + far).astype(np.float32).astype(np.float64), skin, moved)
    assert np.abs(found - truth).max() < 2e-5 * np.abs(truth).max()


def test_chunks_do_not_matter(rng, make):
    cloud, transforms = make.cloud(rng, 101, dtype=np.float32), make.transforms(rng, 4)
    skin = make.field(rng, 4).skin(cloud.positions, np.float32)
    whole, parts = deform_cloud(cloud, skin, transforms), deform_cloud(cloud, skin, transforms, chunk=10)
    for name in ("positions", "rotations", "scales", "sh"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))


def test_misfits_are_told_in_one_sentence(rng, make):
    cloud, transforms = make.cloud(rng, 10), make.transforms(rng, 4)
    skin = make.field(rng, 4).skin(cloud.positions)
    with pytest.raises(RigError, match="names bone 3, but there are only 3 bone transforms"):
        deform_cloud(cloud, skin, transforms[:3])
    with pytest.raises(RigError, match="skin has 5 rows but the cloud 10"):
        deform_cloud(cloud, skin.take(np.arange(5)), transforms)
    with pytest.raises(RigError, match="elastic strength has shape"):
        deform_cloud(cloud, skin, transforms, elastic=np.ones(3))


def test_no_bones_or_no_splats(rng, make):
    cloud = make.cloud(rng, 10)
    static = Skin(np.full((10, 1), -1, np.int32), np.ones((10, 1)), np.zeros((10, 1, 3)))
    posed = deform_cloud(cloud, static, np.zeros((0, 3, 4)))
    np.testing.assert_array_equal(posed.positions, cloud.positions)
    none = np.zeros(10, bool)
    assert len(deform_cloud(cloud.take(none), static.take(none), make.transforms(rng, 2))) == 0


def test_progress_is_told_and_may_cancel(rng, make):
    cloud, transforms = make.cloud(rng, 100), make.transforms(rng, 4)
    skin, told = make.field(rng, 4).skin(cloud.positions), []
    deform_cloud(cloud, skin, transforms, chunk=25, progress=lambda stage, part: told.append(part))
    assert told == [0, 0.25, 0.5, 0.75]

    def cancel(stage, part):
        raise Cancelled("Cancelled")

    with pytest.raises(Cancelled):
        deform_cloud(cloud, skin, transforms, progress=cancel)
