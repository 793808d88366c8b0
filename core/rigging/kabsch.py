"""Best rigid motions between point sets (Kabsch 1976; Umeyama 1991 for the reflection case)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]


def kabsch(covariance: F64) -> F64:
    """Return the rotations R that maximise ``trace(R H)``, batched.

    Parameters
    ----------
    covariance : (..., 3, 3) float64, H = sum_i p_i q_i^T of centred points (p at rest, q moved)

    Returns
    -------
    (..., 3, 3) float64, proper rotations with ``q ~ R p``, also where H is singular (points on a line).
    """
    u, _, vt = np.linalg.svd(covariance)
    u[..., :, 2] *= np.where(np.linalg.det(u @ vt) < 0, -1.0, 1.0)[..., None]
    return np.swapaxes(u @ vt, -1, -2)


def fit_rigid(rest: F64, frames: NDArray, weights: F64 | None = None) -> F64:
    """Fit one rigid motion to every frame by (weighted) least squares.

    Parameters
    ----------
    rest : (N, 3) points at rest
    frames : (F, N, 3) the same points in every frame
    weights : (N,) float64 >= 0 with a positive sum; None weighs all points alike

    Returns
    -------
    (F, 3, 4) float64, ``[R | t]`` with ``x = R p + t``.
    """
    share = np.full(len(rest), 1 / len(rest)) if weights is None else weights / weights.sum()
    centre = share @ rest
    # The moved points need no centring: the offsets at rest sum to zero.
    columns = np.concatenate([(rest - centre) * share[:, None], share[:, None]], 1).T  # (4, N)
    sums = np.stack(
        [columns @ frame for frame in frames]
    )  # (F, 4, 3): one frame at a time in double precision
    rotation = kabsch(sums[:, :3])
    return np.concatenate([rotation, (sums[:, 3] - rotation @ centre)[..., None]], -1)
