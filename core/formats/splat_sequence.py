"""A sequence of splat files, one a frame, to a Capture that reads its frames on demand."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..capture import Capture
from ..cloud import GaussianCloud
from ..errors import FormatError
from ..progress import Progress
from .cleaning import clamp_scales, fault_notes
from .clouds import read_raw, scan
from .memory import require_memory
from .ply_reader import EmptyCloudError

FrameScan = tuple[NDArray[np.float32], NDArray[np.uint8], int]


def read_splat_sequence(
    paths: tuple[Path, ...], name: str, notes: tuple[str, ...], progress: Progress
) -> Capture:
    """Read positions of all frames; drop the rows that any frame has unusable from every frame.

    Raises
    ------
    FormatError : a file is damaged, or has another number of splats than the frames before it
    """
    positions, faults, degrees = _scan_all(paths, progress)
    valid = np.array([degree is not None for degree in degrees])
    degree = min(d for d in degrees if d is not None)
    first = int(np.argmax(valid))
    keep = faults == 0
    if not keep.any():
        raise FormatError(
            paths[first], f"no splat is usable in every frame: {fault_notes(faults)[0]}".rstrip(".")
        )
    load = partial(_load_frame, paths, valid, keep, degree)
    cloud, frame_notes = _load_with_notes(paths, keep, degree, first)
    if not keep.all():
        positions = positions[:, keep]
    notes += _sequence_notes(paths, valid, degrees, keep) + frame_notes + fault_notes(faults)
    assert len(cloud) == positions.shape[1]
    return Capture(name, positions, valid, load, notes=notes)


def _scan_all(
    paths: tuple[Path, ...], progress: Progress
) -> tuple[NDArray[np.float32], NDArray[np.uint8], list[int | None]]:
    """Return positions (F, N, 3), NaN in empty frames; faults (N,) over all; degrees, None if empty."""
    positions = np.empty((0, 0, 3), np.float32)
    faults = np.empty(0, np.uint8)
    degrees: list[int | None] = []
    first_path: Path | None = None
    for frame, path in enumerate(paths):
        scanned = _scan_frame(path, frame, len(paths), progress)
        degrees.append(scanned[2] if scanned else None)
        if scanned is None:
            continue
        if first_path is None:
            first_path, faults = path, np.zeros(len(scanned[0]), np.uint8)
            require_memory(path, len(paths) * len(faults), positions.itemsize * 3, copies=1)
            positions = np.full((len(paths), len(faults), 3), np.nan, np.float32)
        elif len(scanned[0]) != len(faults):
            raise FormatError(
                path,
                f"the frame has {len(scanned[0]):,} splats where {first_path.name} has {len(faults):,}: "
                "a sequence needs the same splats in every frame",
                frame,
            )
        positions[frame] = scanned[0]
        np.maximum(faults, scanned[1], out=faults)
    progress("Reading frames", 1.0)
    if first_path is None:
        raise FormatError(paths[0].parent, f"none of its {len(paths)} frames has a usable splat")
    return positions, faults, degrees


def _scan_frame(path: Path, frame: int, frames: int, progress: Progress) -> FrameScan | None:
    """Return positions, faults and degree of a frame, None where it shows nothing."""

    def frame_progress(_stage: str, fraction: float) -> None:
        progress("Reading frames", (frame + fraction) / frames)

    frame_progress("", 0.0)
    if frames > 1 and path.is_file() and path.stat().st_size == 0:
        return None
    try:
        scanned = scan(path, frame_progress)
    except EmptyCloudError:
        if frames == 1:
            raise
        return None
    except FormatError as error:
        raise FormatError(error.path, error.problem, frame if frames > 1 else None) from error
    return None if frames > 1 and scanned[1].all() else scanned


def _load_with_notes(
    paths: tuple[Path, ...], keep: NDArray[np.bool_], degree: int, frame: int
) -> tuple[GaussianCloud, tuple[str, ...]]:
    raw = read_raw(paths[frame])
    if len(raw.faults) != len(keep):
        raise FormatError(
            paths[frame], "the file has changed since the capture was read: import it again", frame
        )
    if raw.faults[keep].any():
        raise FormatError(
            paths[frame], "the file has changed since the capture was read: import it again", frame
        )
    cloud = raw.cloud if keep.all() else raw.cloud.take(keep)
    if cloud.sh_degree > degree:
        cloud = replace(cloud, sh=np.ascontiguousarray(cloud.sh[:, : (degree + 1) ** 2]))
    cloud, notes = clamp_scales(cloud)
    return cloud, raw.notes + notes


def _load_frame(
    paths: tuple[Path, ...], valid: NDArray[np.bool_], keep: NDArray[np.bool_], degree: int, frame: int
) -> GaussianCloud:
    """Read one frame with the rows of the capture; raise FormatError for an empty frame."""
    if not valid[frame]:
        raise FormatError(paths[frame], "the frame is empty", frame)
    return _load_with_notes(paths, keep, degree, frame)[0]


def _sequence_notes(
    paths: tuple[Path, ...], valid: NDArray[np.bool_], degrees: list[int | None], keep: NDArray[np.bool_]
) -> tuple[str, ...]:
    if len(paths) == 1:
        return ()
    notes = [f"Found {len(paths)} frames of {len(keep):,} splats, from {paths[0].name} to {paths[-1].name}."]
    empty = np.flatnonzero(~valid)
    if len(empty):
        frames = ", ".join(str(frame) for frame in empty[:10]) + (", ..." if len(empty) > 10 else "")
        notes.append(
            f"{len(empty)} of the frames are empty ({frames}, from 0): they show nothing, fits skip them."
        )
    known = {degree for degree in degrees if degree is not None}
    if len(known) > 1:
        notes.append(f"Frames differ in the degree of their harmonics; degree {min(known)} was read of all.")
    return tuple(notes)
