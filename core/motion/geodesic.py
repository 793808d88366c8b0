"""Distances between poses, windows of poses and a database's keys.

The distance of two windows of `p` poses over the joints of a part is the root of the mean, weighted by the
window, of squared geodesic distances of joint rotations. A search first ranks all frames by a chordal proxy,
``1 - <a, b>^2 = sin^2(d / 2)``, which is one matrix product of stacked outer products ``a a^T``, then
measures as many exactly as it takes: as ``4 sin^2(d / 2) <= d^2`` it is known when no other can be nearer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .parts import Parts
from .timeline import clip_bounds

F32 = NDArray[np.float32]
CANDIDATES = 32
_UPPER = np.triu_indices(4)
_SCALE = np.where(_UPPER[0] == _UPPER[1], 1, np.sqrt(2)).astype(np.float32)
_BLOCK = 64
_NOISE = 4e-6  # of single precision in a squared distance


def window_rows(clips: NDArray[np.integer], offsets: NDArray[np.integer]) -> NDArray[np.intp]:
    """Rows (F, p) of the frames at `offsets` (p,) around every frame, clamped to its clip."""
    first, last = clip_bounds(clips)
    return np.clip(np.arange(len(clips))[:, None] + offsets, first[:, None], last[:, None])


def chordal_features(rotations: NDArray[np.floating]) -> F32:
    """Features (..., 10) of unit quaternions (..., 4) with ``f(a) . f(b) = <a, b>^2``."""
    q = np.asarray(rotations, np.float32)
    return q[..., _UPPER[0]] * q[..., _UPPER[1]] * _SCALE


def squared_angles(a: NDArray[np.floating], b: NDArray[np.floating]) -> NDArray[np.floating]:
    """Squared geodesic distances (...,) of unit quaternions (..., 4), in the precision of the input.

    The angle of two vectors by Kahan's formula, ``2 atan2(|a - b|, |a + b|)``: exact near 0, and exactly 0
    for equal quaternions.
    """
    apart, along = a - b, a + b
    apart = np.sqrt(np.einsum("...i,...i->...", apart, apart))
    along = np.sqrt(np.einsum("...i,...i->...", along, along))
    return 16 * np.arctan2(np.minimum(apart, along), np.maximum(apart, along)) ** 2


class KeySearch:
    """Nearest windows of a database's keys, part by part.

    rotations : (F, J, 4) float32 keys; clips : (F,); parts : of joints
    offsets : (p,) frames of a window relative to the frame it stands for
    weights : (p,) of the window's frames, summing to 1
    """

    def __init__(
        self,
        rotations: F32,
        clips: NDArray[np.integer],
        parts: Parts,
        offsets: NDArray[np.integer],
        weights: NDArray[np.floating],
    ) -> None:
        used = np.asarray(weights) > 0
        self.offsets, self.weights = np.asarray(offsets)[used], np.asarray(weights, np.float32)[used]
        self.rotations, self.parts = np.asarray(rotations, np.float32), parts
        self.rows = window_rows(clips, self.offsets)
        chordal = chordal_features(self.rotations)
        self.features = [self._stack(chordal[:, part][self.rows]) for part in parts]

    def _stack(self, features: F32) -> F32:
        """(Q, p |J| 10) features, weighted for the dot product, of windows (Q, p, |J|, 10)."""
        scale = np.sqrt(self.weights / features.shape[2])[:, None, None]
        return (features * scale).reshape(len(features), -1)

    def nearest(self, windows: F32, part: int, count: int) -> tuple[NDArray[np.intp], NDArray[np.floating]]:
        """The `count` nearest frames to windows of poses, the earlier first where equally near.

        Parameters
        ----------
        windows : (Q, p, J, 4) float32 unit quaternions

        Returns
        -------
        rows : (Q, n) frames, nearest first; distances : (Q, n) radians; n is `count`, or F if that is less
        """
        count = min(count, len(self.rotations))
        rows = np.empty((len(windows), count), np.intp)
        squared = np.empty((len(windows), count), np.float32)
        for first in range(0, len(windows), _BLOCK):
            block = slice(first, first + _BLOCK)
            rows[block], squared[block] = self._search(windows[block][:, :, self.parts[part]], part, count)
        return rows, np.sqrt(squared)

    def _search(self, windows: F32, part: int, count: int) -> tuple[NDArray[np.intp], F32]:
        """Rows (Q, count) and squared distances of windows (Q, p, |J|, 4) of the part's joints."""
        if not len(self.parts[part]):  # a skeleton of one joint: all poses are alike
            return np.tile(np.arange(count), (len(windows), 1)), np.zeros((len(windows), count), np.float32)
        bounds = 4 - 4 * self._stack(chordal_features(windows)) @ self.features[part].T  # (Q, F), at most d^2
        rows = np.empty((len(windows), count), np.intp)
        squared = np.empty((len(windows), count), np.float32)
        open_rows, keep = np.arange(len(windows)), max(CANDIDATES, 2 * count)
        while len(open_rows):
            near, least = _smallest(bounds[open_rows], keep)
            keys = self.rotations[self.rows[near][..., None], self.parts[part]]  # (Q, keep, p, |J|, 4)
            exact = squared_angles(windows[open_rows, None], keys).mean(axis=-1) @ self.weights
            order = np.argsort(exact, axis=1, kind="stable")[:, :count]
            rows[open_rows] = np.take_along_axis(near, order, 1)
            squared[open_rows] = np.take_along_axis(exact, order, 1)
            unsure = least < squared[open_rows, -1] + _NOISE
            open_rows, keep = open_rows[unsure], 8 * keep
        return rows, squared


def _smallest(values: F32, keep: int) -> tuple[NDArray[np.intp], F32]:
    """Columns (Q, keep) of the smallest values (Q, F), rising, and the smallest value (Q,) of the rest."""
    total = values.shape[1]
    if keep >= total:
        return np.tile(np.arange(total), (len(values), 1)), np.full(len(values), np.inf, np.float32)
    order = np.argpartition(values, keep, axis=1)
    least = np.take_along_axis(values, order[:, keep : keep + 1], 1)[:, 0]
    return np.sort(order[:, :keep], axis=1), least
