"""One entry to all ways of answering new poses with bone motion."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..progress import Progress, no_progress
from .database import MotionDatabase, Residuals, bone_transforms, full_body, repaired_rotations
from .kernel import KernelModel
from .match import MatchOptions, match_motion

Mode = Literal["auto", "match", "kernel", "full"]


def predict(
    database: MotionDatabase,
    rotations: NDArray[np.floating],
    root_translations: NDArray[np.floating],
    mode: Mode = "auto",
    model: KernelModel | None = None,
    *,
    fps: float | None = None,
    clips: NDArray[np.integer] | None = None,
    options: MatchOptions | None = None,
    progress: Progress = no_progress,
) -> NDArray[np.float64]:
    """Transforms of the outer bones for new poses of the joints.

    Parameters
    ----------
    rotations : (Q, J, 4) local quaternions wxyz; one that is not finite takes the frame before it
    root_translations : (Q, 3) displacement of the root from rest, metres; likewise
    mode : "match": nearest captured patches, part by part; "full": those of the whole body; "kernel": the
        learned blend of all captured frames; "auto": the kernel, drawn to the match where the capture is near
    model : of the database, for "auto" and "kernel"; None: it is fitted (for "auto" only where there are
        clips enough)
    fps : frames a second of the poses; None: those of the database
    clips : (Q,) motion each pose belongs to, contiguous; None: one motion

    Returns
    -------
    (Q, B, 3, 4) float64, rest -> posed

    Raises
    ------
    CaptureError : an option is out of range
    RigError : the model belongs to another rig
    Cancelled : by `progress`
    """
    turns, places = repaired_rotations(rotations), _held(root_translations)
    residuals = _residuals(database, turns, places, mode, model, fps, clips, options, progress)
    return bone_transforms(database, residuals, turns, places)


def _residuals(
    database: MotionDatabase,
    turns: NDArray[np.float64],
    places: NDArray[np.float64],
    mode: Mode,
    model: KernelModel | None,
    fps: float | None,
    clips: NDArray[np.integer] | None,
    options: MatchOptions | None,
    progress: Progress,
) -> Residuals:
    if not len(turns):
        return Residuals.rigid(0, database.bone_count)
    if mode in ("match", "full"):
        keys = full_body(database) if mode == "full" else database
        return match_motion(keys, turns, clips, fps, options, progress=progress)
    if mode == "kernel":
        from .kernel_fit import fit_kernel

        model = model or fit_kernel(database, progress=progress)
        return model.predict(turns, places, fps or database.fps, clips)
    if mode == "auto":
        from .auto import AutoPredictor

        predictor = AutoPredictor.of(database, model, progress)
        return predictor.predict(turns, places, fps, clips, options, progress)
    raise ValueError(f"no mode of prediction named {mode!r}")


def _held(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Vectors (Q, 3); one that is not finite takes that of the frame before it (the first: zero)."""
    out = np.asarray(vectors, np.float64)
    usable = np.isfinite(out).all(axis=-1)
    if usable.all():
        return out
    row = np.maximum.accumulate(np.where(usable, np.arange(len(out)), -1))
    return np.where((row < 0)[:, None], 0.0, out[np.maximum(row, 0)])
