"""Fewer joints: those that buy nothing go."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..progress import Progress, no_progress
from .lbs_statistics import LbsStatistics
from .poses import Poses, skinning_transforms, squared_error
from .skeleton_fit import (
    Body,
    SkeletonFit,
    allowance,
    improve,
    joint_statistics,
    total_error,
    without_joint,
)

F64 = NDArray[np.float64]
LONG_END = 0.15  # length, of the diagonal, from which an end stays on a joint whose chain goes on


def prune(
    body: Body, fit: SkeletonFit, limit: float = np.inf, progress: Progress = no_progress
) -> SkeletonFit:
    """Remove, cheapest first, the joints whose own rotation buys too little; ends stay for `tidy`.

    No removal takes the RMS error over `limit` (of the diagonal); within it joints that carry no bone go.
    """
    stats = body.stats
    most = stats.point_count * len(stats.energy) * limit**2
    start = len(fit.tree)
    base, costs = _removal_costs(stats, fit)
    while np.isfinite(costs).any():
        progress("Skeleton", 1 - np.isfinite(costs).sum() / start)
        joint = int(np.argmin(costs))
        trial = improve(body, without_joint(fit, joint), iterations=3)
        error = total_error(stats, trial)
        empty = base < most < np.inf and not (fit.bone_joints == joint).any()
        too_dear = error - base > allowance(stats, fit, joint) and not empty
        if too_dear or error > max(most, 1.001 * base):
            costs[joint] = np.inf
        else:
            kept = np.delete(np.isfinite(costs), joint)
            fit = trial
            base, costs = _removal_costs(stats, fit)
            costs[~kept] = np.inf
    return fit


def _removal_costs(stats: LbsStatistics, fit: SkeletonFit) -> tuple[float, F64]:
    """The squared error, and its rise (J,) where a joint stops rotating in terms of its allowance."""
    merged = joint_statistics(stats, fit)
    base = float(squared_error(merged, fit.transforms()).sum())
    costs = np.full(len(fit.tree), np.inf)
    for joint in np.flatnonzero(fit.tree.child_counts[1:]) + 1:
        rotations = fit.poses.rotations.copy()
        rotations[:, joint] = rotations[:, fit.tree.parents[joint]]
        moved = skinning_transforms(fit.tree, Poses(rotations, fit.poses.offsets))
        rise = squared_error(merged, moved).sum() - base
        costs[joint] = rise / allowance(stats, fit, joint)
    return base, costs


def tidy(body: Body, fit: SkeletonFit) -> SkeletonFit:
    """Keep one end effector where a chain ends, at the far tip of what its joint carries, and few other ends.

    Of a joint whose chain goes on an end stays only where it is long (a head that never turned).
    """
    while (joint := _needless_end(fit)) is not None:
        fit = without_joint(fit, joint)
    positions = fit.tree.positions.copy()
    counts = fit.tree.child_counts
    for joint in np.flatnonzero(counts[1:] == 0) + 1:
        parent = fit.tree.parents[joint]
        mine = fit.bone_joints == parent
        if counts[parent] == 1 and mine.any():
            positions[joint] = body.shapes.tip(mine, positions[parent])
    ends = counts == 0
    if len(positions) > 1:
        anchors = positions[np.maximum(fit.tree.parents, 0)]
        positions[ends] = body.interior.pull_inside(positions[ends], anchors[ends])
    return replace(fit, tree=replace(fit.tree, positions=positions))


def _needless_end(fit: SkeletonFit) -> int | None:
    """The shortest end on a joint whose chain goes on or that has a longer end; None without one."""
    tree = fit.tree
    ends = tree.child_counts == 0
    lengths = np.linalg.norm(tree.positions - tree.positions[np.maximum(tree.parents, 0)], axis=1)
    needless = []
    for joint in np.flatnonzero(ends[1:]) + 1:
        siblings = np.flatnonzero(tree.parents == tree.parents[joint])
        if len(siblings) == 1:
            continue
        goes_on = not ends[siblings].all()
        if (goes_on and lengths[joint] < LONG_END) or (
            not goes_on and lengths[joint] < lengths[siblings].max()
        ):
            needless.append((lengths[joint], joint))
    return int(min(needless)[1]) if needless else None
