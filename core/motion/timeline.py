"""Captured frames on a steady clock: clips in order, short gaps filled, rates changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..rotations import normalize_quaternions

I64, F64 = NDArray[np.intp], NDArray[np.float64]
LONGEST_GAP = 4  # missing frames in a row


@dataclass(frozen=True)
class Timeline:
    """Where each row of a clip-wise steady sequence comes from: cubic in time, continuous in velocity.

    sources : (F, 4) rows of the input around each frame: one before, its neighbours, one after
    weights : (F, 4), rows summing to 1; 0, 1, 0, 0 where the frame itself is in the input
    clips : (F,) int32 from 0, rising
    """

    sources: I64
    weights: F64
    clips: NDArray[np.int32]

    @property
    def captured(self) -> NDArray[np.bool_]:
        """(F,) True where the frame is in the input."""
        return self.weights[:, 1] == 1

    @classmethod
    def of(cls, clips: NDArray[np.integer], frames: NDArray[np.integer]) -> Timeline:
        """Order rows by clip and frame and close short gaps; long ones split the clip.

        clips : (G,) of any numbers; frames : (G,) times in frames
        """
        order = np.lexsort((frames, clips))
        gap = np.diff(frames[order])
        breaks = (np.diff(clips[order]) != 0) | (gap > LONGEST_GAP + 1) | (gap < 1)
        number = np.concatenate([[0], np.cumsum(breaks)])
        steps = np.concatenate([np.where(breaks, 1, gap), [1]])
        left = np.repeat(np.arange(len(order)), steps)
        within = np.arange(len(left)) - np.repeat(np.cumsum(steps) - steps, steps)
        return cls._between(frames[order].astype(np.float64), number, left, within, order)

    @classmethod
    def stretched(cls, lengths: NDArray[np.integer], wanted: NDArray[np.integer]) -> Timeline:
        """Clips of `lengths` (C,) frames stretched to those `wanted` (C,), ends kept."""
        starts = np.cumsum(lengths) - lengths
        clips = np.repeat(np.arange(len(lengths)), wanted)
        within = np.arange(len(clips)) - (np.cumsum(wanted) - wanted)[clips]
        at = within * ((lengths - 1) / np.maximum(wanted - 1, 1))[clips]
        low = np.floor(at + 1e-9).astype(np.intp)
        rows = np.arange(lengths.sum())
        after = np.where(at - low > 1e-9, at - low, 0.0)
        number = np.repeat(np.arange(len(lengths)), lengths)
        return cls._between(rows.astype(np.float64), number, starts[clips] + low, after, rows)

    @classmethod
    def _between(
        cls, times: F64, clips: NDArray[np.integer], left: I64, after: NDArray, rows: NDArray[np.integer]
    ) -> Timeline:
        """Frames `after` (F,) the knots `left` (F,); knots have times, clips and rows of the input (G,)."""
        first, last = clip_bounds(clips)
        near = np.clip(left[:, None] + np.arange(-1, 3), first[left, None], last[left, None])
        weights = hermite_weights(times[near], times[left] + after)
        return cls(np.asarray(rows)[near], weights, clips[left].astype(np.int32))

    def fill(self, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        """Vectors (G, ...) on the timeline (F, ...)."""
        out = rows[self.sources[:, 1]]
        made = np.flatnonzero(~self.captured)
        out[made] = np.einsum("fk,fk...->f...", self.weights[made], rows[self.sources[made]])
        return out

    def fill_rotations(self, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        """Unit quaternions (G, J, 4) on the timeline (F, J, 4); signs do not matter."""
        out = rows[self.sources[:, 1]]
        made = np.flatnonzero(~self.captured)
        near = rows[self.sources[made]]  # (f, 4, J, 4)
        near = np.where((near * near[:, 1:2]).sum(axis=-1, keepdims=True) < 0, -near, near)
        out[made] = normalize_quaternions(np.einsum("fk,fkja->fja", self.weights[made], near))
        return out


def hermite_weights(times: F64, at: F64) -> F64:
    """Weights (F, 4) of values at `times` (F, 4), rising, for the instant `at` (F,) between the inner two.

    Cubic Hermite interpolation whose slopes are those of the parabola through three neighbouring values
    (Bessel's method; de Boor, "A Practical Guide to Splines", ch. IV). Where an outer time is not apart from
    its neighbour there is none, and the slope is that of the chord.
    """
    before, length, after = np.diff(times, axis=1).T
    length = np.where(length > 0, length, 1.0)
    s = (at - times[:, 1]) / length
    first, second = s * (1 - s) ** 2 * length, s * s * (s - 1) * length  # of the slopes
    weights = np.zeros(times.shape)
    weights[:, 1], weights[:, 2] = (1 + 2 * s) * (1 - s) ** 2, s * s * (3 - 2 * s)
    for slope, beyond, outer, inner in ((first, before, 0, 1), (second, after, 3, 2)):
        there = beyond > 0
        chord = np.where(there, beyond / (beyond + length), 1.0) * slope / length
        weights[:, 1] -= chord
        weights[:, 2] += chord
        side = np.where(there, length / (beyond + length) / np.where(there, beyond, 1), 0.0) * slope
        side = side if inner == 1 else -side
        weights[:, inner] += side
        weights[:, outer] -= side
    return weights


def clip_bounds(clips: NDArray[np.integer]) -> tuple[I64, I64]:
    """First and last row (F,) of the clip of each row; rows of a clip (F,) are contiguous."""
    lengths = clip_lengths(clips)
    ends = np.cumsum(lengths)
    return np.repeat(ends - lengths, lengths), np.repeat(ends - 1, lengths)


def clip_lengths(clips: NDArray[np.integer]) -> I64:
    """Number of frames (C,) of each clip of contiguous rows (F,)."""
    starts = np.flatnonzero(np.diff(clips, prepend=clips[:1] - 1))
    return np.diff(np.append(starts, len(clips)))
