"""Weighted means of rigid motions, as rotations and offsets of a pivot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..rotations import quaternion_multiply
from .so3 import quaternion_conjugate, quaternion_exp, quaternion_log

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
    values, vectors = np.linalg.eigh(np.einsum("...n,...ni,...nj->...ij", w, q, q))
    mean = vectors[..., -1]
    heaviest = np.take_along_axis(q, w.argmax(axis=-1)[..., None, None], axis=-2)[..., 0, :]
    mean = np.where((values[..., -1] - values[..., -2] < _AMBIGUOUS)[..., None], heaviest, mean)
    for _ in range(steps):
        apart = quaternion_log(quaternion_multiply(quaternion_conjugate(mean)[..., None, :], q))
        mean = quaternion_multiply(mean, quaternion_exp(np.einsum("...n,...na->...a", w, apart)))
    return np.asarray(mean / np.linalg.norm(mean, axis=-1, keepdims=True), np.float64)
