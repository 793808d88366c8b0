"""Weighted means of rigid motions, as rotations and offsets of a pivot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..rotations import quaternion_multiply
from .so3 import quaternion_exp, quaternion_log

KARCHER_STEPS = 3
_AMBIGUOUS = 1e-6


def rotation_mean(
    rotations: NDArray[np.floating], weights: NDArray[np.floating], steps: int = KARCHER_STEPS
) -> NDArray[np.float64]:
    """Weighted Riemannian mean (..., 4) of unit quaternions (..., n, 4); signs do not matter.

    The principal eigenvector of ``sum w q q^T`` (Markley et al., "Averaging quaternions", 2007) is the mean
    of least chords; a few steps ``q <- q exp(sum w log(q^-1 q_i))`` (Karcher 1977) make it that of least
    angles. Where the two largest eigenvalues are alike, so that there is no mean, it is the heaviest sample.

    weights : (..., n), >= 0, summing to 1
    """
    q = np.asarray(rotations, np.float64)
    w = np.asarray(weights, np.float64)
    values, vectors = np.linalg.eigh(np.swapaxes(q * w[..., None], -1, -2) @ q)
    mean = vectors[..., -1]
    heaviest = np.take_along_axis(q, w.argmax(axis=-1)[..., None, None], axis=-2)[..., 0, :]
    mean = np.where((values[..., -1] - values[..., -2] < _AMBIGUOUS)[..., None], heaviest, mean)
    for _ in range(steps):
        apart = q @ np.swapaxes(_left_inverse(mean), -1, -2)
        step = quaternion_exp(np.vecmat(w, quaternion_log(apart)))
        mean = np.asarray(quaternion_multiply(mean, step), np.float64)
    return mean / np.linalg.norm(mean, axis=-1, keepdims=True)


def _left_inverse(q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Matrices (..., 4, 4) that multiply by the inverses of unit quaternions (..., 4) from the left."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    rows = [[w, x, y, z], [-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
