"""The whole measurement: split, rig, fit, answer, compare."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..capture import Capture
from ..progress import Progress, no_progress
from ..rigging.build import RigOptions
from ..rigging.rig import Rig
from .floor import floor
from .measure import Measurement, measure
from .methods import Fit
from .protocol import Split
from .subject import Training, held_out_query, training, training_rig


@dataclass(frozen=True)
class SplitReport:
    """What was found on one way of holding out frames.

    split : name; train_frames, test_frames : how many; bones, joints : of the rig; rig_seconds : to build it
    diagonal : which errors are in per cent of, see `rest_diagonal`
    floor : outer bones fitted to the held-out frames themselves: what no method goes below
    methods : name -> measurement
    notes : one sentence each
    """

    split: str
    train_frames: int
    test_frames: int
    bones: int
    joints: int
    rig_seconds: float
    diagonal: float
    floor: Measurement
    methods: dict[str, Measurement] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def evaluate(
    capture: Capture,
    splits: Sequence[Split],
    fits: dict[str, Fit],
    options: RigOptions,
    progress: Progress = no_progress,
) -> list[SplitReport]:
    """Measure methods on each way of holding out frames, one after the other.

    Parameters
    ----------
    splits : by `protocol`; fits : by `methods.method_fits`
    options : of the rigs, which are built on the training frames alone; the canonical frame counts among
        those

    Raises
    ------
    CaptureError : as `build_rig`
    MissingDependencyError : a network is asked for and torch is not there
    """
    reports = []
    for split in splits:
        progress(f"{split.name}: rig", 0.0)
        start = time.perf_counter()
        result = training_rig(capture, split, options, progress)
        seconds = time.perf_counter() - start
        reports.append(
            evaluate_split(capture, split, result.rig, fits, seconds, result.report.notes, progress)
        )
    return reports


def evaluate_split(
    capture: Capture,
    split: Split,
    rig: Rig,
    fits: dict[str, Fit],
    rig_seconds: float = 0.0,
    notes: tuple[str, ...] = (),
    progress: Progress = no_progress,
) -> SplitReport:
    """Measure methods on one split, given the rig of its training frames."""
    learned = training(capture, split, rig)
    query, rows = held_out_query(capture, split, learned, progress)
    truth = capture.positions[_held_out_frames(capture, split)]
    diagonal = rest_diagonal(capture)
    progress(f"{split.name}: floor", 0.0)
    lowest = floor(learned, query, rows, truth, diagonal)
    found, said = {}, list(notes)
    for name, fit in fits.items():
        progress(f"{split.name}: {name}", 0.0)
        found[name], note = _measured(learned, fit, (query, rows, rig.rest, truth, diagonal), progress)
        said += [f"{name}: {note}."] if note else []
    return SplitReport(
        split.name,
        rig.frame_count,
        len(split.test),
        rig.bone_count,
        rig.joint_count,
        rig_seconds,
        diagonal,
        lowest,
        found,
        tuple(said),
    )


def rest_diagonal(capture: Capture) -> float:
    """Diagonal of the box of the capture's rest pose, or else its first usable frame: one for all splits."""
    if capture.rest_diagonal is not None:
        return capture.rest_diagonal
    first = capture.positions[np.flatnonzero(capture.frame_valid)[0]]
    return float(np.linalg.norm(np.ptp(first.astype(np.float64), axis=0))) or 1.0


def _measured(learned: Training, fit: Fit, asked: tuple, progress: Progress) -> tuple[Measurement, str]:
    already = "kernel" in learned.__dict__
    start = time.perf_counter()
    fitted = fit(learned, progress)
    spent = time.perf_counter() - start
    if not already and "kernel" in learned.__dict__:  # fitted just now: counted among `earlier_seconds`
        spent = max(0.0, spent - learned.kernel[1])
    return measure(fitted, *asked, build_seconds=spent), fitted.note


def _held_out_frames(capture: Capture, split: Split) -> np.ndarray:
    """Frames of the split in the order of the query: by clip, then by time."""
    if capture.clips is None:
        return split.test
    return split.test[np.lexsort((split.test, capture.clips[split.test]))]
