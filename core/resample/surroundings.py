"""Splats and the weights at points of them, which a field is asked for once, however many poses there are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .blended_motion import Bones, LocalMotion, moved
from .weight_fields import WeightField, Weights, all_weights

F64 = NDArray[np.float64]
Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
HELD = 1e-12  # weights below are rounding


class LinearMaps(NamedTuple):
    """What R splats follow a pose by, as displacements from rest.

    bones : the pose
    own : (R,) which of the splats
    displacements : (R, 3) F(p) - p
    bent : (R, 3, 3) (J - 1) Q diag(s)
    """

    bones: Bones
    own: Ints
    displacements: F64
    bent: F64

    def take(self, rows: slice | Ints) -> LinearMaps:
        """Return those of some of the R."""
        return LinearMaps(self.bones, self.own[rows], self.displacements[rows], self.bent[rows])


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
        self._holding: dict[int, tuple[Ints, NDArray[np.bool_]]] = {}

    @cached_property
    def here(self) -> tuple[Ints, Floats, Floats]:
        """Indices, weights and gradients at the centres."""
        return self.field(self.positions, self.rows)

    def bent_by(self, bones: Bones, samples: int) -> Ints:
        """Return the splats (R,) that may be bent: bones that move against each other hold them.

        Those that hold one of as many points as samples; all splats, where the field was not asked yet about
        so many of each, or what it said is not kept.
        """
        kept = self._kept.get(samples)
        if kept is None or not kept.known.all():
            return np.arange(len(self.rows))
        if samples not in self._holding:
            self._holding[samples] = self._held(kept.all)
        holding, held = self._holding[samples]
        kinds = bones.kinds[holding][:, None]
        first, last = (
            np.where(held, kinds, len(bones.linear)).min(axis=0),
            np.where(held, kinds, -1).max(axis=0),
        )
        return np.flatnonzero(first < last)

    def _held(self, there: Weights) -> tuple[Ints, NDArray[np.bool_]]:
        """Return bones (B,) and whether they hold splats (B, C), at the centre or at points there."""
        indices, weights, _ = self.here
        bones, rows = np.union1d(there.bones, indices), np.arange(len(self.rows))
        held = np.zeros((len(bones), len(rows)), bool)
        held[np.searchsorted(bones, there.bones)] = (there.weights > HELD).any(axis=2)
        for slot in range(indices.shape[1]):
            held[np.searchsorted(bones, indices[:, slot]), rows] |= weights[:, slot] > HELD
        return bones, held

    def linear_maps(self, bones: Bones, own: Ints | None = None) -> LinearMaps:
        """Return the linear maps of splats ``own`` (R,); None: of all."""
        own = np.arange(len(self.rows)) if own is None else own
        indices, weights, gradients = self.here
        motion = LocalMotion.at(bones, self.positions[own], indices[own], weights[own])
        jacobians = motion.jacobians(weights[own], gradients[own])
        return LinearMaps(bones, own, motion.displacement, jacobians @ self.axes[own])

    def residuals(self, maps: LinearMaps, normals: Floats) -> F64:
        """Return F(y) - F(p) - J (y - p) at y = p + Q diag(s) z, (3, R, S), metres.

        Parameters
        ----------
        normals : z, (S, 3) the same for all splats of the maps, or (R, S, 3)
        """
        points = _along(self.axes[maps.own], normals)
        points += self.positions[maps.own].T[:, :, None]
        there, places = self._weights(points, normals, maps.own), points.reshape(3, -1)
        errors = moved(maps.bones, places.T, there.bones, there.weights.reshape(len(there.bones), -1))
        errors = errors.reshape(points.shape)
        errors -= maps.displacements.T[:, :, None]
        errors -= _along(maps.bent, normals)
        return errors

    def _weights(self, points: F64, normals: Floats, own: Ints) -> Weights:
        """Return the weights at points (3, R, S) of splats ``own``: of bones (B,), (B, R, S)."""
        if not self.keep or normals.ndim == 3:
            return self._asked(points, own)
        kept = self._kept.setdefault(normals.shape[-2], _Kept(len(self.rows), normals.shape[-2]))
        new = np.flatnonzero(~kept.known[own])
        if len(new):
            kept.store(own[new], self._asked(points[:, new], own[new]))
        return kept.of(own)

    def _asked(self, points: F64, own: Ints) -> Weights:
        shape = points.shape[1:]
        found = all_weights(self.field, points.reshape(3, -1).T, np.repeat(self.rows[own], shape[1]))
        found = Weights(found.bones, found.weights.reshape(-1, *shape))
        if hasattr(self.field, "all_weights"):
            self._cut(found, own)
        return found

    def _cut(self, found: Weights, own: Ints) -> None:
        """Take out of weights (B, R, S) about splats the bones that were cut off at their centres.

        Which bones are cut off changes from splat to splat, with a jump that no splitting mends: it is no
        error of the linear map.
        """
        indices, kept, _ = self.here
        crowded = np.flatnonzero(kept[own, -1] > 0)
        if not len(crowded):
            return
        own = own[crowded]
        there = all_weights(self.field, self.positions[own], self.rows[own])
        held = there.weights > 0
        held &= ~(indices[own][None] == there.bones[:, None, None]).any(axis=2)
        held &= np.isin(there.bones, found.bones)[:, None]
        bones, of = np.nonzero(held)
        bones, weights = np.searchsorted(found.bones, there.bones[bones]), found.weights
        cut = weights[bones, crowded[of]]
        left = np.ones((len(crowded), weights.shape[2]))
        np.subtract.at(left, of, cut)
        some = left > 1e-9  # elsewhere nothing else holds the point
        weights[bones, crowded[of]] = np.where(some[of], 0, cut)
        changed = np.unique(of)
        weights[:, crowded[changed]] /= np.where(some, left, 1)[changed]


def _along(axes: F64, normals: Floats) -> F64:
    """Return the products of axes (R, 3, 3) with normals (S, 3) or (R, S, 3), (3, R, S)."""
    if normals.ndim == 2:
        return axes.transpose(1, 0, 2) @ normals.T
    return np.ascontiguousarray((axes @ np.swapaxes(normals, 1, 2)).transpose(1, 0, 2))


class _Kept:
    """Weights at S points of C splats, of those known that were asked for."""

    def __init__(self, count: int, samples: int) -> None:
        self.known = np.zeros(count, bool)
        self.all = Weights(np.zeros(0, np.int32), np.zeros((0, count, samples)))

    def store(self, own: Ints, found: Weights) -> None:
        """Keep the weights of splats ``own``."""
        bones = np.union1d(self.all.bones, found.bones)
        if len(bones) > len(self.all.bones):
            weights = np.zeros((len(bones), *self.all.weights.shape[1:]))
            weights[np.searchsorted(bones, self.all.bones)] = self.all.weights
            self.all = Weights(bones, weights)
        self.all.weights[np.searchsorted(bones, found.bones)[:, None], own] = found.weights
        self.known[own] = True

    def of(self, own: Ints) -> Weights:
        """Return the weights of splats ``own``."""
        return Weights(self.all.bones, self.all.weights[:, own])
