"""Skins from weights of any origin."""

import numpy as np
import pytest

from gaussianimate.core.errors import RigError
from gaussianimate.core.skinning.skin import STATIC, Skin, make_skin
from gaussianimate.core.skinning.weights import complete, merge_duplicates, normalize, truncate


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def sound(skin: Skin) -> None:
    assert skin.indices.dtype == np.int32 and skin.weights.dtype == skin.gradients.dtype == np.float32
    assert np.isfinite(skin.weights).all() and np.isfinite(skin.gradients).all()
    assert (skin.weights >= 0).all()
    np.testing.assert_allclose(skin.weights.sum(axis=1), 1, atol=1e-6)
    size = max(1, np.abs(skin.gradients).max(initial=0))
    assert np.abs(skin.gradients.sum(axis=1)).max(initial=0) < 1e-6 * size
    for row in np.where(skin.weights > 0, skin.indices, -1 - np.arange(1, skin.influences + 1)):
        assert len(set(row)) == len(row), "a bone appears twice"


def test_normalised_gradients_sum_to_zero_also_when_truncated(rng):
    weights, gradients = rng.random((500, 6)) + 0.01, rng.normal(size=(500, 6, 3))
    indices = np.tile(np.arange(6, dtype=np.int32), (500, 1))
    weights, gradients = normalize(weights, gradients)
    assert np.abs(gradients.sum(axis=1)).max() < 1e-12
    for count in (1, 2, 4, 6, 9):
        kept, w, g, lost = truncate(indices, weights, gradients, count)
        assert kept.shape == (500, min(count, 6))
        np.testing.assert_allclose(w.sum(axis=1), 1, atol=1e-12)
        assert np.abs(g.sum(axis=1)).max() < 1e-12
        assert (np.diff(w, axis=1) <= 0).all()
        top = np.sort(weights, axis=1)[:, ::-1][:, :count]
        np.testing.assert_allclose(lost, np.maximum(1 - top.sum(axis=1), 0), atol=1e-12)
        np.testing.assert_allclose(w, top / top.sum(axis=1, keepdims=True), atol=1e-12)


def test_gradients_are_those_of_the_truncated_field(rng):
    """Cut to two influences, weights are functions of place whose slopes the projection must give."""
    slopes, p = rng.normal(size=(3, 3)) * 0.1, rng.normal(size=(40, 3)) * 0.1
    indices = np.tile(np.arange(3, dtype=np.int32), (40, 1))
    base = np.array([0.6, 0.3, 0.1])

    def cut(x):
        w = base + x @ slopes.T
        w, g = normalize(w, np.tile(slopes, (len(x), 1, 1)))
        _, w, g, _ = truncate(indices, w, g, 2)
        return w, g

    step = 1e-6
    for axis in range(3):
        shift = step * np.eye(3)[axis]
        found = (cut(p + shift)[0] - cut(p - shift)[0]) / (2 * step)
        np.testing.assert_allclose(cut(p)[1][..., axis], found, atol=1e-8)


def test_ties_go_to_the_lower_bone():
    indices = np.array([[5, 2, 9, 1]], np.int32)
    kept = truncate(indices, np.full((1, 4), 0.25), np.zeros((1, 4, 3)), 2)[0]
    assert kept.tolist() == [[1, 2]]


def test_repeated_bones_are_merged():
    indices = np.array([[4, 7, 4, 4]], np.int32)
    weights, gradients = np.array([[0.1, 0.5, 0.2, 0.2]]), np.arange(12.0).reshape(1, 4, 3)
    i, w, g = merge_duplicates(indices, weights, gradients)
    assert w[0][i[0] == 4].sum() == pytest.approx(0.5) and (w > 0).sum() == 2
    np.testing.assert_allclose(g[0, 0], gradients[0, [0, 2, 3]].sum(axis=0))
    skin = make_skin(np.zeros((1, 3)), indices, weights, gradients)
    sound(skin)
    assert skin.weights[0, :2].tolist() == [0.5, 0.5] and sorted(skin.indices[0, :2]) == [4, 7]


def test_completion_makes_feathers_count(rng):
    """A splat that one bone touches by 0.2 follows it by 0.2; plain normalising would take it wholly."""
    p = rng.normal(size=(4, 3))
    indices, weights = np.zeros((4, 1), np.int32), np.array([[0.2], [0.0], [1.0], [1.7]])
    gradients = rng.normal(size=(4, 1, 3))
    skin = make_skin(p, indices, weights, gradients, completion="static")
    sound(skin)
    moved = np.where(skin.indices == 0, skin.weights, 0).sum(axis=1)
    np.testing.assert_allclose(moved, [0.2, 0, 1, 1], atol=1e-6)
    slope = np.where((skin.indices == 0)[..., None], skin.gradients, 0).sum(axis=1)
    np.testing.assert_allclose(slope[0], gradients[0, 0], atol=1e-6)
    np.testing.assert_allclose(slope[3], 0, atol=1e-6)  # one bone alone: weight 1 everywhere
    plain = make_skin(p, indices, weights, gradients, completion="none")
    np.testing.assert_allclose(np.where(plain.indices == 0, plain.weights, 0).sum(axis=1), [1, 0, 1, 1])
    named = make_skin(p, indices, weights, gradients, completion="static", root=3)
    assert (named.indices[0][named.weights[0] > 0] == [3, 0]).all()
    i, w, g = complete(indices, weights, gradients, STATIC)
    assert (w.sum(axis=1) >= 1 - 1e-12).all() and i.shape == (4, 2) and g.shape == (4, 2, 3)


def test_unweighted_and_broken_splats_stay_with_the_root(rng):
    p, weights = rng.normal(size=(20, 3)), rng.random((20, 3))
    weights[:3] = 0
    weights[5, 1], weights[6, 0], weights[7, 2] = np.nan, np.inf, -0.5
    skin = make_skin(p, np.tile([0, 1, 2], (20, 1)), weights, bone_count=3)
    sound(skin)
    resting = [0, 1, 2, 5, 6]
    assert (skin.indices[resting, 0] == STATIC).all() and (skin.weights[resting, 0] == 1).all()
    assert len(skin.notes) == 3
    assert any("3 splats without weights" in note for note in skin.notes)
    gradients = rng.normal(size=(20, 3, 3))
    gradients[9, 0, 0] = np.nan
    rooted = make_skin(p, np.tile([0, 1, 2], (20, 1)), weights, gradients, root=2)
    sound(rooted)
    assert (rooted.indices[[0, 5, 9], 0] == 2).all() and (rooted.weights[[0, 5, 9], 0] == 1).all()


def test_nine_influences_of_sum_1_7(rng):
    weights = rng.random((1, 9))
    weights *= 1.7 / weights.sum()
    skin = make_skin(np.zeros((1, 3)), np.arange(9)[None], weights)
    sound(skin)
    assert skin.influences == 4
    order = np.argsort(-weights[0])[:4]
    assert skin.indices[0].tolist() == order.tolist()
    np.testing.assert_allclose(skin.weights[0], weights[0, order] / weights[0, order].sum(), atol=1e-6)
    lost = 100 * (1 - weights[0, order].sum() / 1.7)
    assert len(skin.notes) == 1
    assert "more than 4 influences" in skin.notes[0] and f"{lost:.1f} %" in skin.notes[0]


def test_bad_input_is_told_in_one_sentence(rng):
    p, indices, weights = np.zeros((4, 3)), np.zeros((4, 2), int), np.ones((4, 2))
    indices[2, 1] = 7
    with pytest.raises(RigError, match="Splat 2 is weighted to bone 7, but the rig has bones 0 to 4"):
        make_skin(p, indices, weights, bone_count=5)
    with pytest.raises(RigError, match="bone -2"):
        make_skin(p, indices - 2, weights)
    with pytest.raises(RigError, match="do not fit"):
        make_skin(p[:3], indices, weights)
    with pytest.raises(RigError, match="gradients have shape"):
        make_skin(p, indices, weights, np.zeros((4, 2)))
    with pytest.raises(RigError, match="root bone 9"):
        make_skin(p, np.zeros((4, 2)), weights, bone_count=5, root=9)
    sound(make_skin(np.zeros((0, 3)), np.zeros((0, 4)), np.zeros((0, 4))))
