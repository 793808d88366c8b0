"""What a method may learn from, and what it is asked.

A method is given a `Training`, made of the training frames alone, and answers a `Query`: poses of the
skeleton in whole clips, of which only the held-out frames are compared.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..capture import Capture
from ..motion.database import MotionDatabase, build_database
from ..motion.kernel import KernelModel
from ..motion.timeline import Timeline
from ..motion.values import ValueSpace
from ..progress import Progress, no_progress
from ..rigging.build import RigOptions, RigResult, build_rig
from ..rigging.rig import Rig
from .poses import captured_poses
from .protocol import Split

F32, F64, I64 = NDArray[np.float32], NDArray[np.float64], NDArray[np.intp]


@dataclass(frozen=True)
class Query:
    """Poses to answer.

    rotations : (Q, J, 4) local quaternions wxyz; root_translations : (Q, 3) metres
    clips : (Q,) motion each pose belongs to, contiguous; fps : frames a second
    """

    rotations: F64
    root_translations: F64
    clips: NDArray[np.int32]
    fps: float

    def __len__(self) -> int:
        return len(self.rotations)

    @property
    def times(self) -> F64:
        """(Q,) seconds."""
        return np.arange(len(self)) / self.fps


@dataclass(frozen=True)
class Training:
    """What there is to learn from.

    rig : built on the training frames; its `frames` are those of the whole capture
    positions : (F, N, 3) points of the training frames
    database : motion database of the rig
    database_seconds : what it took to build
    """

    rig: Rig
    positions: F32
    database: MotionDatabase
    database_seconds: float

    @cached_property
    def rows(self) -> I64:
        """Rows of the database that were captured, not interpolated into a gap."""
        return np.flatnonzero(self.database.captured)

    @cached_property
    def space(self) -> ValueSpace:
        """Where distance of residuals is point error."""
        return ValueSpace.of(self.database)

    @cached_property
    def values(self) -> F32:
        """(R, 12 B) values of the captured rows."""
        return self.space.embed(self.database.residuals[self.rows])

    @property
    def clips(self) -> NDArray[np.int32]:
        """(R,) clips of the captured rows."""
        return self.database.clips[self.rows]

    @cached_property
    def poses(self) -> Query:
        """Poses of all rows of the database."""
        base = self.database
        return Query(base.rotations.astype(np.float64), base.root_translations, base.clips, base.fps)

    @cached_property
    def kernel(self) -> tuple[KernelModel, float]:
        """The motion kernel and the seconds it took to fit."""
        from ..motion.kernel_fit import fit_kernel

        start = time.perf_counter()
        return fit_kernel(self.database), time.perf_counter() - start


def training_rig(
    capture: Capture, split: Split, options: RigOptions, progress: Progress = no_progress
) -> RigResult:
    """The rig of the training frames; no other frame is looked at."""
    return build_rig(capture.take_frames(split.train), options, progress)


def training(capture: Capture, split: Split, rig: Rig) -> Training:
    """What there is to learn from, of a rig by `training_rig`."""
    frames = split.train[rig.frames]
    clips = None if capture.clips is None else capture.clips[frames]
    placed = replace(
        rig, frames=frames.astype(np.int32), canonical_frame=int(split.train[rig.canonical_frame])
    )
    start = time.perf_counter()
    database = build_database(placed, clips, capture.up_direction)
    return Training(placed, capture.positions[frames], database, time.perf_counter() - start)


def held_out_query(
    capture: Capture, split: Split, learned: Training, progress: Progress = no_progress
) -> tuple[Query, I64]:
    """Poses of the clips that have held-out frames, and the rows (T,) of those: by clip, then by time.

    The history and, for a bake, the future of a held-out pose are part of what an animator has. Time runs
    steadily in a query: poses of frames that the capture lacks are interpolated, and a long gap splits the
    clip, so that no velocity is taken across it.
    """
    usable = np.sort(np.concatenate([split.train, split.test]))
    clips = np.zeros(capture.frame_count, np.int32) if capture.clips is None else capture.clips
    frames = usable[np.isin(clips[usable], clips[split.test])]
    frames = frames[np.lexsort((frames, clips[frames]))]
    rotations, moves = captured_poses(capture, learned.rig, frames, progress)
    timeline = Timeline.of(clips[frames], frames)
    turns, places = timeline.fill_rotations(rotations), timeline.fill(moves)
    asked = np.flatnonzero(timeline.captured)[np.isin(frames, split.test)]
    return Query(turns, places, timeline.clips, learned.rig.fps), asked
