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
# Sums over the bones of absolute differences of weights, 0..2, at which a neighbour has lost most of its say.
UNLIKE = 0.5
NO_BONE = -2  # of unused slots; -1 is the one that never moves
ROUNDS = 3  # fits, each with the neighbours that follow the one before


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
    Neighbours may belong to something else that merely touches the point's own surface at rest, a sleeve the
    body below it, and would give slopes that tear splats apart. So the fit is robust (iteratively reweighted,
    Holland & Welsch 1977): it starts from neighbours with similar weights and goes on with those that lie
    near the linear functions found.
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
    (N, K, 3) in the dtype of ``weights``, 1/m; 0 where fewer than two places exist, of points nowhere, and in
    slots without weight, which name no bone
    """
    from scipy.spatial import KDTree

    positions, weights = np.asarray(positions, dtype=np.float64), np.asarray(weights)
    gradients = np.zeros((*weights.shape, 3), dtype=weights.dtype)
    own = np.where(weights > 0, indices, NO_BONE)
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
        values = weights_at(own[rows], indices[nearest], weights[nearest])
        fitted = _robust_fit(positions[nearest], distances, values, weights[rows])
        gradients[rows] = fitted - weights[rows, :, None] * fitted.sum(axis=1, keepdims=True)
    return gradients


def weights_at(own: NDArray[np.integer], others: NDArray[np.integer], weights: Floats) -> Floats:
    """Return the weights (C, M, K) that M neighbours give to a point's own K bones."""
    values = np.zeros((*others.shape[:2], own.shape[1]))
    for slot in range(others.shape[2]):
        values += np.where(others[:, :, slot, None] == own[:, None, :], weights[:, :, slot, None], 0)
    return values


def _robust_fit(points: Floats, distances: Floats, values: Floats, own: Floats) -> Floats:
    """Return the slopes (C, K, 3) of weights (C, M, K) that most like neighbours agree on.

    points : (C, M, 3), the first of them where slopes are wanted; own : (C, K) weights there
    """
    near = nearness(distances)
    slopes = np.zeros((*own.shape, 3))
    for _ in range(ROUNDS):
        slopes = linear_fit(points, near * likeness(points, values, own, slopes), values)
    return slopes


def nearness(distances: Floats) -> Floats:
    """Return the Gaussian weights (C, M) of neighbours at distances (C, M), ascending."""
    return np.exp(-2 * (distances / np.maximum(distances[:, -1:], np.finfo(float).tiny)) ** 2)


def likeness(points: Floats, values: Floats, own: Floats, slopes: Floats) -> Floats:
    """Return how far neighbours follow what a point expects of them, (C, M), 0..1 (never quite 0).

    Parameters
    ----------
    points : (C, M, 3), the first of them the point itself
    values : (C, M, K) weights of its bones there, what they lack to 1 being that of other bones
    own : (C, K) its own; slopes : (C, K, 3) theirs
    """
    off = values - own[:, None] - (points - points[:, :1]) @ np.swapaxes(slopes, 1, 2)
    apart = np.abs(off).sum(axis=2) + np.abs(off.sum(axis=2))  # of its bones, and of all others
    return np.exp(-((apart / UNLIKE) ** 2)) + 1e-12


def linear_fit(points: Floats, shares: Floats, values: Floats) -> Floats:
    """Return the slopes (C, K, 3) of values (C, M, K) over points (C, M, 3) that count by shares (C, M)."""
    shares = shares / shares.sum(axis=1, keepdims=True)
    offsets = points - np.einsum("cm,cmi->ci", shares, points)[:, None]
    residuals = values - np.einsum("cm,cmk->ck", shares, values)[:, None]
    weighted = shares[..., None] * offsets
    spread, axes = np.linalg.eigh(np.swapaxes(weighted, 1, 2) @ offsets)  # ascending
    slopes = np.swapaxes(residuals, 1, 2) @ weighted @ axes  # (C, K, 3) along the axes
    widest = spread[:, -1:]
    ratio = np.maximum(spread, 0) / np.where(widest > 0, widest, 1)
    fade = np.clip((ratio - 0.5 * THIN) / THIN, 0, 1)
    fade = fade * fade * (3 - 2 * fade)
    inverse = fade / np.where(spread > 0, spread, 1)
    return slopes * inverse[:, None, :] @ np.swapaxes(axes, 1, 2)
