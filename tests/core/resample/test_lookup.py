"""From scales and opacities to children."""

import numpy as np
import pytest

from gaussianimate.core.resample.dictionary import load_dictionary
from gaussianimate.core.resample.grid import OPACITIES, STEP, TARGETS
from gaussianimate.core.resample.lookup import OPAQUE, look_up, nearest_opacity


@pytest.fixture(scope="module")
def dictionary():
    return load_dictionary()


def scales_at(first, second):
    """Standard deviations whose eigenvalue ratios lie at these steps of the table."""
    return 0.01 * 10 ** (0.5 * STEP * np.stack([first, second, np.zeros_like(first)], axis=1))


def picture_error(found, opacities, rays=300):
    """Root mean square over rays of the difference of alpha to the parent's, over its opacity, (N,)."""
    rng = np.random.default_rng(0)
    ends = rng.normal(size=(2, rays, 1, 1, 3))
    ends *= 4 / np.linalg.norm(ends, axis=-1, keepdims=True)
    direction = ends[1] - ends[0]
    a, d = (ends[0] - found.offsets) / found.deviations, direction / found.deviations
    nearest = (a**2).sum(-1) - (a * d).sum(-1) ** 2 / (d**2).sum(-1)
    alpha = 1 - np.prod(1 - found.opacities * np.exp(-0.5 * nearest), axis=-1)  # (R, N)
    across = (ends[0] ** 2).sum(-1) - (ends[0] * direction).sum(-1) ** 2 / (direction**2).sum(-1)
    return np.sqrt(((alpha - opacities * np.exp(-0.5 * across[..., 0])) ** 2).mean(axis=0)) / opacities


def test_grid_points_give_their_entries(dictionary, rng):
    first = rng.integers(0, 40, 500)
    second = np.minimum(rng.integers(0, 40, 500), first)
    o = rng.integers(0, 9, 500)
    expected = dictionary.table()[first, second, o]
    for mode in ("nearest", "trilinear"):
        found = look_up(dictionary, scales_at(first.astype(float), second.astype(float)), OPACITIES[o], mode)
        assert np.allclose(found.offsets, expected[..., :3], atol=1e-4), mode
        assert np.allclose(found.deviations, np.exp(expected[..., 3:6]), rtol=1e-4), mode
        assert np.allclose(found.opacities, 1 / (1 + np.exp(-expected[..., 6])), atol=1e-4), mode


def test_between_grid_points_children_lie_between(dictionary, rng):
    """Where arrangements around are alike, and there most places are."""
    steps = rng.uniform(0, 39, (500, 2))
    scales, o = scales_at(steps.max(axis=1), steps.min(axis=1)), rng.uniform(0.1, 0.85, 500)
    near, between = (look_up(dictionary, scales, o, mode) for mode in ("nearest", "trilinear"))
    assert (near.offsets != between.offsets).any(axis=(1, 2)).mean() > 0.5
    assert np.abs(near.offsets - between.offsets).max() <= 0.5
    errors = [picture_error(found, o) for found in (near, between)]
    assert errors[1].mean() < errors[0].mean() * 1.02 and errors[1].max() < 0.08


@pytest.mark.parametrize("mode", ["nearest", "trilinear"])
def test_every_shape_and_opacity_has_finite_children(dictionary, mode):
    """Spheres, flat and needle-like splats without thickness, points, and any opacity."""
    scales = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0], [1e30, 1, 1e-30], [1e-30] * 3], float)
    for o in (0.0, 0.01, 0.05, 0.5, 0.95, 0.999, 1.0):
        found = look_up(dictionary, scales, np.full(len(scales), o), mode)
        for array in (found.offsets, found.deviations, found.opacities):
            assert np.isfinite(array).all()
        assert (found.opacities >= 0).all() and (found.opacities <= OPAQUE).all()
    assert (look_up(dictionary, scales, np.zeros(len(scales)), mode).opacities == 0).all()


def test_opacities_between_entries_are_scaled_in_depth(dictionary):
    """Errors stay those of the entries themselves, also far from these."""
    scales = np.repeat(scales_at(np.array([20.0]), np.array([3.0])), 9, axis=0)
    o = np.array([0.06, 0.13, 0.26, 0.44, 0.57, 0.66, 0.83, 0.94, 0.98])
    scaled = picture_error(look_up(dictionary, scales, o), o)
    unscaled = picture_error(look_up(dictionary, scales, OPACITIES[nearest_opacity(o)]), o)
    assert (scaled < 1.25 * unscaled).all() and scaled.max() < 0.05


def test_the_nearest_opacity_is_nearest_in_depth():
    assert np.array_equal(nearest_opacity(TARGETS), np.arange(10))
    assert np.array_equal(nearest_opacity(np.array([0.0, 0.04, 0.97, 0.9999, 1.0])), [0, 0, 8, 9, 9])
