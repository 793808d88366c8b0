"""Smooth skinning decomposition with rigid bones: a capture as few bones and sparse convex weights.

Le & Deng, "Smooth Skinning Decomposition with Rigid Bones", ACM TOG 31(6), 2012: weights and bones are solved in
turn, each exactly, so the error never rises.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import CaptureError
from ..progress import Progress, no_progress
from .bones import BoneSolver
from .clustering import cluster, rest_floor
from .kabsch import F64
from .motion_matrix import Alignment, MotionMatrix
from .sampling import stratified_subset
from .weights import WeightSolver

I32 = NDArray[np.int32]
FIT_POINTS = 4000
ROUNDS = 20
CHUNK_BYTES = 1 << 28


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
    progress : called with the stages "Motion clusters" and "SSDR"

    Returns
    -------
    SkinningDecomposition, in the order of the points; the same for the same input.

    Raises
    ------
    CaptureError
        where there is no point, no frame, or a coordinate is not finite.
    """
    _check(rest, frames, max_bones, max_influences)
    alignment = Alignment.fit(rest, frames)
    rows = stratified_subset(rest, FIT_POINTS)
    motion = alignment.matrix(rest[rows], frames[:, rows])
    start = cluster(motion, max_bones, progress)
    bones = start.bones
    if len(bones) > 1:
        bones = _alternate(motion, bones, max_influences, progress)
    transforms = np.ascontiguousarray(alignment.world(bones).transpose(1, 0, 2, 3))
    indices, weights = fit_weights(rest, frames, transforms, max_influences)
    rmse = replay_rmse(rest, frames, indices, weights, transforms)
    progress("SSDR", 1.0)
    return SkinningDecomposition(indices, weights, transforms, rmse, _notes(motion, frames, len(bones)))


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
    if bones > 1:
        return ()
    diagonal = float(np.linalg.norm(np.ptp(motion.points, axis=0)))
    still = max(float(np.abs(frame - frames[0]).max()) for frame in frames)
    if still <= 1e-6 * diagonal:
        return ("No motion: all frames are alike, 1 bone holds everything.",)
    return ("The motion is rigid, 1 bone found.",)


def _alternate(motion: MotionMatrix, bones: F64, influences: int, progress: Progress) -> F64:
    """Return bones (B, 4, 3F) after alternating weights and bones until the error settles."""
    weights, errors = WeightSolver(bones).solve(motion, influences)
    floor = rest_floor(motion)
    last = float(errors.sum())
    for done in range(ROUNDS):
        progress("SSDR", 0.9 * done / ROUNDS)
        bones = BoneSolver(motion, weights).sweep(bones)
        weights, errors = WeightSolver(bones).solve(motion, influences, weights)
        total = float(errors.sum())
        if total < floor or total > last * (1 - 1e-3):
            break
        last = total
    return bones


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
    """
    alignment = Alignment.fit(rest, frames)
    solver = WeightSolver(alignment.local(transforms))
    indices = np.zeros((len(rest), max_influences), np.int32)
    weights = np.zeros((len(rest), max_influences))
    for rows in _chunks(len(rest), len(frames) * 3 + transforms.shape[1] * 4):
        progress("Weights", rows.start / len(rest))
        dense, _ = solver.solve(alignment.matrix(rest[rows], frames[:, rows]), max_influences)
        indices[rows], weights[rows] = sparse_weights(dense, max_influences)
    return indices, weights


def sparse_weights(dense: F64, influences: int) -> tuple[I32, F64]:
    """Return the strongest bones (N, K) int32 of weights (N, B) and their weights (N, K), which sum to one."""
    indices = np.argsort(-dense, axis=1, kind="stable")[:, :influences]
    weights = np.take_along_axis(dense, indices, 1)
    if weights.shape[1] < influences:
        pad = ((0, 0), (0, influences - weights.shape[1]))
        indices, weights = np.pad(indices, pad), np.pad(weights, pad)
    weights = weights / weights.sum(1, keepdims=True)
    return np.where(weights > 0, indices, 0).astype(np.int32), weights


def _chunks(count: int, row_floats: int) -> Iterator[slice]:
    """Yield slices of 0..count whose rows of ``row_floats`` numbers stay within the memory meant for a chunk."""
    size = max(1, CHUNK_BYTES // (8 * row_floats))
    return (slice(first, min(first + size, count)) for first in range(0, count, size))


def replay(rest: NDArray, indices: I32, weights: F64, transforms: F64) -> F64:
    """Return (F, N, 3) float64: the points (N, 3) moved by linear blend skinning.

    indices (N, K), weights (N, K), transforms (F, B, 3, 4).
    """
    out = np.empty((len(transforms), len(rest), 3))
    for f, pose in enumerate(transforms):
        out[f] = _replay_frame(rest, indices, weights, pose)
    return out


def _replay_frame(rest: NDArray, indices: I32, weights: F64, pose: F64) -> F64:
    """Return (N, 3), the points under one pose (B, 3, 4)."""
    blended = np.einsum("nk,nkx->nx", weights, pose.reshape(len(pose), 12)[indices]).reshape(-1, 3, 4)
    return np.matvec(blended[..., :3], rest) + blended[..., 3]


def replay_rmse(rest: NDArray, frames: NDArray, indices: I32, weights: F64, transforms: F64) -> float:
    """Return the root mean square distance between replay and frames (F, N, 3), over all points and frames."""
    total = 0.0
    for pose, frame in zip(transforms, frames, strict=True):
        total += float(((_replay_frame(rest, indices, weights, pose) - frame) ** 2).sum())
    return float(np.sqrt(total / (len(frames) * len(rest))))
