"""Affine maps found from points or frames before and after. No Blender needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]


def apply_affine(matrix: F64, points: F64) -> F64:
    """Return points (N, 3) moved by a (4, 4) or (3, 4) matrix."""
    return points @ matrix[:3, :3].T + matrix[:3, 3]


def fit_affine(before: F64, after: F64) -> F64:
    """Return the affine map (4, 4) that moves points (N, 3) best in the least-squares sense.

    Points on a plane (a line, one place) leave the map across undetermined; there it keeps volume like the
    rest: the missing directions are mapped by the similarity nearest to what is known.
    """
    centre, target = before.mean(axis=0), after.mean(axis=0)
    offsets, moved = before - centre, after - target
    axes, spread, _ = np.linalg.svd(offsets.T @ offsets)
    known = axes[:, spread > 1e-10 * max(spread[0], 1e-300)]
    linear = moved.T @ offsets @ known @ np.linalg.pinv(known.T @ offsets.T @ offsets @ known) @ known.T
    if known.shape[1] < 3:
        u, s, vt = np.linalg.svd(linear)
        rank = known.shape[1]
        s[rank:] = np.exp(np.log(np.maximum(s[:rank], 1e-300)).mean()) if rank else 1.0
        u[:, 2] *= np.linalg.det(u) * np.linalg.det(vt)
        linear = u * s @ vt
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = linear, target - linear @ centre
    return matrix


def fit_similarity(before: F64, after: F64, tolerance: float = 1e-3) -> F64 | None:
    """Return the turn, even scale and shift (4, 4) that carries frames to frames, None if none does.

    Parameters
    ----------
    before, after : (B, 4, 4) orthonormal frames with origins
    tolerance : largest misfit, of the frames' entries and of the spread of their origins
    """
    if before.shape != after.shape or not len(before):
        return None
    u, _, vt = np.linalg.svd(np.einsum("bij,bkj->ik", after[:, :3, :3], before[:, :3, :3]))
    turn = u * [1, 1, np.linalg.det(u @ vt)] @ vt
    heads, moved = before[:, :3, 3], after[:, :3, 3]
    offsets = (heads - heads.mean(axis=0)) @ turn.T
    energy = (offsets**2).sum()
    scale = ((moved - moved.mean(axis=0)) * offsets).sum() / energy if energy > 0 else 1.0
    matrix = np.eye(4)
    matrix[:3, :3] = scale * turn
    matrix[:3, 3] = moved.mean(axis=0) - matrix[:3, :3] @ heads.mean(axis=0)
    off_axes = np.abs(turn @ before[:, :3, :3] - after[:, :3, :3]).max()
    off_heads = np.abs(apply_affine(matrix, heads) - moved).max()
    spread = np.sqrt(energy) * abs(scale) + np.abs(moved).max() * 1e-3
    return matrix if scale > 0 and off_axes < tolerance and off_heads <= tolerance * spread else None
