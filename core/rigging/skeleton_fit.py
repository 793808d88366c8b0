"""The skeleton that replays the capture best: bindings, poses and joint positions in turn, needless joints removed.

One objective throughout: the squared error of the points skinned by the skeleton alone. For fixed rest of the
unknowns each step lowers it: binding (`binding.rebind`), poses (`poses.fit_poses`), joint positions (a linear
least-squares problem, as in Le & Deng 2014, "Robust and accurate skeletal rigging from mesh sequences").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..progress import Progress, no_progress
from .binding import merge_affinity, nearby_joints, rebind
from .lbs_statistics import LbsStatistics
from .poses import Poses, fit_poses, skinning_transforms, squared_error
from .tree import KinematicTree

if TYPE_CHECKING:
    from .curve import CurveSkeleton

F64 = NDArray[np.float64]
HINGE_PRIOR = (
    2e-3  # weight of the curve against the motion: a joint that turns under some 3 degrees stays on it
)
TUBE = 0.7  # share of the local radius a joint may leave the curve by
MIN_GAIN = 3e-3  # a joint must lower the RMS error of its own points by this much of the box diagonal


@dataclass(frozen=True)
class Tube:
    """The curve skeleton as a set of balls, in the statistics' units: nodes (M, 3), radii (M,)."""

    nodes: F64
    radii: F64

    @classmethod
    def of(cls, curve: CurveSkeleton, stats: LbsStatistics) -> Tube:
        """Take over a curve given in metres."""
        return cls((curve.nodes - stats.center) / stats.scale, curve.radii / stats.scale)

    def nearest(self, points: F64) -> tuple[F64, F64]:
        """Nearest nodes (J, 3) of points (J, 3) and their radii (J,)."""
        near = np.linalg.norm(points[:, None] - self.nodes, axis=-1).argmin(axis=1)
        return self.nodes[near], self.radii[near]

    def pull_inside(self, points: F64) -> F64:
        """Points (J, 3) moved towards the curve until they lie within `TUBE` of its radius."""
        centers, radii = self.nearest(points)
        away = points - centers
        distance = np.linalg.norm(away, axis=1)
        limit = TUBE * radii
        return centers + away * np.minimum(1, limit / np.maximum(distance, 1e-12))[:, None]


@dataclass(frozen=True)
class SkeletonFit:
    """A skeleton in the statistics' units: joints, binding of the bones, poses, bone-joint affinity (B, J)."""

    tree: KinematicTree
    bone_joints: NDArray[np.int32]
    affinity: F64
    poses: Poses

    def transforms(self) -> F64:
        """(F, J, 3, 4) rest -> posed."""
        return skinning_transforms(self.tree, self.poses)


def rms_error(stats: LbsStatistics, fit: SkeletonFit) -> float:
    """Root mean square error of the skeleton's replay, in units of the box diagonal."""
    errors = squared_error(stats, fit.transforms()[:, fit.bone_joints])
    return float(np.sqrt(errors.sum() / (stats.point_count * len(errors))))


def fit_skeleton(
    stats: LbsStatistics,
    tree: KinematicTree,
    affinity: F64,
    tube: Tube,
    *,
    rounds: int = 4,
    progress: Progress = no_progress,
) -> SkeletonFit:
    """Bind, pose, place and prune; `tree` in the statistics' units, `affinity` (B, J). See the module's text."""
    few = stats.take_frames(_some_frames(stats, 100))
    binding = affinity.argmax(axis=1).astype(np.int32)
    fit = SkeletonFit(tree, binding, affinity, fit_poses(few, tree, binding, iterations=8))
    for turn in range(rounds):
        progress("Skeleton", 0.3 * turn / rounds)
        fit = _improve(few, fit, tube)
    fit = _prune(few, fit, tube, progress)
    for _ in range(rounds):
        fit = _improve(few, fit, tube)
    progress("Joint poses", 0.0)
    return replace(fit, poses=fit_poses(stats, fit.tree, fit.bone_joints, progress=progress))


def _some_frames(stats: LbsStatistics, count: int) -> NDArray[np.intp]:
    """Evenly spaced frames, at most `count`."""
    total = len(stats.energy)
    return np.unique(np.linspace(0, total - 1, min(count, total)).round().astype(np.intp))


def _improve(stats: LbsStatistics, fit: SkeletonFit, tube: Tube, iterations: int = 4) -> SkeletonFit:
    """One round of binding, joint positions and poses."""
    allowed = nearby_joints(fit.tree, fit.affinity)
    binding = rebind(stats, fit.transforms(), fit.bone_joints, allowed)
    positions = place_joints(stats, fit.tree, binding, fit.poses, tube)
    tree = replace(fit.tree, positions=positions)
    poses = fit_poses(stats, tree, binding, fit.poses.rotations, iterations=iterations)
    return SkeletonFit(tree, binding, fit.affinity, poses)


def place_joints(
    stats: LbsStatistics, tree: KinematicTree, bone_joints: NDArray[np.integer], poses: Poses, tube: Tube
) -> F64:
    """Joint positions (J, 3) that suit the rotations best, held near the curve where the motion does not tell.

    The skinned point is linear in the joints: joint j moves what hangs below it by ``(Rg_parent - Rg_j) J_j``. The
    root (whose place does not matter to the motion) stays.
    """
    joints, bones = len(tree), stats.bone_count
    if joints == 1:
        return tree.positions
    rotations = poses.rotations
    bound = (bone_joints[None, :] == np.arange(joints)[:, None]).astype(float)  # (J, B)
    below = tree.ancestry().astype(float) @ bound  # (J, B)
    gram = stats.gram.reshape(bones, 4, bones, 4)
    ones, moments = gram[:, 3, :, 3], gram[:, 3, :, :3]  # sum w w', sum w w' x
    mean = below @ ones.sum(axis=1) / stats.point_count
    shared = below @ ones @ below.T - stats.point_count * np.outer(mean, mean)
    lever = np.einsum("jb,bca,kc->jka", below, moments, bound, optimize=True)
    lever -= mean[:, None, None] * np.einsum("bca,kc->ka", moments, bound)
    moved = np.einsum("fab,jb->fja", stats.cross[:, :, 3::4], below)
    moved -= mean[:, None] * stats.cross[:, :, 3::4].sum(axis=2)[:, None]
    moved -= np.einsum("fkab,jkb->fja", rotations, lever, optimize=True)

    child = np.arange(1, joints)
    turn = rotations[:, tree.parents[child]] - rotations[:, child]  # (F, J - 1, 3, 3)
    flat = np.moveaxis(turn, 1, 2).reshape(len(turn) * 3, -1)  # (3F, 3(J - 1))
    normal = (flat.T @ flat) * np.kron(shared[1:, 1:], np.ones((3, 3)))
    right = np.einsum("fjab,fja->jb", turn, moved[:, 1:]).ravel()
    hold = HINGE_PRIOR * len(turn) * np.maximum(np.diag(shared)[1:], 1e-6 * stats.point_count)
    hold = np.repeat(hold, 3)
    prior = tube.nearest(tree.positions)[0][1:].ravel()
    solved = np.linalg.solve(normal + np.diag(hold), right + hold * prior).reshape(-1, 3)
    return np.concatenate([tree.positions[:1], tube.pull_inside(solved)])


def _prune(stats: LbsStatistics, fit: SkeletonFit, tube: Tube, progress: Progress) -> SkeletonFit:
    """Remove, cheapest first, the joints whose own rotation buys too little; ends stay for `tidy`."""
    needed: set[int] = set()
    total = max(len(fit.tree), 2)
    while True:
        progress("Skeleton", 0.3 + 0.7 * (1 - len(fit.tree) / total))
        base = squared_error(stats, fit.transforms()[:, fit.bone_joints]).sum()
        costs = _removal_costs(stats, fit, base)
        costs[list(needed)] = np.inf
        joint = int(np.argmin(costs))
        if not np.isfinite(costs[joint]):
            return fit
        trial = _improve(stats, _without(stats, fit, joint), tube, iterations=3)
        rise = squared_error(stats, trial.transforms()[:, trial.bone_joints]).sum() - base
        if rise > _allowance(stats, fit, joint):
            needed.add(joint)
        else:
            fit = trial
            needed = {other - (other > joint) for other in needed}


def _allowance(stats: LbsStatistics, fit: SkeletonFit, joint: int) -> float:
    """Squared error that is not worth a joint: `MIN_GAIN` over the points it carries itself, or all below."""
    masses = stats.bone_masses
    own = masses[fit.bone_joints == joint].sum()
    if own <= 0:
        own = masses[fit.tree.ancestry()[joint][fit.bone_joints]].sum()
    return len(stats.energy) * own * MIN_GAIN**2 + 1e-12 * stats.energy.sum()


def _without(stats: LbsStatistics, fit: SkeletonFit, joint: int) -> SkeletonFit:
    tree, renumber = fit.tree.without(joint)
    poses = Poses(np.delete(fit.poses.rotations, joint, axis=1), fit.poses.offsets)
    affinity = merge_affinity(fit.affinity, renumber)
    return SkeletonFit(tree, renumber[fit.bone_joints].astype(np.int32), affinity, poses)


def _removal_costs(stats: LbsStatistics, fit: SkeletonFit, base: float) -> F64:
    """(J,) rise of the squared error where a joint stops rotating, relative to its allowance; inf for the root."""
    costs = np.full(len(fit.tree), np.inf)
    for joint in range(1, len(fit.tree)):
        if fit.tree.child_counts[joint] == 0:
            continue
        rotations = fit.poses.rotations.copy()
        rotations[:, joint] = rotations[:, fit.tree.parents[joint]]
        moved = skinning_transforms(fit.tree, Poses(rotations, fit.poses.offsets))
        error = squared_error(stats, moved[:, fit.bone_joints]).sum()
        costs[joint] = (error - base) / _allowance(stats, fit, joint)
    return costs
