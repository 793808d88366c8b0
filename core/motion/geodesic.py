"""Distances between poses, windows of poses and a database's keys.

The distance of two windows of `p` poses over the joints of a part is the root of the mean, weighted by the
window, of squared geodesic distances d of joint rotations. A search first bounds all of them from below by
``4 sin^2(d / 2) = 4 (1 - <a, b>^2)``, which takes products of matrices only, then measures as many exactly as
it takes to know that no other frame can be nearer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .parts import Parts
from .timeline import clip_bounds

F32 = NDArray[np.float32]
I64 = NDArray[np.intp]
CANDIDATES = 16
_NOISE = 4e-6  # of single precision in a squared distance
_BLOCK = 1 << 21  # numbers held at once


def window_rows(clips: NDArray[np.integer], offsets: NDArray[np.integer]) -> NDArray[np.intp]:
    """Rows (F, p) of the frames at `offsets` (p,) around every frame, clamped to its clip."""
    first, last = clip_bounds(clips)
    return np.clip(np.arange(len(clips))[:, None] + offsets, first[:, None], last[:, None])


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

    rotations : (F, J, 4) float32 keys; clips : (F,); parts : P arrays of joints
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
        self.rows = window_rows(clips, self.offsets)
        self.rotations = np.asarray(rotations, np.float32)
        self.part_count = len(parts)
        widest = max(1, *(len(part) for part in parts)) if parts else 1
        self._joints = np.zeros((self.part_count, widest), np.intp)  # padded with shares of 0
        self._shares = np.zeros((self.part_count, widest), np.float32)
        for row, part in enumerate(parts):
            self._joints[row, : len(part)] = part
            self._shares[row, : len(part)] = 1 / max(len(part), 1)
        self._in_use = np.unique(self._joints[self._shares > 0])
        self._keys = np.ascontiguousarray(self.rotations[:, self._in_use].transpose(1, 2, 0))  # (J', 4, F)

    def nearest(self, poses: NDArray[np.floating], rows: I64, count: int) -> tuple[I64, F32]:
        """The `count` nearest frames to windows of poses, the earlier first where equally near.

        Parameters
        ----------
        poses : (N, J, 4) unit quaternions
        rows : (Q, p) poses of each window

        Returns
        -------
        frames : (P, Q, n), nearest first; distances : (P, Q, n) float32, radians; n is `count`, or F if that
        is less
        """
        poses = np.asarray(poses, np.float32)
        count = min(count, len(self.rotations))
        frames = np.empty((self.part_count, len(rows), count), np.intp)
        distances = np.empty(frames.shape, np.float32)
        step = max(1, _BLOCK // (len(self.rotations) * max(self.part_count, 1)))
        for first in range(0, len(rows), step):
            block = slice(first, first + step)
            used, inverse = np.unique(rows[block], return_inverse=True)
            found = self._search(poses[used], inverse.reshape(-1, rows.shape[1]), count)
            frames[:, block], distances[:, block] = found
        return frames, distances

    def _search(self, poses: F32, rows: I64, count: int) -> tuple[I64, F32]:
        bounds = self.squared_chords(poses, rows)
        parts, windows = (axis.ravel() for axis in np.indices(bounds.shape[:2]))
        frames = np.empty((len(parts), count), np.intp)
        squared = np.empty((len(parts), count), np.float32)
        unsure, keep = np.arange(len(parts)), max(CANDIDATES, 2 * count)
        while len(unsure):
            near, least = _smallest(bounds[parts[unsure], windows[unsure]], keep)
            exact = self._exact(poses, rows[windows[unsure]], parts[unsure], near)
            order = np.argsort(exact, axis=1, kind="stable")[:, :count]
            frames[unsure] = np.take_along_axis(near, order, 1)
            squared[unsure] = np.take_along_axis(exact, order, 1)
            unsure, keep = unsure[least < squared[unsure, -1] + _NOISE], 8 * keep
        shape = (*bounds.shape[:2], count)
        return frames.reshape(shape), np.sqrt(squared).reshape(shape)

    def squared_chords(self, poses: F32, rows: I64) -> F32:
        """Squared chordal distances (P, Q, F), ``4 sin^2(d / 2)`` for each joint, of windows to all frames.

        poses, rows : as for `nearest`; close to the squared distances where they are small, never above them
        but for single precision
        """
        alike = poses[:, self._in_use].transpose(1, 0, 2) @ self._keys  # (J', N, F)
        np.multiply(alike, alike, out=alike)
        alike = self._part_means(alike)
        total = np.zeros((self.part_count, len(rows), len(self.rotations)), np.float32)
        for place, (offset, weight) in enumerate(zip(self.offsets, self.weights, strict=True)):
            moved = alike[:, rows[:, place]] * weight
            total += np.take(moved, self.rows[:, place], axis=2) if offset else moved
        return 4 * (self._shares.sum(axis=1)[:, None, None] - total)

    def _part_means(self, values: F32) -> F32:
        """Means (P, ...) over the joints of each part, of values (J', ...) of the joints in use.

        Plain sums: BLAS threads of a busy machine would wait for each other longer than these take.
        """
        places = np.searchsorted(self._in_use, self._joints)
        means = np.zeros((self.part_count, *values.shape[1:]), np.float32)
        for mean, joints, shares in zip(means, places, self._shares, strict=True):
            for joint, share in zip(joints[shares > 0], shares, strict=False):
                mean += share * values[joint]
        return means

    def _exact(self, poses: F32, rows: I64, parts: I64, near: I64) -> F32:
        """Squared distances (R, n) of windows (R, p) to frames (R, n), over the joints of a part (R,)."""
        joints = self._joints[parts]  # (R, j)
        keys = self.rotations[self.rows[near][..., None], joints[:, None, None]]  # (R, n, p, j, 4)
        windows = poses[rows[..., None], joints[:, None]]  # (R, p, j, 4)
        angles = squared_angles(windows[:, None], keys)
        return np.einsum("rnpj,p,rj->rn", angles, self.weights, self._shares[parts], optimize=True)


def _smallest(values: F32, keep: int) -> tuple[I64, F32]:
    """Columns (Q, keep) of the smallest values (Q, F), rising, and the smallest value (Q,) of the rest."""
    total = values.shape[1]
    if keep >= total:
        return np.tile(np.arange(total), (len(values), 1)), np.full(len(values), np.inf, np.float32)
    order = np.argpartition(values, keep, axis=1)
    least = np.take_along_axis(values, order[:, keep : keep + 1], 1)[:, 0]
    return np.sort(order[:, :keep], axis=1), least
