"""Splats and the weights at points of them, which a field is asked for once, however many poses there are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .blended_motion import Bones, LocalMotion, moved, moved_by_all
from .weight_fields import WeightField

F64 = NDArray[np.float64]
Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Weights = tuple[NDArray, ...]  # of all bones (M + 1, R, S); or indices (K, R, S) and weights (K, R, S)


@dataclass(eq=False)
class Surroundings:
    """C splats in a field of weights.

    positions : (C, 3) p; axes : (C, 3, 3) Q diag(s); rows : (C,) of the splats in the field
    field : the weights
    keep : remember what the field said, for further poses
    """

    positions: F64
    axes: F64
    rows: Ints
    field: WeightField
    keep: bool = False

    def __post_init__(self) -> None:
        self._kept: dict[int, _Kept] = {}

    @cached_property
    def here(self) -> tuple[Ints, Floats, Floats]:
        """Indices, weights and gradients at the centres."""
        return self.field(self.positions, self.rows)

    def residuals(self, bones: Bones, normals: Floats, own: slice | Ints) -> F64:
        """Return F(y) - F(p) - J (y - p) at y = p + Q diag(s) z, (R, S, 3), metres.

        Parameters
        ----------
        normals : z, (S, 3) the same for all, or (R, S, 3)
        own : which of the splats, (R,)
        """
        indices, weights, gradients = self.here
        positions = self.positions[own]
        motion = LocalMotion.at(bones, positions, indices[own], weights[own])
        steps = normals @ np.swapaxes(self.axes[own], 1, 2)  # (R, S, 3)
        points = (positions[:, None] + steps).reshape(-1, 3)
        there = _moved(bones, points, self._weights(points, normals, own)).reshape(steps.shape)
        linear = steps @ np.swapaxes(motion.jacobians(weights[own], gradients[own]), 1, 2)
        return there - motion.displacement[:, None] - linear

    def _weights(self, points: F64, normals: Floats, own: slice | Ints) -> Weights:
        """Return the weights at points of splats ``own``."""
        samples = normals.shape[-2]
        if not self.keep or normals.ndim == 3:
            return self._asked(points, np.arange(len(self.rows))[own], samples)
        kept = self._kept.setdefault(samples, _Kept(len(self.rows)))
        chosen = np.arange(len(self.rows))[own]
        new = np.flatnonzero(~kept.known[chosen])
        if len(new):
            fresh = points.reshape(len(chosen), samples, 3)[new].reshape(-1, 3)
            kept.store(chosen[new], self._asked(fresh, chosen[new], samples))
        return kept.of(own)

    def _asked(self, points: F64, own: Ints, samples: int) -> Weights:
        rows = np.repeat(self.rows[own], samples)
        all_weights = getattr(self.field, "all_weights", None)
        found = self.field(points, rows)[:2] if all_weights is None else (all_weights(points, rows),)
        parts = tuple(each.T.reshape(each.shape[1], -1, samples) for each in found)
        if all_weights is not None:
            self._cut(parts[0], own)
        return parts

    def _cut(self, weights: NDArray, own: Ints) -> None:
        """Take out of weights (M + 1, R, S) about splats the bones that were cut off at their centres.

        Which bones are cut off changes from splat to splat, with a jump that no splitting mends: it is no
        error of the linear map.
        """
        indices, kept, _ = self.here
        crowded = np.flatnonzero(kept[own, -1] > 0)
        if not len(crowded):
            return
        own = own[crowded]
        held = np.array(self.field.all_weights(self.positions[own], self.rows[own]).T > 0)  # pyright: ignore[reportAttributeAccessIssue]
        held[indices[own].T + 1, np.arange(len(own))] = False
        bones, of = np.nonzero(held)
        cut = weights[bones, crowded[of]]
        left = np.ones((len(crowded), weights.shape[2]))
        np.subtract.at(left, of, cut)
        some = left > 1e-9  # elsewhere nothing else holds the point
        weights[bones, crowded[of]] = np.where(some[of], 0, cut)
        changed = np.unique(of)
        weights[:, crowded[changed]] /= np.where(some, left, 1)[changed]


class _Kept:
    """Weights at points of C splats, of those known that were asked for."""

    def __init__(self, count: int) -> None:
        self.known = np.zeros(count, bool)
        self._parts: Weights = ()

    def store(self, own: Ints, weights: Weights) -> None:
        """Keep the weights of splats ``own``."""
        if not self._parts:
            shapes = ((each.shape[0], len(self.known), each.shape[2]) for each in weights)
            self._parts = tuple(np.empty(s, each.dtype) for s, each in zip(shapes, weights, strict=True))
        for part, each in zip(self._parts, weights, strict=True):
            part[:, own] = each
        self.known[own] = True

    def of(self, own: slice | Ints) -> Weights:
        """Return the weights of splats ``own``."""
        return tuple(part[:, own] for part in self._parts)


def _moved(bones: Bones, points: F64, weights: Weights) -> F64:
    """Return how far points (P, 3) go, (P, 3)."""
    flat = [each.reshape(len(each), -1).T for each in weights]
    return moved_by_all(bones, points, flat[0]) if len(flat) == 1 else moved(bones, points, *flat)
