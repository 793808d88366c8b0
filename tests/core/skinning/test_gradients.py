"""Weight gradients by moving least squares."""

import numpy as np
import pytest

from gaussianimate.core.skinning.gradients import weight_gradients


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def linear_weights(p, slope):
    a = 0.5 + p @ slope
    return np.tile(np.array([3, 8], np.int32), (len(p), 1)), np.stack([a, 1 - a], axis=1)


def mostly_exact(found, slope, tolerance=1e-9):
    """A few points see their neighbours in a plane or a line and get only a part of the slope."""
    error = np.linalg.norm(found - slope, axis=1)
    assert np.quantile(error, 0.97) < tolerance
    assert error.max() < np.linalg.norm(slope)


def test_linear_fields_are_found_in_a_volume(rng):
    p, slope = rng.random((2000, 3)), np.array([0.2, -0.1, 0.15])
    indices, weights = linear_weights(p, slope)
    indices[::2], weights[::2] = indices[::2, ::-1], weights[::2, ::-1]  # slots in any order
    g = weight_gradients(p, indices, weights)
    own = np.where((indices == 3)[..., None], g, 0).sum(axis=1)
    mostly_exact(own, slope)
    assert np.abs(g.sum(axis=1)).max() < 1e-12


def test_smooth_fields_are_found_on_a_surface(rng):
    """On a sphere the tangential slope is found; across the surface there is none."""
    p = rng.normal(size=(5000, 3))
    p /= np.linalg.norm(p, axis=1, keepdims=True)
    a = 0.5 + 0.4 * np.sin(2 * p[:, 0])
    indices = np.tile(np.array([0, 1], np.int32), (5000, 1))
    g = weight_gradients(p, indices, np.stack([a, 1 - a], axis=1))[:, 0]
    truth = np.zeros_like(p)
    truth[:, 0] = 0.8 * np.cos(2 * p[:, 0])
    truth -= (truth * p).sum(axis=1, keepdims=True) * p
    error = np.linalg.norm(g - truth, axis=1)
    assert np.median(error) < 0.02 and np.quantile(error, 0.99) < 0.1
    assert np.abs((g * p).sum(axis=1)).max() < 0.15


@pytest.mark.parametrize("noise", [0, 1e-4])
def test_flat_sheets_give_tangential_gradients(rng, noise):
    p, slope = rng.random((1000, 3)) * [1, 1, noise], np.array([0.3, 0.1, 0.0])
    indices, weights = linear_weights(p, slope)
    g = weight_gradients(p, indices, weights)
    mostly_exact(g[:, 0], slope, tolerance=1e-3)


def test_lines_duplicates_and_tiny_clouds(rng):
    line = np.linspace(0, 1, 50)[:, None] * np.array([[1.0, 0, 0]])
    g = weight_gradients(line, *linear_weights(line, np.array([0.3, 0, 0])))
    np.testing.assert_allclose(g[:, 0], np.tile([0.3, 0, 0], (50, 1)), atol=1e-6)
    p, slope = rng.random((300, 3)), np.array([0.2, -0.1, 0.15])
    crowd = np.repeat(p, 20, axis=0)  # 20 points in every place
    g = weight_gradients(crowd, *linear_weights(crowd, slope))
    mostly_exact(g[:, 0], slope)
    same = np.ones((30, 3))
    assert not weight_gradients(same, *linear_weights(same, slope)).any()
    assert weight_gradients(p[:2], *linear_weights(p[:2], slope)).shape == (2, 2, 3)
    assert weight_gradients(p[:0], *linear_weights(p[:0], slope)).shape == (0, 2, 3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_points_that_are_nowhere_are_no_neighbours(rng, value):
    p = rng.random((600, 3))
    indices, weights = linear_weights(p, np.array([0.2, -0.1, 0.15]))
    lost = np.zeros(600, bool)
    lost[[0, 5, 599]] = True
    broken = np.where(lost[:, None], [0.5, value, 0.5], p)
    g = weight_gradients(broken, indices, weights, chunk=100)
    assert not g[lost].any()
    expected = weight_gradients(p[~lost], indices[~lost], weights[~lost])
    np.testing.assert_array_equal(g[~lost], expected)
    assert not weight_gradients(np.full_like(p, value), indices, weights).any()


def test_units_scale_the_gradients(rng):
    p, slope = rng.random((500, 3)), np.array([0.2, -0.1, 0.15])
    indices, weights = linear_weights(p, slope)
    small = weight_gradients(p, indices, weights)
    for size in (1e-6, 1e6):
        np.testing.assert_allclose(weight_gradients(size * p, indices, weights) * size, small, atol=1e-6)


def test_chunks_do_not_matter(rng):
    p = rng.random((500, 3))
    indices, weights = linear_weights(p, np.array([0.2, -0.1, 0.15]))
    np.testing.assert_array_equal(
        weight_gradients(p, indices, weights), weight_gradients(p, indices, weights, chunk=37)
    )


def test_all_weight_on_one_bone_has_no_gradient(rng):
    p = rng.random((200, 3))
    g = weight_gradients(p, np.tile(np.array([2, 0], np.int32), (200, 1)), np.tile([1.0, 0.0], (200, 1)))
    assert np.abs(g).max() < 1e-12


def test_sheets_that_touch_do_not_tell_each_other_slopes(rng):
    """Sleeve and body: two sheets a third of the splats' distance apart, each with bones of its own."""
    p = rng.random((4000, 3)) * [1, 1, 0]
    sleeve = np.arange(4000) % 2 == 0
    p[sleeve, 2] = 0.006
    a = 0.5 + 0.3 * p[:, :1]
    weights = np.where(
        sleeve[:, None], np.hstack([a, 1 - a, 0 * a]), np.hstack([0 * a, 0.2 * a, 1 - 0.2 * a])
    )
    slopes = np.zeros((4000, 3, 3))
    slopes[..., 0] = np.where(sleeve[:, None], [0.3, -0.3, 0], [0, 0.06, -0.06])
    every = np.tile(np.array([0, 1, 2], np.int32), (4000, 1))
    for indices, values in ((every, weights), reduced(every, weights)):
        g = weight_gradients(p, indices, values)
        own = np.where(values > 0, indices, 3)
        found = np.zeros((4000, 4, 3))
        for slot in range(3):
            found[np.arange(4000), own[:, slot]] += g[:, slot]
        error = np.linalg.norm(found[:, :3] - slopes, axis=(1, 2))
        assert np.quantile(error, 0.97) < 5e-3 and error.max() < 0.5  # neighbours taken alike: 14 and above


def test_a_steep_step_of_one_sheet_keeps_its_slope(rng):
    """From bone to bone within three times the distance of the points: no two sheets."""
    p = rng.random((4000, 3)) * [1, 1, 0]
    t = np.clip((p[:, 0] - 0.45) / 0.05, 0, 1)
    a, slope = t * t * (3 - 2 * t), 6 * t * (1 - t) / 0.05
    g = weight_gradients(p, np.tile(np.array([0, 1], np.int32), (4000, 1)), np.stack([a, 1 - a], axis=1))
    off = g[:, 0] - slope[:, None] * [1, 0, 0]
    # neighbours taken alike: 0.35; by the likeness of their weights alone: 0.40
    assert np.sqrt((off**2).sum() / (slope**2).sum()) < 0.32


def reduced(indices, weights):
    """Weights without the slots that hold nothing, as skins have them: index 0 in all of those."""
    order = np.argsort(-weights, axis=1, kind="stable")
    weights = np.take_along_axis(weights, order, axis=1)
    return np.where(weights > 0, np.take_along_axis(indices, order, axis=1), 0), weights


def test_unused_slots_change_nothing(rng):
    """They have index 0, and bone 0 may hold the splat in another slot, or its neighbours."""
    p = rng.random((3000, 3))
    a = np.clip(2 * p[:, :1] - 0.5, 0, 1)
    indices, weights = reduced(np.tile(np.array([0, 1], np.int32), (3000, 1)), np.hstack([a, 1 - a]))
    g = weight_gradients(p, indices, weights)
    wide = (0, 0), (0, 2)
    padded = weight_gradients(p, np.pad(indices, wide), np.pad(weights, wide))
    np.testing.assert_array_equal(padded[:, :2], g)
    assert not padded[np.pad(weights, wide) == 0].any()
    steep = (a > 0.2) & (a < 0.8)
    of_bone_0 = np.where((indices == 0)[..., None] & (weights > 0)[..., None], g, 0).sum(axis=1)
    assert np.abs(of_bone_0[steep[:, 0]] - [2, 0, 0]).max() < 0.5
