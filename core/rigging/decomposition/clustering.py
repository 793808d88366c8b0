"""Motion clustering: points that move rigidly together.

Clusters are added where they lower the error most and refined by expectation-maximisation, as by Le & Deng
(2012, section 4.3), who split clusters. A new cluster's motion is chosen here among rigid fits to small
neighbourhoods all over the object, so that one look at all of them finds the best split anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...progress import Progress, no_progress
from ..kabsch import F64
from .motion_matrix import Alignment, MotionMatrix, rigid_bone
from .sampling import farthest_points

MIN_POINTS = 4  # fewer do not fix a rigid motion reliably
NEIGHBOURS = 12
CANDIDATES = 200
EM_ROUNDS = 4


@dataclass(frozen=True)
class MotionClusters:
    """Rigid clusters of points.

    labels : (N,) int, cluster of each point
    bones : (B, 4, 3F) float64, motion of each cluster (see :class:`MotionMatrix`)
    candidates : (D, 4, 3F) float64, the local motions that clusters were chosen from
    history : squared error over all points and frames after each accepted step, strictly decreasing
    """

    labels: NDArray[np.intp]
    bones: F64
    candidates: F64
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
    """Return (D, 4, 3F) rigid motions of small neighbourhoods, evenly spread over the points.

    Each is fitted to a point and its neighbours, then again to the two thirds of them that it fits best: a
    neighbourhood may reach over to another part.
    """
    near = _neighbourhoods(motion, count, neighbours)
    bones = _fit_patches(motion, near)
    misses = motion.homogeneous[near] @ bones - motion.displacements[near]
    order = np.vecdot(misses, misses).argsort(1, kind="stable")[:, : max(MIN_POINTS, 2 * near.shape[1] // 3)]
    return _fit_patches(motion, np.take_along_axis(near, order, 1))


def _neighbourhoods(motion: MotionMatrix, count: int, neighbours: int) -> NDArray[np.intp]:
    """Return rows (D, K) of points with their nearest neighbours, evenly spread."""
    from scipy.spatial import KDTree

    neighbours = min(neighbours, len(motion))
    seeds = farthest_points(motion.points, max(1, min(count, len(motion) // MIN_POINTS)))
    near = KDTree(motion.points).query(motion.points[seeds], neighbours)[1]
    return np.reshape(near, (len(seeds), neighbours))


def moves_as_one(motion: MotionMatrix) -> bool:
    """Whether the motion of the whole explains everything but rounding.

    Rounded coordinates stray little, and each point for itself: a rigid motion of a neighbourhood explains no
    more of that than its degrees of freedom, a sixth, whereas of a true motion it explains most.
    """
    if motion.energy.sum() <= motion.floor:
        return True
    if not motion.nearly_rigid:
        return False
    near = _neighbourhoods(motion, CANDIDATES, NEIGHBOURS)
    misses = motion.homogeneous[near] @ _fit_patches(motion, near) - motion.displacements[near]
    return bool(np.vecdot(misses, misses).sum() > 0.5 * motion.energy[near].sum())


def _fit_patches(motion: MotionMatrix, rows: NDArray[np.intp]) -> F64:
    """Return the rigid bones (D, 4, 3F) of patches of points (D, K)."""
    points = motion.homogeneous[rows]
    across = np.swapaxes(points, 1, 2)
    return rigid_bone(across @ motion.displacements[rows], across @ points)


def _fit_clusters(motion: MotionMatrix, labels: NDArray[np.intp], count: int) -> F64:
    """Return the rigid bones (B, 4, 3F) of clusters, each of at least one point."""
    moments = np.empty((count, 4, motion.displacements.shape[1]))
    second = np.empty((count, 4, 4))
    for b in range(count):
        rows = np.flatnonzero(labels == b)
        points = motion.homogeneous[rows]
        moments[b], second[b] = points.T @ motion.displacements[rows], points.T @ points
    return rigid_bone(moments, second)


def cluster(
    motion: MotionMatrix, max_clusters: int, progress: Progress = no_progress, stop_relative: float = 1e-4
) -> MotionClusters:
    """Cluster the points of a motion matrix.

    A cluster is added as long as that lowers the error by more than ``stop_relative`` of it.
    """
    floor = motion.floor
    errors = motion.energy[:, None]  # one cluster: the motion of the whole is the alignment's
    bones = np.zeros((1, 4, motion.displacements.shape[1]))
    candidates = bones
    history = [float(errors.sum())]
    if max_clusters > 1 and history[0] > floor and len(motion) >= 2 * MIN_POINTS:
        candidates = candidate_motions(motion)
        options = motion.single_errors(candidates)
        while len(bones) < max_clusters and history[-1] > floor:
            progress("Motion clusters", len(bones) / max_clusters)
            step = max(1, len(bones) // 4)
            chosen = _best_additions(options, errors.min(1), min(step, max_clusters - len(bones)))
            grown = np.concatenate([bones, candidates[chosen]])
            grown, grown_errors = _expectation_maximisation(
                motion, grown, partial(progress, "Motion clusters", len(bones) / max_clusters)
            )
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
    return MotionClusters(errors.argmin(1), bones, candidates, tuple(history))


def _best_additions(options: F64, current: F64, count: int) -> list[int]:
    """Return columns of options (N, D) that together lower the errors (N,) most, picked greedily."""
    chosen: list[int] = []
    for _ in range(count):
        column = int(np.minimum(options, current[:, None]).sum(0).argmin())
        current = np.minimum(current, options[:, column])
        chosen.append(column)
    return chosen


def _expectation_maximisation(motion: MotionMatrix, bones: F64, tick: Callable[[], None]) -> tuple[F64, F64]:
    """Refine bones (B, 4, 3F) and return them with the errors (N, B); clusters without points are dropped."""
    errors = motion.single_errors(bones)
    for _ in range(EM_ROUNDS):
        tick()
        before = errors.min(1).sum()
        labels = errors.argmin(1)
        counts = np.bincount(labels, minlength=len(bones))
        if (counts < MIN_POINTS).any():  # drop one at a time: its points may save another
            keep = np.arange(len(bones)) != counts.argmin()
            bones, errors = bones[keep], errors[:, keep]
            continue
        bones = _fit_clusters(motion, labels, len(bones))
        errors = motion.single_errors(bones)
        if errors.min(1).sum() > before * (1 - 1e-2):
            break
    return bones, errors
