"""Second derivatives of stored weights."""

import numpy as np

from gaussianimate.core.resample.weight_curvature import weight_hessians
from gaussianimate.core.skinning.skin import Skin


def test_unused_slots_change_nothing():
    """They have index 0, whose weight curves: that is not to be counted twice."""
    p = np.random.default_rng(4).random((3000, 3)).astype(np.float32)
    square, slope = p[:, 0] ** 2, 2 * p[:, 0]
    weights = np.stack([square, 1 - square], axis=1)
    gradients = np.zeros((3000, 2, 3), np.float32)
    gradients[..., 0] = np.stack([slope, -slope], axis=1)
    indices, rows = np.tile(np.array([0, 1], np.int32), (3000, 1)), np.arange(0, 3000, 7)
    plain = weight_hessians(p, Skin(indices, weights, gradients), rows)
    wide = ((0, 0), (0, 2))
    spare = Skin(np.pad(indices, wide), np.pad(weights, wide), np.pad(gradients, (*wide, (0, 0))))
    padded = weight_hessians(p, spare, rows)
    assert not padded[:, 2:].any()
    np.testing.assert_allclose(padded[:, :2], plain, atol=1e-5)
    inside = (p[rows, 0] > 0.2) & (p[rows, 0] < 0.8)
    assert np.quantile(np.abs(plain[inside, 0, 0, 0] - 2), 0.97) < 1e-3
