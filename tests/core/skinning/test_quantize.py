"""Packed skins keep their bounds."""

import numpy as np
import pytest

from gaussianimate.core.deform.deform import deform_points, jacobian_terms
from gaussianimate.core.errors import RigError
from gaussianimate.core.rotations import normalize_quaternions, quaternion_to_matrix
from gaussianimate.core.skinning.quantize import PAPER10, compact_layout, pack, unpack
from gaussianimate.core.skinning.skin import STATIC, Skin


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def random_skin(rng, influences=2, count=20000, bones=30) -> Skin:
    indices = np.argsort(rng.random((count, bones)), axis=1)[:, :influences].astype(np.int32)
    weights = np.sort(rng.dirichlet(np.ones(influences), count), axis=1)[:, ::-1]
    gradients = rng.normal(size=(count, influences, 3)) * rng.random((count, 1, 1)) ** 3
    gradients -= gradients.mean(axis=1, keepdims=True)
    return Skin(indices, weights, gradients)


def double(skin: Skin) -> Skin:
    return Skin(skin.indices, skin.weights.astype(float), skin.gradients.astype(float))


def test_sizes():
    assert PAPER10.itemsize == 10
    assert [compact_layout(k).itemsize for k in (2, 3, 4)] == [10, 19, 28]


STEPS = [("paper10", 510, 254), ("compact", 131070, 65534)]


@pytest.mark.parametrize(("layout", "weight_step", "gradient_step"), STEPS)
def test_errors_stay_within_the_bounds(rng, layout, weight_step, gradient_step):
    skin, p = random_skin(rng), rng.normal(size=(20000, 3))
    turns = quaternion_to_matrix(normalize_quaternions(rng.normal(size=(30, 4))))
    transforms = np.concatenate([turns, rng.normal(size=(30, 3, 1))], axis=-1)
    coarse = double(unpack(pack(skin, layout)))
    np.testing.assert_array_equal(coarse.indices, skin.indices)
    posed = [np.einsum("nab,nb->na", transforms[i, :, :3], p) + transforms[i, :, 3] for i in skin.indices.T]
    u, reach = np.linalg.norm(posed[0] - posed[1], axis=1), np.abs(skin.gradients).max()
    shift = np.linalg.norm(deform_points(p, coarse, transforms) - deform_points(p, skin, transforms), axis=1)
    assert (shift <= u / weight_step + 1e-6).all()
    assert shift.max() > 0.3 * (u / weight_step).max(), "a bound never approached is no bound"
    change = np.linalg.norm(coarse.gradients - skin.gradients, axis=-1)
    assert change.max() <= np.sqrt(3) * reach / gradient_step + 1e-6
    same = Skin(skin.indices, skin.weights, coarse.gradients)
    bend = jacobian_terms(p, same, transforms)[1] - jacobian_terms(p, skin, transforms)[1]
    bound = u * np.sqrt(3) * reach / gradient_step + 1e-6
    assert (np.linalg.norm(bend, axis=(1, 2)) <= bound * (1 + 1e-6)).all()


@pytest.mark.parametrize("influences", [1, 2, 3, 4])
def test_round_trip_of_compact(rng, influences):
    skin = random_skin(rng, influences, count=2000)
    coarse = unpack(pack(skin))
    np.testing.assert_allclose(coarse.weights[:, :influences], skin.weights, atol=influences / 65535)
    reach = max(np.abs(skin.gradients).max(), 1e-9)
    tolerance = influences * reach / 32767
    np.testing.assert_allclose(coarse.gradients[:, :influences], skin.gradients, atol=tolerance)
    np.testing.assert_allclose(coarse.weights.sum(axis=1), 1, atol=1e-6)
    assert np.abs(coarse.gradients.sum(axis=1)).max() < 1e-6 * reach


def test_paper_integers_sum_exactly(rng):
    packed = pack(random_skin(rng), "paper10").records
    assert (packed["weights"].astype(int).sum(axis=1) == 255).all()
    assert not packed["gradients"].astype(int).sum(axis=1).any()


def test_static_bone_survives_and_large_rigs_are_refused(rng):
    skin = random_skin(rng, count=10)
    skin.indices[:, 1] = STATIC
    for layout in ("paper10", "compact"):
        assert (unpack(pack(skin, layout)).indices[:, 1] == STATIC).all()
    skin.indices[3, 0] = 255
    with pytest.raises(RigError, match="at most 255 bones"):
        pack(skin)


@pytest.mark.parametrize("layout", ["paper10", "compact"])
def test_rows_without_weight_are_static(rng, layout):
    skin = random_skin(rng, count=10)
    skin.weights[3] = 0
    held = unpack(pack(skin, layout))
    assert (held.indices[3][held.weights[3] > 0] == STATIC).all()
    assert held.weights[3].sum() == 1
    assert not held.gradients[3].any()
    np.testing.assert_array_equal(np.delete(held.indices, 3, axis=0), np.delete(skin.indices, 3, axis=0))
