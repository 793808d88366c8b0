"""Joining the separate pieces of a voxel body into one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import KDTree

from ...progress import Progress

MAX_PIECES = 200


def bridge(field: NDArray[np.float32], progress: Progress) -> NDArray[np.float32]:
    """Connect the pieces of ``field > 0.5`` (6-connected) by the shortest bridges, a minimum spanning tree.

    A bridge spans the whole zone where two pieces are about as near as they get, so that a ball in its socket
    becomes a solid joint and two parts that merely touch do not weld along their length. Specks (under 1
    % of the largest piece and further than twice its own size from all others) are dropped, and pieces
    beyond the 200 largest.

    Parameters
    ----------
    field : (X, Y, Z) filled share of voxels

    Returns
    -------
    (X, Y, Z) field in one piece
    """
    labelled: Any = ndimage.label(field > 0.5)
    label, count = labelled
    if count <= 1:
        return field
    sizes = np.bincount(label.ravel())[1:]
    kept = np.argsort(-sizes, kind="stable")[:MAX_PIECES] + 1
    shell = (label > 0) & ~np.asarray(ndimage.binary_erosion(label > 0))
    cells = np.argwhere(shell)
    piece = label[shell]
    nearest = np.full(len(cells), -1)
    distance = np.full(len(cells), np.inf)
    waiting = np.isin(piece, kept[1:])
    added, ends = kept[0], []
    joined = [added]
    while waiting.any():
        progress("Surface", 0.9)
        source = np.flatnonzero(piece == added)
        rows = np.flatnonzero(waiting)
        d, index = KDTree(cells[source]).query(cells[rows])
        closer = d < distance[rows]
        distance[rows[closer]] = d[closer]
        nearest[rows[closer]] = source[index[closer]]
        added = piece[rows[np.argmin(distance[rows])]]
        mine = rows[piece[rows] == added]
        waiting[mine] = False
        gap = distance[mine].min()
        if sizes[added - 1] < 1e-2 * sizes[kept[0] - 1] and gap > 2 * sizes[added - 1] ** (1 / 3):
            distance[mine] = np.inf
            added = kept[0]  # nothing new to measure from
            continue
        joined.append(added)
        zone = mine[distance[mine] <= gap + 1.5]
        ends.append((cells[zone], cells[nearest[zone]]))
    keep = np.isin(label, joined)
    field = np.where((label > 0) & ~keep, 0.0, field).astype(np.float32)
    if not ends:
        return field
    lines = _lines(ends, field.shape)
    around = np.asarray(ndimage.binary_dilation(lines, iterations=2))
    solid = np.asarray(ndimage.binary_closing(lines | (field > 0.5), iterations=2)) & around
    return np.maximum(field, (lines | solid).astype(np.float32))


def _lines(
    ends: list[tuple[NDArray[np.int64], NDArray[np.int64]]], shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Voxel lines (X, Y, Z) between pairs of voxels, three voxels thick."""
    a, b = (np.concatenate(side) for side in zip(*ends, strict=True))
    steps = 2 * int(np.ceil(np.abs(a - b).max())) + 2
    mask = np.zeros(shape, bool)
    for t in np.linspace(0, 1, steps):
        mask[tuple(np.rint(a + t * (b - a)).astype(int).T)] = True
    return np.asarray(ndimage.binary_dilation(mask))
