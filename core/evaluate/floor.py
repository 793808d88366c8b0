"""The error that the outer bones themselves leave on held-out frames."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..rigging.decomposition.bones import BoneSolver
from ..rigging.decomposition.motion_matrix import Alignment
from ..rigging.decomposition.sampling import stratified_subset
from ..rigging.decomposition.ssdr import FIT_POINTS
from ..rigging.rig import Rig
from .baselines.rigid import fit_bag_of_bones
from .measure import Measurement, distances
from .subject import Query, Training

F64 = NDArray[np.float64]
SWEEPS = 15


def floor(
    learned: Training, query: Query, rows: NDArray[np.intp], truth: NDArray[np.floating], diagonal: float
) -> Measurement:
    """Fit the outer bones, their weights kept, to the held-out frames (T, N, 3): no method goes below."""
    rig = learned.rig
    transforms = fitted_bones(rig, truth, fit_bag_of_bones(learned).transforms(query)[rows])
    rmse, p95 = distances(rig.rest, rig.indices, rig.weights, transforms, truth)
    return Measurement(rmse, 100 * rmse / diagonal, p95, 100 * p95 / diagonal)


def fitted_bones(rig: Rig, frames: NDArray[np.floating], start: F64) -> F64:
    """Transforms (T, B, 3, 4) of the outer bones that best follow points (T, N, 3), from a start."""
    some = stratified_subset(rig.rest, FIT_POINTS)
    alignment = Alignment.fit(rig.rest[some], frames[:, some])
    weights = np.zeros((len(some), rig.bone_count))
    for bone, weight in zip(rig.indices[some].T, rig.weights[some].T, strict=True):
        np.add.at(weights, (np.arange(len(some)), bone), weight)
    solver = BoneSolver(alignment.matrix(rig.rest[some], frames[:, some]), weights)
    bones = alignment.local(start)
    for _ in range(SWEEPS):
        bones = solver.sweep(bones)
    return np.ascontiguousarray(alignment.world(bones).transpose(1, 0, 2, 3))
