"""Which points a feathered shape touches, without measuring the distance of all of them.

The screen about a shape is divided into cells. Distances are 1-Lipschitz, so that the distance at the middle
of a cell decides for most cells that all of their points are selected wholly or not at all; in the others,
only those pieces of the shape can be the nearest that are nearly the nearest at the middle. The result is
exact, not an interpolation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .feather import Feather
from .shapes.base import Floats, Near, Shape

NONE, FULL, PARTLY = np.uint8(0), np.uint8(1), np.uint8(2)
CELLS = 2500
SLACK = 1e-3  # pixels for rounding


class Band:
    """The cells of one shape under one feather."""

    def __init__(self, shape: Shape, feather: Feather) -> None:
        self.shape, self.feather = shape, feather
        bounds = shape.bounds
        self.empty = bounds is None
        if bounds is None:
            return
        low, high = np.array(bounds[:2]) - feather.none - SLACK, np.array(bounds[2:]) + feather.none + SLACK
        self.low = low
        self.cell = max(float(np.sqrt(np.prod(high - low) / CELLS)), float((high - low).max() / CELLS))
        self.counts = np.ceil((high - low) / self.cell).astype(int)
        self.pieced = hasattr(shape, "piece_distances")
        x = low[0] + (np.arange(self.counts[0]) + 0.5) * self.cell
        y = low[1] + (np.arange(self.counts[1]) + 0.5) * self.cell
        x, y = np.tile(x, self.counts[1]), np.repeat(y, self.counts[0])
        reach = self.cell * np.sqrt(0.5) + SLACK + 4e-7 * float(np.abs([low, high]).max())
        if self.pieced:
            self._prepare_pieces(x, y, reach)
        else:
            self._set_states(shape.distance(x, y, normals=False).value, reach)

    def _set_states(self, middle: Floats, reach: float) -> None:
        """Classify cells by the distance at their middle; the grid gets a border of cells without points."""
        inner = np.full(len(middle), PARTLY)
        inner[middle - reach > self.feather.none] = NONE
        inner[middle + reach <= self.feather.full] = FULL
        self.states = np.pad(inner.reshape(self.counts[::-1]), 1).ravel()

    def _prepare_pieces(self, x: Floats, y: Floats, reach: float) -> None:
        """Find the pieces that can be nearest in every cell, and those that lines across a row may meet."""
        shape: Any = self.shape
        distances = shape.piece_distances(x, y)  # (C, P)
        least = distances.min(axis=1)
        close = distances <= least[:, None] + 2 * reach
        height = self.low[1] + np.arange(self.counts[1])[:, None] * self.cell
        low, high = shape.piece_heights.T
        across = (low <= height + self.cell + SLACK) & (high >= height - SLACK)
        crossings = _padded(across)
        middle = least
        if crossings.size:
            rows = np.repeat(np.arange(self.counts[1]), self.counts[0])
            near = Near(np.arange(len(x)), _padded(close), rows, crossings)
            middle = shape.distance(x, y, normals=False, near=near).value
        self._set_states(middle, reach)
        close[self.states.reshape(self.counts[::-1] + 2)[1:-1, 1:-1].ravel() != PARTLY] = False
        self.pieces, self.crossings = _padded(close), crossings

    def sort(self, x: Floats, y: Floats) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
        """Return for points (N,) whether they are selected not, wholly or partly, and their cells.

        Cells are counted in the grid with its border. Coordinates may be infinite, but not NaN.
        """
        cell = self._line(y, 1)
        cell *= self.counts[0] + 2
        cell += self._line(x, 0)
        return self.states[cell], cell

    def _line(self, x: Floats, axis: int) -> NDArray[np.int32]:
        """Return the column or row of cells coordinates (N,) lie in; 0 and the last are the border."""
        t = x - x.dtype.type(self.low[axis])
        t *= 1 / self.cell
        t += 1
        return np.clip(t, 0, self.counts[axis] + 1, out=t).astype(np.int32)

    def near(self, cell: NDArray[np.int32]) -> Near | None:
        """Return the pieces near to points of the cells (N,); None where the shape is of one piece."""
        if not self.pieced:
            return None
        row, column = np.divmod(cell, self.counts[0] + 2)
        row, column = row - 1, column - 1
        return Near(row * self.counts[0] + column, self.pieces, row, self.crossings)


def _padded(mask: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the columns that are set in each row (R, C), ascending, as (R, most), padded by -1."""
    counts = mask.sum(axis=1)
    table = np.full((len(mask), counts.max(initial=0)), -1, dtype=np.int32)
    rows, columns = np.nonzero(mask)
    table[rows, np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)] = columns
    return table
