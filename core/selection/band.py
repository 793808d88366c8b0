"""Which points a feathered shape touches, without measuring the distance of all of them.

The screen about a shape is divided into cells, and those that matter into smaller ones. Distances are
1-Lipschitz, so that the distance at the middle of a cell decides for most cells that all of their points are
selected wholly or not at all; in the others, only those pieces of the shape can be the nearest ones that are
nearly the nearest at the middle. The result is exact, not an interpolation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .feather import Feather
from .shapes.base import Floats, Near, Shape

NONE, FULL, PARTLY = np.uint8(0), np.uint8(1), np.uint8(2)
COARSE = 600  # cells about a shape, at first
FINE = 4  # along each side of those that are cut
SLACK = 1e-3  # pixels for rounding


class Band:
    """The cells of one shape under one feather."""

    def __init__(self, shape: Shape, feather: Feather) -> None:
        self.shape, self.feather = shape, feather
        bounds = shape.bounds
        self.empty = bounds is None
        if bounds is None:
            return
        margin = feather.none + SLACK
        self.low = np.array(bounds[:2]) - margin
        size = np.array(bounds[2:]) + margin - self.low
        coarse = float(max(np.sqrt(size.prod() / COARSE), size.max() / COARSE))
        self.cell, self.counts = coarse / FINE, np.ceil(size / coarse).astype(int) * FINE
        self._rounding = SLACK + 4e-7 * float(np.abs([self.low, self.low + size]).max())
        self._divide(coarse)

    def _divide(self, coarse: float) -> None:
        """Classify coarse cells, and the fine cells of those that are neither full nor empty."""
        columns, rows = self.counts // FINE
        column, row = np.tile(np.arange(columns), rows), np.repeat(np.arange(rows), columns)
        x, y = self._middles(column, row, coarse)
        reach = self._reach(coarse)
        value = self.shape.distance(x, y, normals=False).value
        states = self._states(value, reach)
        cut = np.flatnonzero(states == PARTLY)
        near = self._near(x[cut], y[cut], value[cut], reach, None)
        parent = np.repeat(np.arange(len(cut)), FINE * FINE)
        step = np.tile(np.arange(FINE * FINE), len(cut))
        column, row = column[cut[parent]] * FINE + step % FINE, row[cut[parent]] * FINE + step // FINE
        x, y = self._middles(column, row, self.cell)
        inner = None if near is None else near.at(parent)
        value, reach = self.shape.distance(x, y, normals=False, near=inner).value, self._reach(self.cell)
        fine = self._states(value, reach)
        grid = np.pad(states.reshape(rows, columns).repeat(FINE, axis=0).repeat(FINE, axis=1), 1)
        grid[row + 1, column + 1] = fine
        self.states = grid.ravel()
        cut = np.flatnonzero(fine == PARTLY)
        self._cells = self._near(x[cut], y[cut], value[cut], reach, None if inner is None else inner.at(cut))
        self._slots = np.zeros(grid.shape, dtype=np.int32)
        self._slots[row[cut] + 1, column[cut] + 1] = np.arange(len(cut))
        self._slots = self._slots.ravel()

    def _middles(self, column: NDArray[np.intp], row: NDArray[np.intp], cell: float) -> tuple[Floats, Floats]:
        return self.low[0] + (column + 0.5) * cell, self.low[1] + (row + 0.5) * cell

    def _reach(self, cell: float) -> float:
        """Return how far a point of a cell is from its middle at most."""
        return cell * float(np.sqrt(0.5)) + self._rounding

    def _states(self, middle: Floats, reach: float) -> NDArray[np.uint8]:
        """Classify cells by the distance at their middle."""
        states = np.full(len(middle), PARTLY)
        states[middle - reach > self.feather.none] = NONE
        states[middle + reach <= self.feather.full] = FULL
        return states

    def _near(self, x: Floats, y: Floats, value: Floats, reach: float, among: Near | None) -> Near | None:
        """Return cells with the pieces that can be nearest in them, out of those of the cells around them."""
        if not hasattr(self.shape, "piece_distances"):
            return None
        shape: Any = self.shape
        count = shape.piece_count
        candidates = (
            np.broadcast_to(np.arange(count, dtype=np.int32), (len(x), count))
            if among is None
            else among.pieces[among.cell]
        )
        distance = np.where(candidates < 0, np.inf, shape.piece_distances(x, y, candidates))
        close = distance <= distance.min(axis=1, keepdims=True, initial=np.inf) + 2 * reach
        order = np.argsort(~close, axis=1, kind="stable")[:, : close.sum(axis=1).max(initial=0)]
        pieces = np.where(close, candidates, -1)[np.arange(len(x))[:, None], order]
        return Near(np.arange(len(x)), pieces, x, y, value <= 0, np.abs(value) <= reach)

    def sort(self, x: Floats, y: Floats) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
        """Return for points (N,) whether they are selected not, wholly or partly, and their cells.

        Cells are counted in the grid with its border. Coordinates may be infinite, but not NaN.
        """
        cell = self._line(y, 1)
        cell *= self.counts[0] + 2
        cell += self._line(x, 0)
        return self.states.take(cell), cell

    def _line(self, x: Floats, axis: int) -> NDArray[np.int32]:
        """Return the column or row of cells coordinates (N,) lie in; 0 and the last are the border."""
        t = x - x.dtype.type(self.low[axis])
        t *= 1 / self.cell
        t += 1
        return np.clip(t, 0, self.counts[axis] + 1, out=t).astype(np.int32)

    def near(self, cell: NDArray[np.int32]) -> Near | None:
        """Return the pieces near to points partly selected, by their cells; None if there is one piece."""
        return None if self._cells is None else self._cells.at(self._slots.take(cell))
