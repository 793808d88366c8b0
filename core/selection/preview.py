"""The mask of a gesture while it is drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .evaluate import LayerField, in_chunks
from .layer import SelectionLayer
from .viewpoint import Floats, Projected, Viewpoint

F32 = NDArray[np.float32]


class Preview:
    """Points seen in one view, in single precision, for the masks of many versions of a gesture.

    Parameters
    ----------
    viewpoint : the view of the gesture
    points : (N, 3) positions in object space
    threads : at most; None takes one a core
    """

    def __init__(self, viewpoint: Viewpoint, points: Floats, threads: int | None = None) -> None:
        self.viewpoint, self.points, self.threads = viewpoint, points, threads
        n = len(points)
        x, y, w = np.empty((3, n), dtype=np.float32)
        self.at = Projected(x, y, w, np.empty(n, dtype=bool))

        def work(rows: slice) -> None:
            for kept, found in zip(self.at, viewpoint.project(points[rows], np.float32), strict=True):
                kept[rows] = found

        in_chunks(n, work, threads)

    def mask(self, layer: SelectionLayer) -> F32:
        """Return ``strength * fade`` (N,) of a layer drawn in this view."""
        field, mask = LayerField(layer), np.empty(len(self.points), dtype=np.float32)

        def work(rows: slice) -> None:
            x, y, w, seen = self.at
            at = Projected(x[rows], y[rows], w[rows], seen[rows])
            mask[rows] = field.select(self.points[rows], at, gradients=False).fade

        in_chunks(len(mask), work, self.threads)
        mask *= layer.strength
        return mask


def preview(layer: SelectionLayer, points: Floats, threads: int | None = None) -> F32:
    """Return what one layer selects of points (N, 3), ``strength * fade`` (N,); see `Preview` for many."""
    return Preview(layer.viewpoint, points, threads).mask(layer)
