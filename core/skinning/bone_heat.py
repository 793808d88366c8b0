"""Starting weights by heat that spreads from bones over the splats."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import RigError
from ..progress import Progress, no_progress
from .skin import MAX_INFLUENCES

Floats = NDArray[np.floating]
F64 = NDArray[np.float64]
Sparse = tuple[NDArray[np.int32], F64]
CHUNK = 8192


def heat_weights(
    positions: Floats,
    heads: ArrayLike,
    tails: ArrayLike,
    *,
    influences: int = MAX_INFLUENCES,
    stiffness: float = 1.0,
    samples: int = 20_000,
    neighbours: int = 12,
    progress: Progress = no_progress,
) -> Sparse:
    """Return the weights of bone heat (Baran & Popovic, Automatic Rigging of 3D Characters, 2007).

    Every point is heated by its nearest bone, the more the nearer that is, and heat spreads over the cloud
    until it is in balance: ``-laplace(w_j) + H w_j = H p_j`` with ``H = stiffness / distance^2`` and p_j = 1
    where bone j is the nearest. The Laplacian is that of the graph of nearest neighbours; large clouds are
    solved on an even sample and interpolated. Unlike on meshes nothing says which bones a point sees.

    Parameters
    ----------
    positions : (N, 3) metres, in the space of the bones
    heads, tails : (M, 3) metres
    influences : kept for each splat at most
    stiffness : the larger, the more weights keep to the nearest bone
    samples : points heat is solved on, at most
    neighbours : of each sample in the graph
    progress : told of the steps

    Returns
    -------
    indices, weights : (N, K) int32, float64; strongest first, rows sum to 1. Give them to `make_skin`

    Raises
    ------
    RigError : there are no bones
    """
    heads, tails = np.asarray(heads, dtype=np.float64), np.asarray(tails, dtype=np.float64)
    if not len(heads):
        raise RigError("There are no bones to weigh splats by; add bones to the armature first")
    positions = np.asarray(positions, dtype=np.float64)
    if not len(positions):
        return np.zeros((0, 1), np.int32), np.ones((0, 1))
    progress("Sampling splats", 0.0)
    points = positions[_even_sample(positions, samples)]
    progress("Spreading heat", 0.1)
    weights = _equilibrium(points, heads, tails, stiffness, neighbours)
    return _interpolate(positions, points, weights, influences, progress)


def bone_distances(points: F64, heads: F64, tails: F64) -> F64:
    """Return the distances (N, M) of points to the segments of bones."""
    along = tails - heads
    squared = np.maximum((along**2).sum(axis=1), 1e-300)
    distances = np.empty((len(points), len(heads)))
    for bone, (head, axis) in enumerate(zip(heads, along, strict=True)):
        t = np.clip((points - head) @ axis / squared[bone], 0, 1)
        distances[:, bone] = np.linalg.norm(points - head - t[:, None] * axis, axis=1)
    return distances


def _even_sample(points: F64, most: int) -> NDArray[np.intp]:
    """Return the first point of each cell of a grid, as fine as ``most`` points allow."""
    if len(points) <= most:
        return np.unique(points, axis=0, return_index=True)[1]
    low, size = points.min(axis=0), float(np.ptp(points, axis=0).max())
    fine, coarse, kept = size / most, size, np.zeros(1, dtype=np.intp)
    for _ in range(12):  # halve the range of cell sizes, in ratio
        cell = np.sqrt(fine * coarse)
        keys = ((points - low) / cell).astype(np.int64)
        keys = (keys[:, 0] * (1 << 20) + keys[:, 1]) * (1 << 20) + keys[:, 2]
        found = np.unique(keys, return_index=True)[1]
        if len(found) <= most:
            coarse, kept = cell, found
        else:
            fine = cell
    return kept


def _equilibrium(points: F64, heads: F64, tails: F64, stiffness: float, neighbours: int) -> F64:
    """Return the heat (S, M) of every bone in balance; rows sum to 1."""
    from scipy.sparse import coo_matrix, diags
    from scipy.sparse.linalg import splu
    from scipy.spatial import KDTree

    count, k = len(points), min(neighbours + 1, len(points))
    distance = bone_distances(points, heads, tails)
    nearest = distance.min(axis=1, keepdims=True)
    heated = (distance <= nearest * (1 + 1e-6)).astype(np.float64)
    heated /= heated.sum(axis=1, keepdims=True)
    size = float(np.ptp(points, axis=0).max())
    heat = stiffness / np.maximum(nearest[:, 0], max(1e-4 * size, 1e-150)) ** 2
    if k < 2:
        return heated
    away, others = (np.reshape(a, (count, k))[:, 1:] for a in KDTree(points).query(points, k=k))
    closeness = np.exp(-2 * (away / np.maximum(away[:, -1:], 1e-300)) ** 2)
    # Laplacian of a surface: exact for squares of coordinates where neighbours lie evenly around.
    rate = 4 * closeness / np.maximum((closeness * away**2).sum(axis=1, keepdims=True), 1e-300)
    rows = np.repeat(np.arange(count), k - 1)
    flow = coo_matrix((rate.ravel(), (rows, others.ravel())), shape=(count, count)).tocsr()
    flow = (flow + flow.T) / 2
    system = diags(np.asarray(flow.sum(axis=1)).ravel() + heat) - flow
    weights = np.maximum(splu(system.tocsc()).solve(heat[:, None] * heated), 0)
    return weights / weights.sum(axis=1, keepdims=True)


def _interpolate(positions: F64, points: F64, weights: F64, influences: int, progress: Progress) -> Sparse:
    """Carry weights from samples to all splats by Gaussians over the nearest samples; keep the strongest."""
    from scipy.spatial import KDTree

    tree, k = KDTree(points), min(8, len(points))
    count = min(influences, weights.shape[1])
    indices, kept = np.empty((len(positions), count), np.int32), np.empty((len(positions), count))
    for start in range(0, len(positions), CHUNK):
        progress("Weighing splats", 0.4 + 0.6 * start / len(positions))
        rows = slice(start, start + CHUNK)
        away, nearest = (np.reshape(a, (-1, k)) for a in tree.query(positions[rows], k=k))
        share = np.exp(-2 * (away / np.maximum(away[:, -1:], 1e-300)) ** 2)
        share /= share.sum(axis=1, keepdims=True)
        found = np.einsum("ns,nsm->nm", share, weights[nearest])
        order = np.argsort(-found, axis=1, kind="stable")[:, :count]
        indices[rows], kept[rows] = order, np.take_along_axis(found, order, axis=1)
    return indices, kept / kept.sum(axis=1, keepdims=True)
