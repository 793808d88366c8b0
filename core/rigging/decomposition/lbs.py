"""Linear blend skinning of points by sparse weights: the replay of a decomposition."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...progress import Progress, no_progress
from ..kabsch import F64

I32 = NDArray[np.int32]


def sparse_weights(dense: F64, influences: int) -> tuple[I32, F64]:
    """Return the strongest bones (N, K) int32 of weights (N, B) >= 0 and their weights (N, K), rows summing
    to one.

    A point without any weight follows bone 0: it must not collapse to the origin.
    """
    indices = np.argsort(-dense, axis=1, kind="stable")[:, :influences]
    weights = np.take_along_axis(dense, indices, 1)
    spare = influences - weights.shape[1]
    if spare > 0:
        indices, weights = (np.pad(a, ((0, 0), (0, spare))) for a in (indices, weights))
    total = weights.sum(1, keepdims=True)
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    indices = np.where(weights > 0, indices, 0).astype(np.int32)
    weights[total[:, 0] <= 0, 0] = 1
    return indices, weights


def replay(rest: NDArray, indices: I32, weights: F64, transforms: F64) -> F64:
    """Return (F, N, 3) float64: the points (N, 3) moved by linear blend skinning.

    indices (N, K), weights (N, K), transforms (F, B, 3, 4) from rest to each frame.
    """
    out = np.empty((len(transforms), len(rest), 3))
    for f, pose in enumerate(transforms):
        out[f] = replay_frame(rest, indices, weights, pose)
    return out


def replay_frame(rest: NDArray, indices: I32, weights: F64, pose: F64) -> F64:
    """Return (N, 3), the points under one pose (B, 3, 4)."""
    rows = pose.reshape(len(pose), 12)
    blended = sum(weights[:, k, None] * rows[indices[:, k]] for k in range(indices.shape[1]))
    blended = np.asarray(blended).reshape(-1, 3, 4)
    return np.matvec(blended[..., :3], rest) + blended[..., 3]


def replay_rmse(
    rest: NDArray,
    frames: NDArray,
    indices: I32,
    weights: F64,
    transforms: F64,
    *,
    progress: Progress = no_progress,
) -> float:
    """Return the root mean square distance of the replay from frames (F, N, 3), over points and frames."""
    total = 0.0
    for f, (pose, frame) in enumerate(zip(transforms, frames, strict=True)):
        progress("Replay", f / len(frames))
        total += float(((replay_frame(rest, indices, weights, pose) - frame) ** 2).sum())
    return float(np.sqrt(total / (len(frames) * len(rest))))
