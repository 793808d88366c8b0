"""Second derivatives of stored weights, from the gradients of the splats around."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..progress import Progress, no_progress
from ..skinning.gradients import NO_BONE, likeness, linear_fit, nearness, weights_at
from ..skinning.skin import Skin
from .chunks import each_chunk

if TYPE_CHECKING:
    from scipy.spatial import KDTree

CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Where the splats nearest to a place are looked up, among those whose position is finite."""

    tree: KDTree
    rows: NDArray[np.intp]

    @classmethod
    def of(cls, positions: NDArray[np.floating]) -> Neighbours:
        """Return the neighbours of positions (N, 3)."""
        from scipy.spatial import KDTree

        rows = np.flatnonzero(np.isfinite(positions).all(axis=1))
        places = np.asarray(positions[rows], np.float64)
        return cls(KDTree(places, balanced_tree=False, compact_nodes=False), rows)


def weight_hessians(
    positions: NDArray[np.floating],
    skin: Skin,
    rows: NDArray[np.integer],
    neighbours: Neighbours | None = None,
    count: int = 12,
    chunk: int = CHUNK,
    progress: Progress = no_progress,
) -> NDArray[np.float32]:
    """Estimate the Hessians of normalised weights at some splats.

    Each component of each gradient gets the linear function that fits it best among the nearest splats
    (moving least squares, as the gradients themselves: `skinning.gradients`); those whose weights are not
    what the splat's own say count less. A splat without the bone has no gradient of it. The slopes are
    made symmetric, and sum to 0 over the bones.

    Parameters
    ----------
    positions : (N, 3), skin : N rows
    rows : (R,) splats
    neighbours : of the positions, where they are there already
    count : nearest splats used
    chunk : splats worked on at once
    progress : told of every chunk

    Returns
    -------
    (R, K, 3, 3), 1/m^2; 0 where fewer than two places exist
    """
    hessians = np.zeros((len(rows), skin.influences, 3, 3), np.float32)
    known = np.flatnonzero(np.isfinite(positions[rows]).all(axis=1))
    neighbours = neighbours or Neighbours.of(positions)
    nearest_count = min(count + 1, len(neighbours.rows))  # the splat itself is among them
    if nearest_count < 2:
        return hessians

    def work(part: slice) -> None:
        own = rows[known[part]]
        distances, nearest = neighbours.tree.query(positions[own], k=nearest_count)
        nearest = neighbours.rows[nearest]
        used = (skin.weights[own] > 0) | skin.gradients[own].any(axis=2)
        bones = np.where(used, skin.indices[own], NO_BONE)
        values = _gradients_at(skin, bones, nearest).reshape(*nearest.shape, -1)
        points = positions[nearest].astype(np.float64)
        weights = weights_at(bones, skin.indices[nearest], skin.weights[nearest])
        shares = nearness(distances) * likeness(points, weights, skin.weights[own], skin.gradients[own])
        slopes = linear_fit(points, shares, values)
        slopes = slopes.reshape(len(own), skin.influences, 3, 3)
        slopes = 0.5 * (slopes + np.swapaxes(slopes, 2, 3))
        lack = skin.weights[own, :, None, None] * slopes.sum(axis=1, keepdims=True)
        hessians[known[part]] = slopes - lack

    each_chunk(work, len(known), chunk, progress, "Weight curvature")
    return hessians


def _gradients_at(skin: Skin, own: NDArray[np.integer], nearest: NDArray[np.integer]) -> NDArray[np.floating]:
    """Return the gradients (C, M, K, 3) that M neighbours have of the bones (C, K) of each splat."""
    bones, slopes = skin.indices[nearest], skin.gradients[nearest]
    values = np.zeros((*nearest.shape, skin.influences, 3), np.float32)
    for slot in range(skin.influences):
        same = bones[:, :, slot, None] == own[:, None, :]
        values += np.where(same[..., None], slopes[:, :, slot, None, :], 0)
    return values
