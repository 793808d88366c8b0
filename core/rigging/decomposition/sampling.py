"""Deterministic subsets of points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LEVELS = 10  # bits an axis: cells of a thousandth of the box


def stratified_subset(points: NDArray, count: int) -> NDArray[np.intp]:
    """Return up to ``count`` rows of points (N, 3), ascending, spread like the points themselves.

    The points are walked along a space-filling curve (Morton order) at even steps, so that every
    neighbourhood gives its share. The choice depends on where points are, not on their order.
    """
    total = len(points)
    if total <= count:
        return np.arange(total)
    low = points.min(0)
    cells = (points - low) / max(float(np.ptp(points, axis=0).max()), 1e-300) * (2**_LEVELS - 1)
    cells = cells.astype(np.int64)
    code = np.zeros(total, np.int64)
    for bit in range(_LEVELS):
        for axis in range(3):
            code |= ((cells[:, axis] >> bit) & 1) << (3 * bit + axis)
    order = np.lexsort((*points.T, code))
    return np.sort(order[((np.arange(count) + 0.5) * total // count).astype(np.intp)])


def farthest_points(points: NDArray, count: int) -> NDArray[np.intp]:
    """Return up to ``count`` rows of points (N, 3), each farthest from those before (Gonzalez 1985)."""
    distance = ((points - points.mean(0)) ** 2).sum(1)
    rows: list[int] = []
    for _ in range(min(count, len(points))):
        row = int(distance.argmax())
        if rows and distance[row] <= 0:
            break  # only duplicates are left
        rows.append(row)
        own = ((points - points[row]) ** 2).sum(1)
        distance = own if len(rows) == 1 else np.minimum(distance, own)
    return np.array(rows)
