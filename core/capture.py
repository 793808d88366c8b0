"""A 4D capture: points followed through time, and how each frame looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from .cloud import GaussianCloud
from .given_skeleton import GivenSkeleton

_UP = {"y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0), "-y": (0.0, -1.0, 0.0)}


@dataclass(frozen=True)
class Capture:
    """F frames of N points in one correspondence: row i is the same material point in every frame.

    name : what the user calls it (file stem)
    positions : (F, N, 3) float32, metres, in the file's own axes; NaN throughout an invalid frame
    frame_valid : (F,) bool; False where a frame is empty or missing: shown as nothing, skipped by fits
    load_cloud : frame index -> GaussianCloud with the same N rows; None for a bare trajectory or mesh
    faces : (M, 3) int32 triangles of a mesh capture, else None
    colors : (N, 3) float32 display (sRGB) colours 0..1 of a mesh capture, else None
    fps : frames a second, None where the source does not say
    up : axis of the source that points up: "y", "z", "-y" or None where unknown
    notes : one sentence each on what was cleaned, skipped or assumed, for the user's report
    clips : (F,) int32, the motion a frame belongs to; frames that follow each other in one clip follow each
        other in time. None: all frames are one motion
    clip_names : name of clip i, as far as the source gives them
    skeleton : joints the source knows, None where it has none
    rest_diagonal : diagonal of the box of the rest pose the source names, metres, which need not be a frame
        of the capture; None where it names none
    """

    name: str
    positions: NDArray[np.float32]
    frame_valid: NDArray[np.bool_]
    load_cloud: Callable[[int], GaussianCloud] | None = None
    faces: NDArray[np.int32] | None = None
    colors: NDArray[np.float32] | None = None
    fps: float | None = None
    up: str | None = None
    notes: tuple[str, ...] = field(default=())
    clips: NDArray[np.int32] | None = None
    clip_names: tuple[str, ...] = ()
    skeleton: GivenSkeleton | None = None
    rest_diagonal: float | None = None

    @property
    def frame_count(self) -> int:
        """Number of frames F, invalid ones included."""
        return len(self.positions)

    @property
    def point_count(self) -> int:
        """Number of points N."""
        return self.positions.shape[1]

    @property
    def up_direction(self) -> NDArray[np.float64] | None:
        """Unit vector (3,) that points up in the capture's axes, None where unknown."""
        return None if self.up is None else np.array(_UP[self.up])

    def take_frames(self, frames: NDArray[np.integer]) -> Capture:
        """Return the capture of some of its frames (indices (F',)), in the order given."""
        chosen = np.arange(self.frame_count)[frames]
        load = self.load_cloud
        return replace(
            self,
            positions=self.positions[chosen],
            frame_valid=self.frame_valid[chosen],
            load_cloud=None if load is None else lambda frame: load(int(chosen[frame])),
            clips=None if self.clips is None else self.clips[chosen],
            skeleton=None if self.skeleton is None else self.skeleton.take_frames(chosen),
        )
