"""Linear pose blendshapes: residuals as a ridge regression on the pose."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...motion.database import Residuals
from ..fitted import Fitted, residual_method
from ..subject import Query, Training
from .features import PoseFeatures

F64 = NDArray[np.float64]
PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)
GROUPS = 5


def fit_ridge(learned: Training) -> Fitted:
    """Fit values linearly to pose features; the penalty that predicts left-out training clips best."""
    features = PoseFeatures.of(learned)
    seen = features(learned.poses)[learned.rows].astype(np.float64)
    values = learned.values.astype(np.float64)
    mean = values.mean(axis=0)
    matrix = _ridge(seen, values - mean, best_penalty(seen, values - mean, validation_groups(learned.clips)))

    def answer(query: Query) -> Residuals:
        return learned.space.project(features(query) @ matrix + mean)

    return residual_method(learned, answer, (matrix.nbytes + mean.nbytes) // 2)


def best_penalty(seen: F64, values: F64, groups: NDArray[np.integer]) -> float:
    """The penalty of `PENALTIES` with the least squared error on groups (F,) left out in turn."""
    errors = np.zeros(len(PENALTIES))
    for group in np.unique(groups):
        out = groups == group
        x, y = seen[~out], values[~out]
        eigenvalues, axes = np.linalg.eigh(x.T @ x)
        moments, tested = axes.T @ (x.T @ y), seen[out] @ axes
        for place, penalty in enumerate(PENALTIES):
            apart = tested @ (moments / (np.maximum(eigenvalues, 0) + penalty)[:, None]) - values[out]
            errors[place] += float((apart**2).sum())
    return PENALTIES[int(errors.argmin())]


def validation_groups(clips: NDArray[np.integer], count: int = GROUPS) -> NDArray[np.intp]:
    """Group (F,) of each frame: clips dealt out at random, or stretches of too few clips."""
    numbers = np.unique(clips, return_inverse=True)[1]
    clip_count = int(numbers.max()) + 1
    if clip_count < count:
        return np.arange(len(clips)) * count // len(clips)
    return np.random.default_rng(0).permutation(clip_count)[numbers] % count


def _ridge(seen: F64, values: F64, penalty: float) -> F64:
    return np.linalg.solve(seen.T @ seen + penalty * np.eye(seen.shape[1]), seen.T @ values)
