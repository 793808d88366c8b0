"""Smooth skinning decomposition with rigid bones: a capture as few bones and sparse convex weights.

Le & Deng, "Smooth Skinning Decomposition with Rigid Bones", ACM TOG 31(6), 2012. Bones start as motion
clusters, weights and bones are solved in turn, and bones are exchanged where that lowers the error. Large
captures are fitted on an even subset of their points; then every point gets its own weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import CaptureError
from ...progress import Progress, no_progress
from ..kabsch import F64
from .lbs import I32, replay, replay_rmse, sparse_weights
from .motion_matrix import Alignment, MotionMatrix
from .sampling import stratified_subset
from .search import find_bones
from .weights import FINAL_CANDIDATES, WeightSolver

__all__ = ["SkinningDecomposition", "decompose", "fit_weights", "replay", "replay_rmse"]

FIT_POINTS = 8000
CHUNK_BYTES = 1 << 25
STILL = 1e-6  # of the box diagonal: frames that differ by less are alike


@dataclass(frozen=True)
class SkinningDecomposition:
    """What a capture decomposes into: linear blend skinning by rigid bones.

    indices : (N, K) int32, bones that move a point, strongest first; unused slots 0
    weights : (N, K) float64, >= 0, rows sum to 1; unused slots 0
    transforms : (F, B, 3, 4) float64, ``[R | t]`` from rest to each frame
    rmse : root mean square distance of the replay over all points and frames, in units of the input
    notes : one sentence each on what the user should know
    """

    indices: I32
    weights: F64
    transforms: F64
    rmse: float
    notes: tuple[str, ...] = ()


def decompose(
    rest: NDArray,
    frames: NDArray,
    max_bones: int = 50,
    max_influences: int = 4,
    *,
    progress: Progress = no_progress,
) -> SkinningDecomposition:
    """Decompose tracked points into rigid bones and sparse convex weights.

    Parameters
    ----------
    rest : (N, 3) float, points at rest
    frames : (F, N, 3) float, the same points in every frame; no NaN
    max_bones : most bones wanted; fewer are returned where more do not lower the error
    max_influences : most bones that move one point, 1..4
    progress : called with the stages "Motion clusters", "SSDR" and "Weights"

    Returns
    -------
    SkinningDecomposition, in the order of the points; the same for the same input.

    Raises
    ------
    CaptureError
        where there is no point, no frame, or a coordinate is not finite.
    """
    _check(rest, frames, max_bones, max_influences)
    progress("Motion clusters", 0.0)
    rows = stratified_subset(rest, FIT_POINTS)
    alignment = Alignment.fit(rest[rows], frames[:, rows])
    motion = alignment.matrix(rest[rows], frames[:, rows])
    progress("Motion clusters", 0.0)
    bones = find_bones(motion, max_bones, max_influences, progress)
    transforms = np.ascontiguousarray(alignment.world(bones).transpose(1, 0, 2, 3))
    indices, weights = fit_weights(rest, frames, transforms, max_influences, progress=progress)
    used, indices = _compact(indices, weights)
    transforms = transforms[:, used]
    rmse = replay_rmse(rest, frames, indices, weights, transforms, progress=progress)
    return SkinningDecomposition(indices, weights, transforms, rmse, _notes(motion, frames, len(used)))


def fit_weights(
    rest: NDArray,
    frames: NDArray,
    transforms: F64,
    max_influences: int = 4,
    *,
    progress: Progress = no_progress,
) -> tuple[I32, F64]:
    """Return indices (N, K) int32 and weights (N, K) float64 of every point, given the bones.

    Parameters
    ----------
    rest, frames : (N, 3) and (F, N, 3)
    transforms : (F, B, 3, 4) float64, rest -> frame
    max_influences : K, 1..4
    progress : called with the stage "Weights"
    """
    few = stratified_subset(rest, FIT_POINTS)
    alignment = Alignment.fit(rest[few], frames[:, few])
    solver = WeightSolver(alignment.local(transforms))
    indices = np.zeros((len(rest), max_influences), np.int32)
    weights = np.zeros((len(rest), max_influences))
    step = max(1, CHUNK_BYTES // (8 * (3 * len(frames) + 4 * transforms.shape[1])))
    for first in range(0, len(rest), step):
        rows = slice(first, first + step)
        done = first / len(rest)
        motion = alignment.matrix(rest[rows], frames[:, rows])
        dense, _ = solver.solve(
            motion,
            max_influences,
            candidates=FINAL_CANDIDATES,
            tick=lambda done=done: progress("Weights", done),
        )
        indices[rows], weights[rows] = sparse_weights(dense, max_influences)
    return indices, weights


def _compact(indices: I32, weights: F64) -> tuple[I32, I32]:
    """Return the bones that move any point, and the indices (N, K) counted among them."""
    used = np.unique(indices[weights > 0])
    place = np.zeros(int(used[-1]) + 1, np.int32)
    place[used] = np.arange(len(used))
    return used, np.where(weights > 0, place[np.minimum(indices, used[-1])], 0).astype(np.int32)


def _check(rest: NDArray, frames: NDArray, max_bones: int, max_influences: int) -> None:
    if frames.ndim != 3 or frames.shape[1:] != rest.shape or rest.shape[-1] != 3:
        raise ValueError(f"rest {rest.shape} and frames {frames.shape} must be (N, 3) and (F, N, 3)")
    if max_bones < 1 or not 1 <= max_influences <= 4:
        raise ValueError("at least 1 bone and 1 to 4 influences are needed")
    if len(rest) == 0 or len(frames) == 0:
        raise CaptureError("The capture has no points or no usable frames, so there is no motion to rig.")
    if not np.isfinite(rest).all() or not all(np.isfinite(frame).all() for frame in frames):
        raise CaptureError(
            "The capture has coordinates that are not finite; drop those points or frames first."
        )


def _notes(motion: MotionMatrix, frames: NDArray, bones: int) -> tuple[str, ...]:
    """Say why there is but one bone."""
    if bones > 1:
        return ()
    if max(float(np.abs(frame - frames[0]).max()) for frame in frames) <= STILL * motion.diagonal:
        return ("No motion: all frames are alike, 1 bone holds everything.",)
    if motion.nearly_rigid:
        return ("The motion is rigid, 1 bone found.",)
    return (f"{len(motion)} points that move apart are too few for more than 1 bone.",)
