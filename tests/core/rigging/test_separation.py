"""Bones that hold several places of the body become one bone a place."""

import numpy as np
import pytest

from gaussianimate.core.rigging.decomposition.separation import separate_places
from gaussianimate.core.rigging.decomposition.ssdr import SkinningDecomposition, replay_rmse


@pytest.fixture(scope="module")
def feet():
    """A body (bone 0) on two feet that stand still together (bone 1), blended at the ankles."""
    rng = np.random.default_rng(0)
    body = rng.uniform(-1, 1, (400, 3)) * [1, 1, 0.3] + [0, 2, 0]
    foot = rng.uniform(-0.3, 0.3, (150, 3))
    rest = np.concatenate([body, foot - [0.8, 0, 0], foot + [0.8, 0, 0]])
    strongest = np.repeat([0, 1], [400, 300])
    high = (rest[:, 1] > 0.1) & (strongest == 1)
    weights = np.stack([np.where(high, 0.7, 1.0), np.where(high, 0.3, 0.0)], axis=1)
    indices = np.stack([strongest, np.where(high, 0, 0)], axis=1).astype(np.int32)
    motion = np.tile(np.eye(3, 4), (5, 2, 1, 1))
    motion[:, 0, 0, 3] = np.arange(5) * 0.1
    return rest, SkinningDecomposition(indices, weights, motion, 0.0)


def test_feet_that_move_alike_get_a_bone_each(feet):
    rest, skin = feet
    split = separate_places(rest, skin, 50)
    assert split.transforms.shape[1] == 3
    left, right = split.indices[400:550, 0], split.indices[550:, 0]
    assert len(set(left)) == len(set(right)) == 1 and left[0] != right[0]
    assert (split.indices[:400, 0] == 0).all()
    frames = np.zeros((5, len(rest), 3))
    for one in (skin, split):
        error = replay_rmse(rest, frames, one.indices, one.weights, one.transforms)
        assert error == pytest.approx(replay_rmse(rest, frames, skin.indices, skin.weights, skin.transforms))
    np.testing.assert_array_equal(split.weights, skin.weights)


def test_no_more_bones_than_asked_for(feet):
    rest, skin = feet
    assert separate_places(rest, skin, 2).transforms.shape[1] == 2


def test_neither_order_nor_scale_nor_duplicates_matter(feet):
    rest, skin = feet
    split = separate_places(rest, skin, 50)
    order = np.random.default_rng(1).permutation(len(rest))
    mixed = SkinningDecomposition(skin.indices[order], skin.weights[order], skin.transforms, 0.0)
    again = separate_places(1e3 * rest[order], mixed, 50)
    assert len(np.unique(np.stack([again.indices[:, 0], split.indices[order, 0]], 1), axis=0)) == 3
    twice = SkinningDecomposition(
        np.repeat(skin.indices, 2, axis=0), np.repeat(skin.weights, 2, axis=0), skin.transforms, 0.0
    )
    assert separate_places(np.repeat(rest, 2, axis=0), twice, 50).transforms.shape[1] == 3
