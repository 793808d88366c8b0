"""Captured frames on a steady clock: clips in order, short gaps filled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .so3 import geodesic_step

LONGEST_GAP = 4  # missing frames in a row


@dataclass(frozen=True)
class Timeline:
    """Where each row of a clip-wise steady sequence comes from.

    left, right : (F,) rows of the input before and after, the same one where the frame is there
    share : (F,) how far from the left row to the right one, 0..1
    clips : (F,) int32 from 0, rising; captured : (F,) bool, False where a frame is filled in
    """

    left: NDArray[np.intp]
    right: NDArray[np.intp]
    share: NDArray[np.float64]
    clips: NDArray[np.int32]

    @property
    def captured(self) -> NDArray[np.bool_]:
        """(F,) True where the frame is in the input."""
        return self.left == self.right

    @classmethod
    def of(cls, clips: NDArray[np.integer], frames: NDArray[np.integer]) -> Timeline:
        """Order rows by clip and frame; clips (G,) of any numbers, frames (G,) times in frames."""
        order = np.lexsort((frames, clips))
        clips, frames = clips[order], frames[order]
        gap = np.diff(frames)
        breaks = (np.diff(clips) != 0) | (gap > LONGEST_GAP + 1) | (gap < 1)
        number = np.concatenate([[0], np.cumsum(breaks)])
        steps = np.concatenate([np.where(breaks, 1, gap), [1]])
        index = np.repeat(np.arange(len(frames)), steps)
        within = np.arange(len(index)) - np.repeat(np.cumsum(steps) - steps, steps)
        share = within / np.repeat(steps, steps)
        right = np.where(within > 0, index + 1, index)
        return cls(order[index], order[right], share, number[index].astype(np.int32))

    def fill(self, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        """Vectors (G, ...) on the timeline (F, ...), linear in the gaps."""
        share = self.share.reshape(-1, *[1] * (rows.ndim - 1))
        return rows[self.left] + share * (rows[self.right] - rows[self.left])

    def fill_rotations(self, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        """Unit quaternions (G, J, 4) on the timeline (F, J, 4), along geodesics in the gaps."""
        out = rows[self.left]
        gaps = np.flatnonzero(~self.captured)
        if len(gaps):
            out[gaps] = geodesic_step(rows[self.left[gaps]], rows[self.right[gaps]], self.share[gaps, None])
        return out


def clip_bounds(clips: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First and last row (F,) of the clip of each row; rows of a clip (F,) are contiguous."""
    starts = np.flatnonzero(np.diff(clips, prepend=clips[:1] - 1))
    ends = np.append(starts[1:], len(clips)) - 1
    lengths = ends - starts + 1
    return np.repeat(starts, lengths), np.repeat(ends, lengths)


def clip_lengths(clips: NDArray[np.integer]) -> NDArray[np.intp]:
    """Number of frames (C,) of each clip of contiguous rows (F,)."""
    starts = np.flatnonzero(np.diff(clips, prepend=clips[:1] - 1))
    return np.diff(np.append(starts, len(clips)))


def resampled(lengths: NDArray[np.integer], wanted: NDArray[np.integer]) -> Timeline:
    """Timeline that stretches clips of `lengths` (C,) frames to those `wanted` (C,), ends kept."""
    starts = np.cumsum(lengths) - lengths
    clips = np.repeat(np.arange(len(lengths)), wanted)
    within = np.arange(len(clips)) - (np.cumsum(wanted) - wanted)[clips]
    at = within * ((lengths - 1) / np.maximum(wanted - 1, 1))[clips]
    low = np.minimum(np.floor(at + 1e-9).astype(np.intp), np.maximum(lengths - 2, 0)[clips])
    share = np.maximum(at - low, 0.0)
    left = starts[clips] + low
    return Timeline(left, np.where(share > 1e-9, left + 1, left), share, clips.astype(np.int32))
