"""One place for each outer bone: bones that move several places of the body alike become one bone each.

A decomposition knows motion, not the body: feet that stand still together share a bone. No joint could carry
it, and posing one foot would move the other.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from .sampling import stratified_subset
from .ssdr import SkinningDecomposition

SAMPLE = 8000
APART = 0.06  # of the box diagonal: gap between two places
SPARSE = 1.5  # gap in terms of the distance to the eighth neighbour, where points are sparse
LEAST_PLACE = 2e-3  # share of all points that makes a place
LEAST_POINTS = 4


def separate_places(
    rest: NDArray[np.floating], skin: SkinningDecomposition, max_bones: int
) -> SkinningDecomposition:
    """Give each separate place (single-linkage cluster) of a bone's points a bone of its own, same motion.

    The replay stays as it is. Splits that separate most points come first, while there are fewer than
    `max_bones`.

    Parameters
    ----------
    rest : (N, 3) points at rest, metres
    """
    rows = stratified_subset(rest, SAMPLE)
    points, strongest = rest[rows].astype(np.float64), skin.indices[rows, 0]
    diagonal = float(np.linalg.norm(np.ptp(points, axis=0)))
    distinct = np.unique(points, axis=0)
    if len(distinct) < 3 or diagonal == 0:
        return skin
    spacing = np.median(KDTree(distinct).query(distinct, min(9, len(distinct)))[0][:, -1])
    gap = max(APART * diagonal, SPARSE * float(spacing))
    splits = []
    for bone in np.unique(strongest):
        mine = points[strongest == bone]
        place = _places(mine, gap, max(LEAST_PLACE * len(points), LEAST_POINTS))
        splits += [
            (np.count_nonzero(place == k), int(bone), mine, place, k) for k in range(1, place.max() + 1)
        ]
    splits.sort(key=lambda split: (-split[0], split[1], split[4]))
    indices, count = skin.indices.copy(), skin.transforms.shape[1]
    splits = splits[: max(0, max_bones - count)]
    for new, (_, bone, mine, place, k) in enumerate(splits, start=count):
        moved = np.argwhere((skin.indices == bone) & (skin.weights > 0))
        moved = moved[place[KDTree(mine).query(rest[moved[:, 0]])[1]] == k]
        indices[moved[:, 0], moved[:, 1]] = new
    same = np.array([*range(count), *(split[1] for split in splits)])
    return replace(skin, indices=indices, transforms=np.ascontiguousarray(skin.transforms[:, same]))


def _places(points: NDArray[np.float64], gap: float, least: float) -> NDArray[np.intp]:
    """The place (P,) of each point, largest first; groups under `least` points go with the nearest."""
    near = KDTree(points).sparse_distance_matrix(KDTree(points), gap, output_type="coo_matrix")
    near.data[:] = 1  # a distance of zero is a link as well
    _, label = connected_components(near, directed=False)
    sizes = np.bincount(label)
    order = np.argsort(-sizes, kind="stable")
    large = order[: max(1, int((sizes >= least).sum()))]
    rank = np.full(len(sizes), -1)
    rank[large] = np.arange(len(large))
    place = rank[label]
    stray = place < 0
    if stray.any():
        place[stray] = place[~stray][KDTree(points[~stray]).query(points[stray])[1]]
    return place
