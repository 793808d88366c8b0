"""Weights of many bones, most of which do not hold most points: gathered bone by bone, then the strongest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Ints = NDArray[np.int32]


class Slots(NamedTuple):
    """S influences on each of N points; unused ones have bone 0, weight 0 and gradient 0.

    bones, weights : (S, N)
    gradients : (3, S, N)
    """

    bones: Ints
    weights: Floats
    gradients: Floats

    def led_by(self, bone: int, weights: Floats, gradients: Floats) -> Slots:
        """Return one more influence on each point, in the first slot."""
        first = (np.full(len(weights), bone, np.int32), weights, gradients)
        return Slots(
            np.concatenate([first[0][None], self.bones]),
            np.concatenate([first[1][None], self.weights]),
            np.concatenate([first[2][:, None], self.gradients], axis=1),
        )

    def strongest(self, count: int) -> Slots:
        """Return ``count`` slots, strongest first; of equal ones the lower bone."""
        slots, n = self.weights.shape
        left, points = self.weights.copy(), np.arange(n)
        kept = empty_slots(count, n, self.weights.dtype)
        for slot in range(min(count, slots)):
            best, bone, place = left[0].copy(), self.bones[0].copy(), np.zeros(n, np.intp)
            for other in range(1, slots):
                better = (left[other] == best) & (self.bones[other] < bone)
                better |= left[other] > best
                place[better] = other * n
                np.copyto(bone, self.bones[other], where=better)
                np.maximum(best, left[other], out=best)
            place += points
            kept.bones[slot] = self.bones.ravel().take(place)
            kept.weights[slot] = self.weights.ravel().take(place)
            for axis in range(3):
                kept.gradients[axis, slot] = self.gradients[axis].ravel().take(place)
            left.ravel()[place] = -1
        return kept


def empty_slots(slots: int, points: int, dtype: np.dtype) -> Slots:
    """Return slots that are not used."""
    shape = (slots, points)
    return Slots(np.zeros(shape, np.int32), np.zeros(shape, dtype), np.zeros((3, *shape), dtype))


class Gathering:
    """The influences on N points, collected bit by bit; a point has as many slots as it needs.

    total : (N,) sums of the weights
    """

    def __init__(self, points: int) -> None:
        self.total = np.zeros(points)
        self._used = np.zeros(points, np.int32)
        self._parts: list[tuple[Ints, NDArray[np.intp], Ints, Floats, list[Floats]]] = []

    def add(self, bones: Ints, weights: Floats, gradients: Floats) -> None:
        """Add weights (N,) above 0 of bones (N,) that points have no weight of yet; gradients (3, N)."""
        rows = np.flatnonzero(weights)
        if not len(rows):
            return
        place, held = self._used.take(rows), weights.take(rows)
        self._used[rows] = place + 1
        self.total[rows] += held
        slopes = [gradient.take(rows) for gradient in gradients]
        self._parts.append((bones[rows], rows, place, held, slopes))

    def slots(self, rows: NDArray[np.intp]) -> Slots:
        """Return what was collected at points (R,), in any order."""
        column = np.full(len(self.total), -1, np.intp)
        column[rows] = np.arange(len(rows))
        slots = empty_slots(int(self._used.max(initial=0)), len(rows), self.total.dtype)
        for bones, points, place, weights, gradients in self._parts:
            to = column.take(points)
            there = slice(None) if to.min() >= 0 else to >= 0
            to += place.astype(np.intp) * len(rows)
            to = to[there]
            slots.bones.ravel()[to] = bones[there]
            slots.weights.ravel()[to] = weights[there]
            for kept, gradient in zip(slots.gradients, gradients, strict=True):
                kept.ravel()[to] = gradient[there]
        return slots
