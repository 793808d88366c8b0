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

    def by_bone(self) -> Slots:
        """Return the same with each point's slots in the order of the bones."""
        order = np.argsort(self.bones, axis=0, kind="stable")
        return Slots(
            np.take_along_axis(self.bones, order, axis=0),
            np.take_along_axis(self.weights, order, axis=0),
            np.take_along_axis(self.gradients, order[None], axis=1),
        )

    def strongest(self, count: int) -> Slots:
        """Return ``count`` slots, strongest first; of equal ones those that came first."""
        slots, n = self.weights.shape
        left, points = self.weights.copy(), np.arange(n)
        kept = empty_slots(count, n, self.weights.dtype)
        for slot in range(min(count, slots)):
            best, place = left[0].copy(), np.zeros(n, np.intp)
            for other in range(1, slots):
                place[left[other] > best] = other * n
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
    """The influences on N points, collected bone by bone; a point has as many slots as it needs.

    total : (N,) sums of the weights
    """

    def __init__(self, points: int) -> None:
        self.total = np.zeros(points)
        self._used = np.zeros(points, np.int32)
        self._parts: list[tuple[int, NDArray[np.intp], Ints, Floats, list[Floats]]] = []

    def add(self, bone: int, weights: Floats, gradients: Floats) -> None:
        """Add a bone's weights (N,) above 0, with their gradients (3, N)."""
        rows = np.flatnonzero(weights)
        if not len(rows):
            return
        place, held = self._used.take(rows), weights.take(rows)
        self._used[rows] = place + 1
        self.total[rows] += held
        self._parts.append((bone, rows, place, held, [gradient.take(rows) for gradient in gradients]))

    def slots(self, rows: NDArray[np.intp]) -> Slots:
        """Return what was collected at points (R,), in the order it came."""
        column = np.full(len(self.total), -1, np.intp)
        column[rows] = np.arange(len(rows))
        slots = empty_slots(int(self._used.max(initial=0)), len(rows), self.total.dtype)
        for bone, points, place, weights, gradients in self._parts:
            to = column.take(points)
            there = slice(None) if to.min() >= 0 else to >= 0
            to += place.astype(np.intp) * len(rows)
            to = to[there]
            slots.bones.ravel()[to] = bone
            slots.weights.ravel()[to] = weights[there]
            for kept, gradient in zip(slots.gradients, gradients, strict=True):
                kept.ravel()[to] = gradient[there]
        return slots
