"""Stacks of selection layers at any points: weights and their exact gradients in one pass."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from threading import Lock

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .band import FULL, NONE, PARTLY, SLACK, Band
from .compose import Selected, compose
from .layer import LayerStack, SelectionLayer
from .memory import Box, Seen
from .viewpoint import Projected

Floats = NDArray[np.floating]
CHUNK = 1 << 17  # smaller ones let threads wait for each other between the many short steps
MOST_THREADS = 8


class LayerField:
    """One layer, made ready to be evaluated at many points."""

    def __init__(self, layer: SelectionLayer) -> None:
        self.layer = layer
        self._band: Band | None = None
        self._lock = Lock()

    @property
    def band(self) -> Band:
        """The cells about the shape, made when they are needed first."""
        with self._lock:
            if self._band is None:
                self._band = Band(self.layer.shape, self.layer.feather)
        return self._band

    @cached_property
    def reach(self) -> Box | None:
        """The box of the shape with its feather, pixels; None where it is empty."""
        bounds, grown = self.layer.shape.bounds, self.layer.feather.none + SLACK
        if bounds is None:
            return None
        return bounds[0] - grown, bounds[1] - grown, bounds[2] + grown, bounds[3] + grown

    def touches(self, box: Box | None) -> bool:
        """Return whether the layer may select something in a box of its view."""
        own = self.reach
        if own is None or box is None:
            return False
        return own[0] <= box[2] and own[1] <= box[3] and own[2] >= box[0] and own[3] >= box[1]

    def select(self, points: Floats, at: Projected, gradients: bool) -> Selected:
        """Evaluate at points (N, 3) seen in the layer's view, in the floating type of ``at``."""
        if self.band.empty:
            return Selected(np.zeros_like(at.x), np.zeros(0, dtype=np.intp), None)
        state, cell = self.band.sort(at.x, at.y)
        if self.layer.front is None:
            return self._select(state, cell, at, gradients)
        front, rows = self.layer.front, np.flatnonzero(state != NONE)
        value, fading, by_depth = front.fade(self.layer.viewpoint, points[rows], at.take(rows), gradients)
        state[rows[value == 0]] = NONE  # what is hidden need not be measured
        selected = self._select(state, cell, at, gradients)
        if by_depth is None or selected.slope is None:
            selected.fade[rows] *= value
            return selected
        return _product(selected, rows, value, fading, by_depth)

    def _select(
        self, state: NDArray[np.uint8], cell: NDArray[np.int32], at: Projected, gradients: bool
    ) -> Selected:
        """Evaluate through everything, in points that are selected not, wholly or partly."""
        fade = (state == FULL).astype(at.x.dtype)
        rows = np.flatnonzero(state == PARTLY)
        fade[rows], slope = self._measure(at.take(rows), cell.take(rows), gradients)
        return Selected(fade, rows, slope)

    def _measure(
        self, at: Projected, cell: NDArray[np.int32], gradients: bool
    ) -> tuple[Floats, Floats | None]:
        """Return fades (R,) and slopes (3, R) of points whose distance to the edge matters."""
        layer, near = self.layer, self.band.near(cell)
        distance = layer.shape.distance(at.x, at.y, normals=gradients, near=near)
        if not gradients or distance.x is None or distance.y is None:
            return layer.feather.value(distance.value), None
        fade, rate = layer.feather.value_and_slope(distance.value)
        along_x, along_y = (np.multiply(rate, part, out=part) for part in (distance.x, distance.y))
        return fade, layer.viewpoint.pull_back(at, along_x, along_y)


def _product(
    selected: Selected,
    rows: NDArray[np.intp],
    value: Floats,
    fading: NDArray[np.intp],
    by_depth: Floats,
) -> Selected:
    """Multiply what is selected by values that points ``rows`` have, with slopes at ``rows[fading]``."""
    fade, partly, slope = selected
    assert slope is not None
    others, values = rows[fading], np.zeros_like(fade)
    values[rows] = value
    place = np.zeros(len(fade), np.intp)
    place[partly] = place[others] = 1
    together = np.flatnonzero(place)
    place[together] = np.arange(len(together))
    total = np.zeros((3, len(together)), fade.dtype)
    first, second = slope * values.take(partly), by_depth * fade.take(others)
    at_first, at_second = place.take(partly), place.take(others)
    for sums, one, other in zip(total, first, second, strict=True):
        sums[at_first] = one
        sums[at_second] += other
    return Selected(fade * values, together, total)


class StackField:
    """A stack of layers, made ready to be evaluated at many points.

    Parameters
    ----------
    stack : muted layers are left out
    """

    def __init__(self, stack: LayerStack) -> None:
        self.bones = stack.bones
        self.fields = [
            [LayerField(layer) for layer in stack.of_bone(bone, muted=False)] for bone in stack.bones
        ]
        self.layered = np.array([bool(fields) for fields in self.fields], bool)

    def evaluate(
        self, points: Floats, weights: Floats, gradients: Floats | None, blank: bool = False
    ) -> None:
        """Change weights (N, M) and gradients (N, M, 3) at points (N, 3) in place, in their own type.

        Fastest where each bone's weights, and each component of its gradients, lie side by side (`zeros`),
        and where they are known to be ``blank``: 0 everywhere.
        """
        seen = Seen(points, weights.dtype)
        for bone in np.flatnonzero(self.layered).tolist():
            g = None if gradients is None else gradients[:, bone].T
            self.evaluate_bone(bone, seen, weights[:, bone], g, blank)

    def touched(self, seen: Seen) -> list[int]:
        """Return the bones of which a layer may select some of the points."""
        return [
            bone
            for bone, fields in enumerate(self.fields)
            if any(field.touches(seen.box(field.layer.viewpoint)) for field in fields)
        ]

    def evaluate_bone(
        self, bone: int, seen: Seen, weights: Floats, gradients: Floats | None, blank: bool = False
    ) -> None:
        """Change the weights (N,) and gradients (3, N) of one bone in place."""
        for number, field in enumerate(self.fields[bone]):
            layer = field.layer
            if not field.touches(seen.box(layer.viewpoint)):
                if layer.operation in ("replace", "multiply"):
                    weights[:] = 0
                    if gradients is not None:
                        gradients[:] = 0
                continue
            selected = None if gradients is None else seen.recall(layer)
            if selected is None:
                selected = field.select(seen.points, seen.at(layer.viewpoint), gradients is not None)
                if gradients is not None:
                    seen.remember(layer, selected)
            compose(layer.operation, layer.strength, weights, gradients, selected, blank and number == 0)


def evaluate_stack(
    stack: LayerStack,
    points: Floats,
    *,
    base: tuple[Floats, Floats] | None = None,
    dtype: DTypeLike = np.float64,
    threads: int | None = None,
) -> tuple[Floats, Floats]:
    """Return the weights of all bones and their gradients, before completion and normalisation.

    Every selection is ``strength * f(d(u(p)))`` with the signed distance d in the plane of its view, the
    feather f and the projection u; its gradient is the product of their derivatives. Where those jump (on
    the medial axis and at the corners of a shape, at the ends of a linear feather) the gradient is that of
    one side.

    Parameters
    ----------
    points : (N, 3) positions in object space
    base : weights (N, M) and gradients (N, M, 3) the layers start from; None starts from 0
    threads : at most; None takes one a core

    Returns
    -------
    weights : (N, M), 0..1
    gradients : (N, M, 3), 1/m; views of arrays that hold one bone after the other
    """
    points = np.asarray(points)
    weights, gradients = zeros(len(points), len(stack.bones), dtype)
    if base is not None:
        weights[:], gradients[:] = base
    field = StackField(stack)

    def work(rows: slice) -> None:
        field.evaluate(points[rows], weights[rows], gradients[rows], base is None)

    in_chunks(len(points), work, threads)
    return weights, gradients


def evaluate_weights(
    stack: LayerStack,
    points: Floats,
    *,
    base: Floats | None = None,
    dtype: DTypeLike = np.float64,
    threads: int | None = None,
) -> Floats:
    """Return the weights (N, M) alone; see `evaluate_stack`."""
    points = np.asarray(points)
    weights = np.zeros((len(stack.bones), len(points)), dtype).T
    if base is not None:
        weights[:] = base
    field = StackField(stack)

    def work(rows: slice) -> None:
        field.evaluate(points[rows], weights[rows], None, base is None)

    in_chunks(len(points), work, threads)
    return weights


def zeros(count: int, bones: int, dtype: DTypeLike = np.float64) -> tuple[Floats, Floats]:
    """Return weights (N, M) and gradients (N, M, 3) of 0, laid out one bone after the other."""
    return np.zeros((bones, count), dtype).T, np.zeros((bones, 3, count), dtype).transpose(2, 0, 1)


def in_chunks(
    count: int, work: Callable[[slice], None], threads: int | None = None, chunk: int = CHUNK
) -> None:
    """Call ``work`` for slices that make up ``range(count)``, in several threads where there are many."""
    slices = [slice(start, min(start + chunk, count)) for start in range(0, count, chunk)]
    workers = min(threads or os.cpu_count() or 1, MOST_THREADS, len(slices))
    if workers <= 1:
        for rows in slices:
            work(rows)
        return
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(work, slices):
            pass
