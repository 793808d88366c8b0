"""Several captures of one asset as one: the same points, frame after frame, in common axes and rate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .capture import Capture
from .cloud import GaussianCloud
from .deform.transforms import transform_cloud
from .errors import CaptureError
from .given_skeleton import GivenSkeleton

# Up axis of a source -> matrix that turns it to +Z (a quarter turn about X).
UPRIGHT = {
    "z": np.eye(4),
    "y": np.array([[1, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1.0]]),
    "-y": np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1.0]]),
}
RATE = 1e-3  # relative difference of frame rates that is none
REST = 1e-3  # difference of a skeleton's rest joints, of its size, that is none


def join_captures(first: Capture, second: Capture) -> Capture:
    """Return a capture of the frames of the first, then those of the second.

    The second is turned where it has another axis up, and resampled where it has another frame rate. What
    the captures do not say of these is taken to be the same. Their clips stay apart.

    Raises
    ------
    CaptureError : they do not have as many points
    """
    if first.point_count != second.point_count:
        raise CaptureError(
            f"{second.name} has {second.point_count:,} points and {first.name} {first.point_count:,}; only "
            "captures of the same points in the same order go together."
        )
    notes = list(second.notes)
    if first.up and second.up and first.up != second.up:
        second = moved_capture(second, np.linalg.inv(UPRIGHT[first.up]) @ UPRIGHT[second.up])
        notes.append(f"{second.name} was turned from {second.up} up to {first.up} up.")
    if first.fps and second.fps and abs(second.fps / first.fps - 1) > RATE:
        notes.append(f"{second.name} was resampled from {second.fps:g} to {first.fps:g} frames a second.")
        second = resampled_capture(second, first.fps)
    clips, names = _clips(first, second)
    return replace(
        first,
        positions=np.concatenate([first.positions, second.positions]),
        frame_valid=np.concatenate([first.frame_valid, second.frame_valid]),
        load_cloud=_clouds(first, second),
        fps=first.fps or second.fps,
        up=first.up or second.up,
        notes=(*first.notes, *(note for note in notes if note not in first.notes)),
        clips=clips,
        clip_names=names,
        skeleton=_skeletons(first.skeleton, second.skeleton),
    )


def moved_capture(capture: Capture, matrix: NDArray[np.floating]) -> Capture:
    """Return a capture with all its points, splats and joints moved by a similarity (4, 4)."""
    move = np.asarray(matrix, np.float64)
    turn, shift = move[:3, :3].astype(np.float32), move[:3, 3].astype(np.float32)
    positions = np.empty_like(capture.positions)
    for frame, points in enumerate(capture.positions):
        positions[frame] = points @ turn.T + shift
    load = capture.load_cloud
    return replace(
        capture,
        positions=positions,
        load_cloud=None if load is None else lambda frame: transform_cloud(load(frame), move),
        skeleton=None if capture.skeleton is None else capture.skeleton.moved(move),
    )


def resampled_capture(capture: Capture, fps: float) -> Capture:
    """Return a capture at another frame rate: points and joints between frames, looks of the nearest one.

    Each clip starts with its own first frame.
    """
    assert capture.fps
    at, clip_rows = [], []
    clips = np.zeros(capture.frame_count, np.int32) if capture.clips is None else capture.clips
    for rows in np.split(np.arange(len(clips)), np.flatnonzero(np.diff(clips)) + 1):
        count = int(np.floor((len(rows) - 1) * fps / capture.fps + 1e-6)) + 1
        at.append(rows[0] + np.minimum(np.arange(count) * capture.fps / fps, len(rows) - 1))
        clip_rows.append(np.full(count, clips[rows[0]], np.int32))
    times = np.concatenate(at)
    times = np.where(np.abs(times - np.round(times)) < 1e-4, np.round(times), times)
    before = np.floor(times).astype(np.intp)
    after, part = np.ceil(times).astype(np.intp), times - before
    nearest = np.round(times).astype(np.intp)
    positions = np.empty((len(times), *capture.positions.shape[1:]), np.float32)
    for frame, share in enumerate(part):
        a, b = capture.positions[before[frame]], capture.positions[after[frame]]
        positions[frame] = a if share == 0 else (1 - share) * a + share * b
    valid = capture.frame_valid[before] & capture.frame_valid[after]
    skeleton = capture.skeleton
    if skeleton is not None:
        share = part[:, None, None, None]
        mats = (1 - share) * skeleton.joint_mats[before] + share * skeleton.joint_mats[after]
        skeleton = replace(skeleton, joint_mats=mats)
    load = capture.load_cloud
    return replace(
        capture,
        positions=positions,
        frame_valid=valid,
        load_cloud=None if load is None else _Between(capture, nearest, positions),
        fps=fps,
        clips=None if capture.clips is None else np.concatenate(clip_rows),
        skeleton=skeleton,
    )


@dataclass(frozen=True)
class _Between:
    """Splats of a resampled capture."""

    capture: Capture
    nearest: NDArray[np.intp]
    positions: NDArray[np.float32]

    def __call__(self, frame: int) -> GaussianCloud:
        assert self.capture.load_cloud is not None
        cloud = self.capture.load_cloud(int(self.nearest[frame]))
        return replace(cloud, positions=self.positions[frame])


@dataclass(frozen=True)
class _Joined:
    """Splats of two captures."""

    first: Capture
    second: Capture

    def __call__(self, frame: int) -> GaussianCloud:
        capture, local = self.first, frame
        if frame >= self.first.frame_count:
            capture, local = self.second, frame - self.first.frame_count
        assert capture.load_cloud is not None
        return capture.load_cloud(local)


def _clouds(first: Capture, second: Capture) -> _Joined | None:
    return None if first.load_cloud is None or second.load_cloud is None else _Joined(first, second)


def _clips(first: Capture, second: Capture) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Clip of each frame, counted on, and names for all of them where there are any."""
    numbers, names = [], []
    for capture in (first, second):
        own = np.zeros(capture.frame_count, np.int32) if capture.clips is None else capture.clips
        kept, number = np.unique(own, return_inverse=True)
        numbers.append(number + len(names))
        for clip in kept.tolist():
            known = 0 <= clip < len(capture.clip_names)
            names.append(capture.clip_names[clip] if known else capture.name)
    return np.concatenate(numbers).astype(np.int32), tuple(names)


def _skeletons(first: GivenSkeleton | None, second: GivenSkeleton | None) -> GivenSkeleton | None:
    """The first skeleton in all frames; None where the second lacks one of its joints or rests elsewhere."""
    if first is None or second is None or not set(first.names) <= set(second.names):
        return None
    chosen = [second.names.index(name) for name in first.names]
    size = float(np.linalg.norm(np.ptp(first.rest, axis=0))) or 1.0
    if np.abs(second.rest[chosen] - first.rest).max() > REST * size:
        return None
    return replace(first, joint_mats=np.concatenate([first.joint_mats, second.joint_mats[:, chosen]]))
