"""Fewer joints: those that buy nothing go."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...progress import Progress, no_progress
from .kinematics import Poses, skinning_transforms
from .lbs_statistics import LbsStatistics
from .poses import squared_error
from .skeleton_fit import (
    LEAST_SHARE,
    Body,
    SkeletonFit,
    allowance,
    improve,
    joint_statistics,
    total_error,
    with_ends,
    without_joint,
)

F64 = NDArray[np.float64]
LONG_END = 0.15  # length, of the diagonal, from which an end stays on a joint whose chain goes on


def prune(
    body: Body, fit: SkeletonFit, limit: float = np.inf, progress: Progress = no_progress
) -> SkeletonFit:
    """Remove, cheapest first, the joints whose own rotation buys too little; ends stay for `tidy`.

    The first joint of a limb stays though the capture never turned it: the next pose may. So do those of an
    earlier skeleton.
    No removal takes the RMS error over `limit` (of the diagonal); within it joints that carry no bone go, and
    patches: skin bones carry those, an animator has no use for them.
    """
    stats = body.stats
    most = stats.point_count * len(stats.energy) * limit**2
    start = len(fit.tree)
    base, costs = _removal_costs(stats, fit)
    while np.isfinite(costs := np.where(limb_roots(body, fit) | fit.held, np.inf, costs)).any():
        progress("Skeleton", 1 - np.isfinite(costs).sum() / start)
        joint = int(np.argmin(costs))
        trial = improve(body, without_joint(fit, joint), iterations=3)
        error = total_error(stats, trial)
        needless = base < most < np.inf and (
            not (fit.bone_joints == joint).any() or patches(body, fit)[joint]
        )
        too_dear = error - base > allowance(stats, fit, int(joint)) and not needless
        if too_dear or error > max(most, 1.001 * base):
            costs[joint] = np.inf
        else:
            kept = np.delete(np.isfinite(costs), joint)
            fit = trial
            base, costs = _removal_costs(stats, fit)
            costs[~kept] = np.inf
    return fit


def patches(body: Body, fit: SkeletonFit) -> NDArray[np.bool_]:
    """Mask (J,) of the joints without joints below that move anything, which carry few points close by."""
    tree = fit.tree
    masses = np.bincount(fit.bone_joints, body.stats.bone_masses, len(tree))
    below = tree.ancestry() & ~np.eye(len(tree), dtype=bool)
    apart = np.linalg.norm(tree.positions[:, None] - tree.positions, axis=2)
    reach = np.where(below, apart, 0).max(axis=1)
    light = masses < LEAST_SHARE * body.stats.point_count
    return light & (below @ masses == 0) & (reach < LONG_END) & (tree.parents >= 0)


def limb_roots(body: Body, fit: SkeletonFit) -> NDArray[np.bool_]:
    """Mask (J,) of the joints at which a limb leaves a branching: they carry points, and what hangs on them
    reaches `LONG_END` away from it.
    """
    tree = fit.tree
    masses = np.bincount(fit.bone_joints, body.stats.bone_masses, len(tree))
    leaves = tree.positions[np.maximum(tree.parents, 0)]
    reach = np.linalg.norm(leaves[:, None] - tree.positions, axis=2)
    reach = np.where(tree.ancestry(), reach, 0).max(axis=1)
    branching = (tree.child_counts >= 2)[np.maximum(tree.parents, 0)] & (tree.parents >= 0)
    return branching & (reach >= LONG_END) & (masses >= LEAST_SHARE * body.stats.point_count)


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
        costs[joint] = rise / allowance(stats, fit, int(joint))
    return base, costs


def tidy(body: Body, fit: SkeletonFit) -> SkeletonFit:
    """Keep one end effector where a chain ends, at the far tip of what its joint carries, and few other ends.

    Of a joint whose chain goes on an end stays only where it is long (a head that never turned).
    """
    fit = with_ends(body, fit)
    while (joint := _needless_end(fit)) is not None:
        fit = without_joint(fit, joint)
    positions = fit.tree.positions.copy()
    counts = fit.tree.child_counts
    ends = (counts == 0) & (fit.tree.parents >= 0)
    for joint in np.flatnonzero(ends):
        parent = fit.tree.parents[joint]
        mine = fit.bone_joints == parent
        if counts[parent] == 1 and mine.any():
            positions[joint] = body.shapes.tip(mine, positions[parent])
    if ends.any():
        positions[ends] = body.interior.pull_inside(positions[ends])
    return replace(fit, tree=replace(fit.tree, positions=positions))


def _needless_end(fit: SkeletonFit) -> int | None:
    """The end nearest to the chains it shares its joint with, or shorter than another end; None without one.

    An end stays beside chains that go on where it reaches `LONG_END` away from all of them.
    """
    tree = fit.tree
    ends = tree.child_counts == 0
    lengths = np.linalg.norm(tree.positions - tree.positions[np.maximum(tree.parents, 0)], axis=1)
    within = tree.ancestry()
    needless = []
    for joint in np.flatnonzero(ends & (tree.parents >= 0)):
        siblings = np.flatnonzero((tree.parents == tree.parents[joint]) & (np.arange(len(tree)) != joint))
        if not len(siblings):
            continue
        if ends[siblings].all():
            reach = lengths[joint] if lengths[joint] < lengths[siblings].max() else np.inf
        else:
            beside = np.flatnonzero(within[siblings].any(axis=0))
            starts, stops = tree.positions[tree.parents[beside]], tree.positions[beside]
            reach = _segment_distances(tree.positions[joint], starts, stops).min()
            reach = reach if reach < LONG_END else np.inf
        needless.append((reach, joint))
    reach, joint = min(needless, default=(np.inf, None))
    return None if joint is None or np.isinf(reach) else int(joint)


def _segment_distances(point: F64, starts: F64, stops: F64) -> F64:
    """Distances (S,) of a point (3,) to segments (S, 3), (S, 3)."""
    ways = stops - starts
    squared = np.maximum((ways**2).sum(axis=1), 1e-300)
    along = np.clip(((point - starts) * ways).sum(axis=1) / squared, 0, 1)
    return np.linalg.norm(point - starts - along[:, None] * ways, axis=1)
