"""Weights between splats: what gives them anywhere, and the field that stored skins imply."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..progress import Progress, no_progress
from ..skinning.skin import Skin
from ..skinning.weights import normalize
from .weight_curvature import Neighbours, weight_hessians

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]


class Weights(NamedTuple):
    """Weights alone, of the bones that hold any of P points.

    bones : (B,) ascending, -1 the static one
    weights : (B, P)
    """

    bones: Ints
    weights: Floats


class WeightField(Protocol):
    """Normalised weights and their gradients at any point, as a stack of selection layers has them.

    A field that cuts off all but K bones has ``all_weights(points, rows)`` too, the bones (B,) and their
    weights (B, P) before that.
    """

    def __call__(self, points: Floats, rows: Ints) -> tuple[Ints, Floats, Floats]:
        """Evaluate the field.

        Parameters
        ----------
        points : (P, 3) rest space, metres
        rows : (P,) the splat each point belongs to, as numbered in the cloud that is resampled

        Returns
        -------
        indices (P, K) bones, -1 the static one, strongest first; weights (P, K), rows sum to 1; gradients
        (P, K, 3) of those weights, 1/m, which sum to 0 over K
        """
        ...


def all_weights(field: WeightField, points: Floats, rows: Ints) -> Weights:
    """Return the weights of all bones at points (P, 3) of splats ``rows`` (P,), none cut off."""
    of_all = getattr(field, "all_weights", None)
    if of_all is not None:
        return Weights(*of_all(points, rows))
    indices, weights, _ = field(points, rows)
    indices = indices + 1  # the static bone comes first
    there = np.zeros(indices.max(initial=0) + 1, bool)
    there[indices] = True
    bones, slots = np.flatnonzero(there) - 1, np.cumsum(there) - 1
    found, every = np.zeros((len(bones), len(points))), np.arange(len(points))
    for own, held in zip(slots[indices].T, weights.T, strict=True):
        found[own, every] += held  # a bone may be there twice, with nothing
    return Weights(bones, found)


class StoredField:
    """The field around each splat that its weights, their gradients and the neighbours' gradients suggest.

    A second-order Taylor expansion about the splat; weights it takes out of 0..1 end there. The second
    derivatives are estimated when asked for (`hessians`), and are 0 where nobody asked.

    Parameters
    ----------
    positions : (N, 3) rest positions
    skin : N rows
    """

    def __init__(self, positions: Floats, skin: Skin) -> None:
        self.positions, self.skin = positions, skin
        self._neighbours: Neighbours | None = None
        self._slot = np.full(len(skin), -1, np.int32)
        self._hessians = np.zeros((0, skin.influences, 3, 3), np.float32)

    def hessians(self, rows: Ints, progress: Progress = no_progress) -> NDArray[np.float32]:
        """Return the Hessians (R, K, 3, 3) of the weights at splats ``rows`` (R,), estimated once each."""
        new = np.unique(rows[self._slot[rows] < 0])
        if len(new):
            self._neighbours = self._neighbours or Neighbours.of(self.positions)
            found = weight_hessians(self.positions, self.skin, new, self._neighbours, progress=progress)
            self._slot[new] = len(self._hessians) + np.arange(len(new), dtype=np.int32)
            self._hessians = np.concatenate([self._hessians, found]) if len(self._hessians) else found
        return self._hessians[self._slot[rows]]

    def __call__(self, points: Floats, rows: Ints) -> tuple[Ints, Floats, Floats]:
        """Evaluate the expansions of the splats that the points belong to (see `WeightField`)."""
        step = points - self.positions[rows]
        gradients = self.skin.gradients[rows].astype(step.dtype)
        weights = self.skin.weights[rows] + _along(gradients, step)
        known = np.flatnonzero(self._slot[rows] >= 0)
        if len(known):
            second = self._hessians[self._slot[rows[known]]]
            slope = (second @ step[known, None, :, None])[..., 0]
            gradients[known] += slope
            weights[known] += 0.5 * _along(slope, step[known])
        ended = (weights < 0) | (weights > 1)
        rest = np.flatnonzero(ended.any(axis=1))
        gradients[ended] = 0
        weights[rest], gradients[rest] = normalize(np.clip(weights[rest], 0, 1), gradients[rest])
        return self.skin.indices[rows], weights, gradients


def _along(gradients: Floats, steps: Floats) -> Floats:
    """Return the products (P, K) of gradients (P, K, 3) with steps (P, 3)."""
    x, y, z = (gradients[:, :, i] * steps[:, None, i] for i in range(3))
    return x + y + z
