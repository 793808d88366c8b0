"""Error of a method on held-out frames, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ..rigging.decomposition.lbs import replay_frame
from .fitted import Fitted
from .subject import Query

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Measurement:
    """Error over all points and held-out frames, in units of the capture and in per cent of a diagonal.

    rmse, p95 : root mean square and 95th percentile of the distance of points
    ms_per_frame : of answering a pose with bone transforms; skinning comes on top, alike for all
    build_seconds : to learn from the training frames, once the rig is there
    memory_mb : what was learned, MB (2^20 bytes)
    """

    rmse: float
    rmse_percent_diagonal: float
    p95: float
    p95_percent_diagonal: float
    ms_per_frame: float = 0.0
    build_seconds: float = 0.0
    memory_mb: float = 0.0

    @staticmethod
    def mean(several: Sequence[Measurement]) -> Measurement:
        """The mean of each figure over folds."""
        return Measurement(
            *(float(np.mean([getattr(one, f.name) for one in several])) for f in fields(Measurement))
        )


def measure(
    fitted: Fitted,
    query: Query,
    rows: NDArray[np.intp],
    rest: NDArray[np.floating],
    truth: NDArray[np.floating],
    diagonal: float,
    build_seconds: float,
) -> Measurement:
    """Compare a method's answers in some rows (T,) of a query with points (T, N, 3)."""
    start = time.perf_counter()
    transforms = fitted.transforms(query)
    spent = time.perf_counter() - start
    rmse, p95 = distances(rest, fitted.indices, fitted.weights, transforms[rows], truth)
    percent = 100 / diagonal
    return Measurement(
        rmse,
        rmse * percent,
        p95,
        p95 * percent,
        1000 * spent / len(query),
        build_seconds + fitted.earlier_seconds,
        fitted.nbytes / 2**20,
    )


def distances(
    rest: NDArray[np.floating],
    indices: NDArray[np.int32],
    weights: NDArray[np.floating],
    transforms: F64,
    truth: NDArray[np.floating],
) -> tuple[float, float]:
    """Root mean square and 95th percentile of the distances of skinned points from (T, N, 3)."""
    points, shares = rest.astype(np.float64), weights.astype(np.float64)
    apart = np.empty(truth.shape[:2], np.float32)
    total = 0.0
    for frame, pose in enumerate(transforms):
        squared = ((replay_frame(points, indices, shares, pose) - truth[frame]) ** 2).sum(axis=-1)
        total += float(squared.sum())
        apart[frame] = np.sqrt(squared)
    return float(np.sqrt(total / apart.size)), float(np.percentile(apart, 95))
