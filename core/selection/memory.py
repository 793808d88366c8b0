"""What layers select, kept from one evaluation of a stack to the next: most stay while one is changed.

A layer's strength, operation and place in the stack do not change what it selects.
"""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .compose import Selected
from .layer import SelectionLayer
from .viewpoint import Floats, Projected, Viewpoint

Box = tuple[float, float, float, float]  # least x, y and largest x, y, pixels
MOST_BYTES = 256 << 20


class Memory:
    """Selections at points that stay where they are, by their values: nothing has to be told of changes.

    Parameters
    ----------
    most : bytes; what does not fit is evaluated each time
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.most, self.bytes = most, 0
        self._points: NDArray[Any] = np.zeros((0, 3))
        self._kept: dict[Hashable, Selected] = {}
        self._asked: set[Hashable] = set()
        self._lock = Lock()

    def begin(self, points: Floats) -> None:
        """Start an evaluation at points (N, 3), which nobody changes afterwards."""
        if points.dtype != self._points.dtype or not np.array_equal(points, self._points):
            self.clear()
            self._points = points
        self._asked.clear()

    def end(self) -> None:
        """Forget what the evaluation did not ask for."""
        self._kept = {key: kept for key, kept in self._kept.items() if key in self._asked}
        self.bytes = sum(map(_size, self._kept.values()))

    def clear(self) -> None:
        """Forget everything."""
        self._points, self.bytes = np.zeros((0, 3)), 0
        self._kept.clear()

    def find(self, layer: SelectionLayer, start: int) -> Selected | None:
        """Return what a layer selects of the points from ``start`` on, as they were kept."""
        key = _key(layer, start)
        self._asked.add(key)
        return self._kept.get(key)

    def keep(self, layer: SelectionLayer, start: int, selected: Selected) -> None:
        """Keep what was found out, if there is room."""
        size = _size(selected)
        with self._lock:
            if self.bytes + size > self.most:
                return
            self.bytes += size
        for part in selected:
            if part is not None:
                part.flags.writeable = False
        self._kept[_key(layer, start)] = selected


class Seen:
    """Points in the views of layers, each projected once.

    Parameters
    ----------
    points : (N, 3) in object space
    dtype : that is calculated in
    memory, start : where selections are kept, and the place of the points among all of them
    """

    def __init__(self, points: Floats, dtype: Any, memory: Memory | None = None, start: int = 0) -> None:
        self.points, self.dtype, self.memory, self.start = points, dtype, memory, start
        self._views: dict[Viewpoint, Projected] = {}
        self._boxes: dict[Viewpoint, Box | None] = {}

    def at(self, view: Viewpoint) -> Projected:
        """Return the points in a view."""
        if view not in self._views:
            self._views[view] = view.project(self.points, self.dtype)
        return self._views[view]

    def box(self, view: Viewpoint) -> Box | None:
        """Return the box of the points in a view; None where none are seen."""
        if view not in self._boxes:
            at = self.at(view)
            x, y = (at.x, at.y) if at.seen.all() else (at.x[at.seen], at.y[at.seen])
            self._boxes[view] = (
                (float(x.min()), float(y.min()), float(x.max()), float(y.max())) if len(x) else None
            )
        return self._boxes[view]

    def recall(self, layer: SelectionLayer) -> Selected | None:
        """Return what is known of a layer's selection with its gradients."""
        return None if self.memory is None else self.memory.find(layer, self.start)

    def remember(self, layer: SelectionLayer, selected: Selected) -> None:
        """Keep a layer's selection with its gradients."""
        if self.memory is not None:
            self.memory.keep(layer, self.start, selected)


def _key(layer: SelectionLayer, start: int) -> Hashable:
    return layer.viewpoint, layer.shape, layer.feather, layer.front, start


def _size(selected: Selected) -> int:
    return sum(part.nbytes for part in selected if part is not None)
