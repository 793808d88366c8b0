"""From the pixels of a region to those of the view a layer was drawn in, where both look from one place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.selection.viewpoint import Viewpoint

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class PixelMap:
    """``layer = scale * region + offset``, for x and y."""

    scale: tuple[float, float] = (1.0, 1.0)
    offset: tuple[float, float] = (0.0, 0.0)

    def to_layer(self, rows: ArrayLike) -> F64:
        """Return rows (P, 2) of x and y, or (P, 3) with a radius, in the layer's pixels."""
        rows = np.array(rows, np.float64)
        rows[:, :2] = rows[:, :2] * self.scale + self.offset
        rows[:, 2:] *= self.scale[1]
        return rows

    def to_region(self, points: ArrayLike) -> NDArray[np.float32]:
        """Return points (P, 2) in the region's pixels."""
        return ((np.array(points, np.float64) - self.offset) / self.scale).astype(np.float32)


SAME = PixelMap()


def pixel_map(region: Viewpoint, layer: Viewpoint) -> PixelMap:
    """Return the map between two views of the same kind that look from the same place."""
    size = view_scale(np.array(layer.view)) / view_scale(np.array(region.view)) if is_flat(layer) else 1.0
    scale, offset = [], []
    for axis in (0, 1):
        slope, shift = _line(region, axis)
        to, onto = _line(layer, axis)
        scale.append(to * size / slope)
        offset.append(onto - scale[-1] * shift)
    return PixelMap((scale[0], scale[1]), (offset[0], offset[1]))


def is_flat(view: Viewpoint) -> bool:
    """Whether a view is orthographic."""
    return view.projection[3][3] != 0


def view_scale(view: F64) -> float:
    """Return how much larger a matrix (4, 4) makes things, on average."""
    return float(np.cbrt(abs(np.linalg.det(view[:3, :3]))))


def _line(view: Viewpoint, axis: int) -> tuple[float, float]:
    """Return a, b of ``pixel = a u + b``; u is a coordinate in camera space, in perspective over depth."""
    projection, start, size = view.projection, view.window[axis], view.window[2 + axis]
    shift = projection[axis][3] if is_flat(view) else -projection[axis][2]
    return projection[axis][axis] * size / 2, start + (shift + 1) * size / 2
