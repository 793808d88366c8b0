"""The state of a skeleton fit and the step that improves it.

One objective throughout: the squared error of the points skinned by the skeleton alone. Each part of a
step lowers it for the rest of the unknowns fixed: binding (`binding.rebind`), joint positions
(`placement.place_joints`), poses (`poses.fit_poses`), as in Le & Deng 2014, "Robust and accurate
skeletal rigging from mesh sequences".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..kabsch import kabsch
from .binding import merge_affinity, nearby_joints, rebind
from .bone_shapes import BoneShapes
from .interior import Interior
from .kinematics import Poses, skinning_transforms
from .lbs_statistics import LbsStatistics
from .placement import place_joints
from .poses import fit_poses, squared_error
from .tree import KinematicTree

F64 = NDArray[np.float64]
MIN_GAIN = 3e-3  # a joint must lower the RMS error of its own points by this much of the box diagonal
LEAST_SHARE = 0.02
LEAST_CONTACTS = 4
FARTHEST = 0.05  # of the diagonal: how far the motion may take a joint from its anchor


@dataclass(frozen=True)
class Body:
    """What does not change while a skeleton is fitted, all in the statistics' units.

    stats : sums over the points, of the frames the structure is fitted to
    bone_motion : (F, B, 3, 4) the outer bones' own transforms
    shapes : where the bones lie; interior : where joints may lie
    curve : (M, 3) nodes of the curve skeleton
    settled : (J',) joints of an earlier skeleton that keep their place (see `SkeletonFit.origins`)
    """

    stats: LbsStatistics
    bone_motion: F64
    shapes: BoneShapes
    interior: Interior
    curve: F64
    settled: NDArray[np.bool_] | None = None

    def nearest_curve(self, points: F64) -> F64:
        """Nearest curve nodes (J, 3) of points (J, 3)."""
        return self.curve[np.linalg.norm(points[:, None] - self.curve, axis=-1).argmin(axis=1)]

    def moments(self) -> F64:
        """(B, 4, 4) sum w x x^T of each bone's points, x homogeneous."""
        bones = self.stats.bone_count
        return self.stats.gram.reshape(bones, 4, bones, 4).sum(axis=2)

    def rigid_motion(self, group: NDArray[np.bool_]) -> F64:
        """(F, 3, 4) best rigid motion of the points of some bones (B,), by their weights."""
        moment = self.moments()[group].sum(axis=0)
        cross = self.stats.cross.reshape(-1, 3, len(group), 4)[:, :, group].sum(axis=2)
        mass = max(moment[3, 3], 1e-12)
        mean, moved = moment[3, :3] / mass, cross[..., 3] / mass
        rotation = kabsch(np.swapaxes(cross[..., :3] - mass * moved[..., None] * mean, -1, -2))
        return np.concatenate([rotation, (moved - rotation @ mean)[..., None]], axis=-1)


@dataclass(frozen=True)
class SkeletonFit:
    """A skeleton in the statistics' units.

    tree : J joints; anchors : (J, 3) where a joint is held when the motion does not tell, NaN: the nearest
    curve node
    bone_joints : (B,) joint that carries each bone; affinity : (B, J)
    poses : of the frames fitted
    origins : (J,) joint of an earlier skeleton that each is, -1 where it is new: the former are not removed;
        None: all are new
    """

    tree: KinematicTree
    anchors: F64
    bone_joints: NDArray[np.int32]
    affinity: F64
    poses: Poses
    origins: NDArray[np.int32] | None = None

    @property
    def held(self) -> NDArray[np.bool_]:
        """(J,) joints of an earlier skeleton."""
        return np.zeros(len(self.tree), bool) if self.origins is None else self.origins >= 0

    def transforms(self) -> F64:
        """(F, J, 3, 4) rest -> posed."""
        return skinning_transforms(self.tree, self.poses)


def total_error(stats: LbsStatistics, fit: SkeletonFit) -> float:
    """Squared error of the skeleton's replay over all points and frames."""
    return squared_error(joint_statistics(stats, fit), fit.transforms()).sum()


def joint_statistics(stats: LbsStatistics, fit: SkeletonFit) -> LbsStatistics:
    """The same sums with the bones of a joint taken together: skinning by J joints instead of B bones."""
    bones, joints = stats.bone_count, len(fit.tree)
    bound = np.zeros((bones, joints))
    bound[np.arange(bones), fit.bone_joints] = 1
    merge = np.kron(bound, np.eye(4))  # (4B, 4J)
    return replace(stats, gram=merge.T @ stats.gram @ merge, cross=stats.cross @ merge)


def rms_error(stats: LbsStatistics, fit: SkeletonFit) -> float:
    """Root mean square error of the skeleton's replay, in units of the box diagonal."""
    return float(np.sqrt(total_error(stats, fit) / (stats.point_count * len(stats.energy))))


def improve(body: Body, fit: SkeletonFit, rounds: int = 1, iterations: int = 4) -> SkeletonFit:
    """Rounds of binding, joint positions and poses; only keeping joints inside may raise the error."""
    for _ in range(rounds):
        allowed = nearby_joints(fit.tree, fit.affinity)
        binding = rebind(body.stats, fit.transforms(), fit.bone_joints, allowed)
        anchors = joint_anchors(body, fit, binding)
        positions = place_joints(body.stats, fit.tree, binding, fit.poses, anchors)
        away = positions - anchors
        distance = np.linalg.norm(away, axis=1, keepdims=True)
        positions[1:] = (anchors + away * np.minimum(1, FARTHEST / np.maximum(distance, 1e-12)))[1:]
        positions[1:] = body.interior.pull_inside(positions[1:])
        if body.settled is not None and fit.origins is not None:
            stay = (fit.origins >= 0) & body.settled[fit.origins]
            positions[stay] = fit.tree.positions[stay]
        tree = replace(fit.tree, positions=positions)
        poses = fit_poses(body.stats, tree, binding, fit.poses.rotations, iterations=iterations)
        fit = replace(fit, tree=tree, bone_joints=binding, poses=poses)
    return fit


def joint_anchors(body: Body, fit: SkeletonFit, binding: NDArray[np.integer]) -> F64:
    """Where each joint (J, 3) is held: the middle of the seam between its bones and its parent's.

    Where they do not touch: the anchor it was given, or else the nearest curve node.
    """
    anchors = np.where(np.isnan(fit.anchors), body.nearest_curve(fit.tree.positions), fit.anchors)
    bound = (binding[:, None] == np.arange(len(fit.tree))).astype(float)  # (B, J)
    contacts = bound.T @ body.shapes.contacts @ bound
    seams = np.einsum("bj,bca,ck->jka", bound, body.shapes.seams, bound, optimize=True)
    child = np.arange(1, len(fit.tree))
    touching = contacts[child, fit.tree.parents[child]]
    held = child[touching >= LEAST_CONTACTS]
    parents = fit.tree.parents[held]
    anchors[held] = seams[held, parents] / contacts[held, parents][:, None]
    return anchors


def allowance(stats: LbsStatistics, fit: SkeletonFit, joint: int, gain: float = MIN_GAIN) -> float:
    """Squared error not worth a joint: `gain` over the points it carries itself, or over all below.

    Few points count as `LEAST_SHARE` of all: what is small to the eye earns no joint. A joint that carries
    no bone itself must gain twice as much.
    """
    masses = stats.bone_masses
    own = masses[fit.bone_joints == joint].sum()
    if own <= 0:
        own = 4 * masses[fit.tree.ancestry()[joint][fit.bone_joints]].sum()
    own = max(own, LEAST_SHARE * stats.point_count)
    return len(stats.energy) * own * gain**2 + 1e-12 * stats.energy.sum()


def with_ends(body: Body, fit: SkeletonFit) -> SkeletonFit:
    """Give each joint that carries bones but has no child an end, at the tip of what it carries.

    Only joints with children carry bones (`binding.nearby_joints`): without an end it would lose them.
    """
    tree = fit.tree
    bare = np.flatnonzero((tree.child_counts == 0) & np.isin(np.arange(len(tree)), fit.bone_joints))
    bare = bare[bare > 0]
    if not len(bare):
        return fit
    tips = np.array([body.shapes.tip(fit.bone_joints == joint, tree.positions[joint]) for joint in bare])
    rotations = fit.poses.rotations
    return SkeletonFit(
        tree=KinematicTree(
            np.concatenate([tree.positions, tips]), np.concatenate([tree.parents, bare.astype(np.int32)])
        ),
        anchors=np.concatenate([fit.anchors, tips]),
        bone_joints=fit.bone_joints,
        affinity=np.pad(fit.affinity, ((0, 0), (0, len(bare)))),
        poses=replace(fit.poses, rotations=np.concatenate([rotations, rotations[:, bare]], axis=1)),
        origins=with_new(fit.origins, len(bare)),
    )


def with_new(origins: NDArray[np.int32] | None, count: int = 1) -> NDArray[np.int32] | None:
    """Origins with those of ``count`` new joints at the end."""
    return None if origins is None else np.pad(origins, (0, count), constant_values=-1)


def without_joint(fit: SkeletonFit, joint: int) -> SkeletonFit:
    """Remove a joint: its bones and children become its parent's."""
    tree, renumber = fit.tree.without(joint)
    return SkeletonFit(
        tree=tree,
        anchors=np.delete(fit.anchors, joint, axis=0),
        bone_joints=renumber[fit.bone_joints].astype(np.int32),
        affinity=merge_affinity(fit.affinity, renumber),
        poses=replace(fit.poses, rotations=np.delete(fit.poses.rotations, joint, axis=1)),
        origins=None if fit.origins is None else np.delete(fit.origins, joint),
    )
