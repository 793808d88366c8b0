"""Second derivatives of stored weights, from the gradients of the splats around."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..progress import Progress, no_progress
from ..skinning.gradients import linear_fit
from ..skinning.skin import Skin
from .chunks import each_chunk

if TYPE_CHECKING:
    from scipy.spatial import KDTree

CHUNK = 4096


def weight_hessians(
    positions: NDArray[np.floating],
    skin: Skin,
    rows: NDArray[np.integer],
    neighbours: int = 12,
    chunk: int = CHUNK,
    tree: KDTree | None = None,
    progress: Progress = no_progress,
) -> NDArray[np.float32]:
    """Estimate the Hessians of normalised weights at some splats.

    Each component of each gradient gets the linear function that fits it best among the nearest splats
    (moving least squares, as the gradients themselves: `skinning.gradients`). A splat without the bone has
    no gradient of it. The slopes are made symmetric, and sum to 0 over the bones.

    Parameters
    ----------
    positions : (N, 3), skin : N rows
    rows : (R,) splats
    neighbours : nearest splats used
    chunk : splats worked on at once
    tree : of the positions, where there is one already (`nearest_tree`)
    progress : told of every chunk

    Returns
    -------
    (R, K, 3, 3), 1/m^2; 0 where fewer than two places exist
    """
    places = np.asarray(positions, np.float64)
    hessians = np.zeros((len(rows), skin.influences, 3, 3), np.float32)
    count = min(neighbours + 1, len(places))
    if count < 2 or not len(rows):
        return hessians
    tree = tree or nearest_tree(places)

    def work(part: slice) -> None:
        own = rows[part]
        distances, nearest = tree.query(places[own], k=count)
        values = _gradients_at(skin, own, np.asarray(nearest))
        slopes = linear_fit(places[nearest], distances, values.reshape(len(own), count, -1))
        slopes = slopes.reshape(len(own), skin.influences, 3, 3)
        slopes = 0.5 * (slopes + np.swapaxes(slopes, 2, 3))
        hessians[part] = slopes - skin.weights[own, :, None, None] * slopes.sum(axis=1, keepdims=True)

    each_chunk(work, len(rows), chunk, progress, "Weight curvature")
    return hessians


def nearest_tree(positions: NDArray[np.floating]) -> KDTree:
    """Return the tree in which neighbours are looked up."""
    from scipy.spatial import KDTree

    return KDTree(np.asarray(positions, np.float64), balanced_tree=False, compact_nodes=False)


def _gradients_at(skin: Skin, own: NDArray[np.integer], nearest: NDArray[np.integer]) -> NDArray[np.floating]:
    """Return the gradients (C, M, K, 3) at M neighbours of the bones of each splat."""
    bones, slopes = skin.indices[nearest], skin.gradients[nearest]
    values = np.zeros((*nearest.shape, skin.influences, 3), np.float32)
    for slot in range(skin.influences):
        same = bones[:, :, slot, None] == skin.indices[own, None, :]
        values += np.where(same[..., None], slopes[:, :, slot, None, :], 0)
    return values
