"""Weight gradients of scattered points by moving least squares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..progress import Progress, no_progress

Floats = NDArray[np.floating]
# Ratio of the variances across and along the neighbours about which slopes across fade in, from half to one
# and a half of it. Captured surfaces stay below (slopes across them would be noise from their curvature, and
# tilt splats), points that fill space lie above.
THIN = 0.1


def weight_gradients(
    positions: Floats,
    indices: NDArray[np.integer],
    weights: Floats,
    neighbours: int = 16,
    chunk: int = 8192,
    progress: Progress = no_progress,
) -> Floats:
    """Estimate the spatial gradients of normalised weights at the points that carry them.

    Around every point each of its own K bones gets the linear function that fits that bone's weight at the
    nearest points best (Gaussian-weighted moving least squares, Lancaster & Salkauskas 1981; Levin 1998).
    Points of a surface say nothing about the slope across it: directions in which the neighbours hardly
    extend are faded out, so that gradients of thin sheets are tangential. Finally the gradients are
    projected to sum to 0, as weights that sum to 1 demand.

    Parameters
    ----------
    positions : (N, 3) rest positions, metres; points in one place count once among the neighbours, those
        that are nowhere (not finite) not at all
    indices : (N, K) bones
    weights : (N, K) rows sum to 1
    neighbours : number of nearest points used
    chunk : points worked on at once
    progress : told of every chunk

    Returns
    -------
    (N, K, 3) in the dtype of ``weights``, 1/m; 0 where fewer than two places exist, and of points nowhere
    """
    from scipy.spatial import KDTree

    positions, weights = np.asarray(positions, dtype=np.float64), np.asarray(weights)
    gradients = np.zeros((*weights.shape, 3), dtype=weights.dtype)
    here = np.flatnonzero(np.isfinite(positions).all(axis=1))
    places = here[np.unique(positions[here], axis=0, return_index=True)[1]]
    count = min(neighbours + 1, len(places))  # the point itself is among them
    if count < 2:
        return gradients
    tree = KDTree(positions[places])
    for start in range(0, len(here), chunk):
        progress("Weight gradients", start / len(here))
        rows = here[start : start + chunk]
        distances, nearest = tree.query(positions[rows], k=count)
        nearest = places[nearest]
        values = _values_at(indices[rows], indices[nearest], weights[nearest])
        fitted = linear_fit(positions[nearest], distances, values)
        gradients[rows] = fitted - weights[rows, :, None] * fitted.sum(axis=1, keepdims=True)
    return gradients


def _values_at(own: NDArray[np.integer], others: NDArray[np.integer], weights: Floats) -> Floats:
    """Return the weights (C, M, K) that M neighbours give to a point's own K bones."""
    values = np.zeros((*others.shape[:2], own.shape[1]))
    for slot in range(others.shape[2]):
        values += np.where(others[:, :, slot, None] == own[:, None, :], weights[:, :, slot, None], 0)
    return values


def linear_fit(points: Floats, distances: Floats, values: Floats) -> Floats:
    """Return the slopes (C, K, 3) of values (C, M, K) over points (C, M, 3), the nearest first.

    distances : (C, M) from the place about which slopes are wanted, ascending
    """
    width = distances[:, -1:]
    nearness = np.exp(-2 * (distances / np.maximum(width, np.finfo(float).tiny)) ** 2)
    nearness /= nearness.sum(axis=1, keepdims=True)
    offsets = points - np.einsum("cm,cmi->ci", nearness, points)[:, None]
    residuals = values - np.einsum("cm,cmk->ck", nearness, values)[:, None]
    weighted = nearness[..., None] * offsets
    spread, axes = np.linalg.eigh(np.swapaxes(weighted, 1, 2) @ offsets)  # ascending
    slopes = np.swapaxes(residuals, 1, 2) @ weighted @ axes  # (C, K, 3) along the axes
    widest = spread[:, -1:]
    ratio = np.maximum(spread, 0) / np.where(widest > 0, widest, 1)
    fade = np.clip((ratio - 0.5 * THIN) / THIN, 0, 1)
    fade = fade * fade * (3 - 2 * fade)
    inverse = fade / np.where(spread > 0, spread, 1)
    return slopes * inverse[:, None, :] @ np.swapaxes(axes, 1, 2)
