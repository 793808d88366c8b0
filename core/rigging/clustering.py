"""Motion clustering: points that move rigidly together.

Clusters are added where they lower the error most and refined by expectation-maximisation (appendix A of
GaussiAnimate; Le & Deng 2012, section 4.3, cluster by splitting likewise). A new cluster's motion is chosen among
rigid fits to small neighbourhoods all over the object, so that one look at all of them finds the best split anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..progress import Progress, no_progress
from .kabsch import F64
from .motion_matrix import Alignment, MotionMatrix, rigid_bone
from .sampling import farthest_points

MIN_POINTS = 4  # fewer do not fix a rigid motion reliably
NEIGHBOURS = 12
CANDIDATES = 200
EM_ROUNDS = 10
REST_ERROR = 1e-6  # root mean square error, relative to the box diagonal, that counts as none


@dataclass(frozen=True)
class MotionClusters:
    """Rigid clusters of points.

    labels : (N,) int, cluster of each point
    bones : (B, 4, 3F) float64, motion of each cluster (see :class:`MotionMatrix`)
    history : squared error over all points and frames after each accepted step, strictly decreasing
    """

    labels: NDArray[np.intp]
    bones: F64
    history: tuple[float, ...]


def cluster_motion(rest: NDArray, frames: NDArray, max_clusters: int = 50) -> tuple[NDArray[np.intp], F64]:
    """Cluster points by their motion.

    Parameters
    ----------
    rest : (N, 3) points at rest
    frames : (F, N, 3) the same points in every frame
    max_clusters : most clusters wanted; fewer are returned where more do not lower the error

    Returns
    -------
    labels (N,) int and transforms (B, F, 3, 4) float64, rest -> frame.
    """
    alignment = Alignment.fit(rest, frames)
    clusters = cluster(alignment.matrix(rest, frames), max_clusters)
    return clusters.labels, alignment.world(clusters.bones)


def candidate_motions(motion: MotionMatrix, count: int = CANDIDATES, neighbours: int = NEIGHBOURS) -> F64:
    """Return (D, 4, 3F) rigid motions of small neighbourhoods, evenly spread over the points."""
    from scipy.spatial import cKDTree

    seeds = farthest_points(motion.points, count)
    near = cKDTree(motion.points).query(motion.points[seeds], min(neighbours, len(motion)))[1]
    return np.stack([_local_motion(motion.take(np.atleast_1d(rows))) for rows in near])


def _local_motion(patch: MotionMatrix) -> F64:
    """Fit (4, 3F) to the patch, then again to the two thirds it fits best: a patch may reach over to another part."""
    bone = fit_points(patch)
    keep = max(MIN_POINTS, 2 * len(patch) // 3)
    return fit_points(patch.take(patch.single_errors(bone[None])[:, 0].argsort(kind="stable")[:keep]))


def fit_points(patch: MotionMatrix) -> F64:
    """Return the rigid bone (4, 3F) of all points."""
    points = patch.homogeneous
    return rigid_bone(points.T @ patch.displacements, points.T @ points)


def cluster(
    motion: MotionMatrix, max_clusters: int, progress: Progress = no_progress, stop_relative: float = 1e-4
) -> MotionClusters:
    """Cluster the points of a motion matrix.

    A cluster is added as long as that lowers the error by more than ``stop_relative`` of it.
    """
    floor = rest_floor(motion)
    errors = motion.energy[:, None]  # one cluster: the motion of the whole is the alignment's
    bones = np.zeros((1, 4, motion.displacements.shape[1]))
    history = [float(errors.sum())]
    if max_clusters > 1 and history[0] > floor and len(motion) >= 2 * MIN_POINTS:
        candidates = candidate_motions(motion)
        options = motion.single_errors(candidates)
        while len(bones) < max_clusters and history[-1] > floor:
            progress("Motion clusters", len(bones) / max_clusters)
            step = max(1, len(bones) // 4)
            chosen = _best_additions(options, errors.min(1), min(step, max_clusters - len(bones)))
            grown = np.concatenate([bones, candidates[chosen]])
            grown, grown_errors = _expectation_maximisation(motion, grown)
            total = float(grown_errors.min(1).sum())
            if not total < history[-1] * (1 - stop_relative):
                break
            if len(grown) <= len(bones):
                bones, errors = grown, grown_errors
                history.append(total)
                break
            bones, errors = grown, grown_errors
            history.append(total)
    progress("Motion clusters", 1.0)
    return MotionClusters(errors.argmin(1), bones, tuple(history))


def rest_floor(motion: MotionMatrix) -> float:
    """Return the squared error, over all points and frames, that counts as none."""
    diagonal = float(np.linalg.norm(np.ptp(motion.points, axis=0)))
    return len(motion) * motion.frame_count * (REST_ERROR * diagonal) ** 2


def _best_additions(options: F64, current: F64, count: int) -> list[int]:
    """Return columns of options (N, D) that together lower the errors (N,) most, picked greedily."""
    chosen: list[int] = []
    for _ in range(count):
        column = int(np.minimum(options, current[:, None]).sum(0).argmin())
        current = np.minimum(current, options[:, column])
        chosen.append(column)
    return chosen


def _expectation_maximisation(motion: MotionMatrix, bones: F64) -> tuple[F64, F64]:
    """Refine bones (B, 4, 3F) and return them with the errors (N, B); clusters without points are dropped."""
    errors = motion.single_errors(bones)
    for _ in range(EM_ROUNDS):
        before = errors.min(1).sum()
        labels = errors.argmin(1)
        counts = np.bincount(labels, minlength=len(bones))
        if (counts < MIN_POINTS).any():  # drop one at a time: its points may save another
            keep = np.arange(len(bones)) != counts.argmin()
            bones, errors = bones[keep], errors[:, keep]
            continue
        bones = np.stack([fit_points(motion.take(labels == b)) for b in range(len(bones))])
        errors = motion.single_errors(bones)
        if errors.min(1).sum() > before * (1 - 1e-3):
            break
    return bones, errors
