"""Fewer joints: those that buy nothing go."""

from __future__ import annotations

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


def prune(body: Body, fit: SkeletonFit, progress: Progress = no_progress) -> SkeletonFit:
    """Remove, cheapest first, the joints whose own rotation buys too little; ends stay for `tidy`."""
    stats = body.stats
    start = len(fit.tree)
    base, costs = _removal_costs(stats, fit)
    while np.isfinite(costs).any():
        progress("Skeleton", 1 - np.isfinite(costs).sum() / start)
        joint = int(np.argmin(costs))
        trial = improve(body, without_joint(fit, joint), iterations=3)
        if total_error(stats, trial) - base > allowance(stats, fit, joint):
            costs[joint] = np.inf
        else:
            kept = np.delete(np.isfinite(costs), joint)
            fit = trial
            base, costs = _removal_costs(stats, fit)
            costs[~kept] = np.inf
    return fit


def _removal_costs(stats: LbsStatistics, fit: SkeletonFit) -> tuple[float, F64]:
    """The squared error, and its rise (J,) where a joint stops rotating, relative to its allowance; root: inf."""
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


def tidy(body: Body, fit: SkeletonFit, shortest: float = 0.025) -> SkeletonFit:
    """Remove ends that say nothing: short ones, and all but the farthest that hang on one joint.

    Of a joint whose chain goes on, an end stays only where it is long (a torso's head).
    """
    while True:
        tree = fit.tree
        ends = tree.child_counts == 0
        removable = []
        for joint in np.flatnonzero(ends[1:]) + 1:
            parent = tree.parents[joint]
            length = np.linalg.norm(tree.positions[joint] - tree.positions[parent])
            siblings = np.flatnonzero(tree.parents == parent)
            goes_on = not ends[siblings].all()
            farthest = np.linalg.norm(tree.positions[siblings] - tree.positions[parent], axis=1).max()
            if (goes_on and length < 4 * shortest) or length < farthest:
                removable.append((length, joint))
            elif length < shortest and len(siblings) > 1:
                removable.append((length, joint))
        if not removable:
            return fit
        fit = without_joint(fit, int(min(removable)[1]))
