"""The inner skeleton of a capture: joints, names, binding and poses, in the capture's own units."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...progress import Progress, no_progress
from ..curves.curve import CurveSkeleton
from ..curves.inside import inside
from ..curves.surface import Surface
from ..decomposition.ssdr import SkinningDecomposition
from .binding import bone_affinity
from .bone_shapes import BoneShapes
from .growth import bridge, grow
from .interior import Interior
from .joints import aggregate_weights, joints_from_curve
from .kinematics import Poses, local_quaternions
from .lbs_statistics import LbsStatistics, lbs_statistics
from .names import name_joints
from .poses import fit_poses, squared_error
from .pruning import prune, tidy
from .skeleton_fit import MIN_GAIN, Body, SkeletonFit, improve, joint_statistics, rms_error
from .topology import reattach, reroot
from .tree import KinematicTree

F64 = NDArray[np.float64]
STRUCTURE_FRAMES = 90
VISIBLE_GAIN = 2e-2  # RMS gain, of the diagonal, for its own points, of a joint that is plain to see


@dataclass(frozen=True)
class Skeleton:
    """J joints that carry B outer bones through F frames; see `Rig` for the arrays.

    rmse : root mean square point distance of the replay by the skeleton alone, metres
    bind : (J, 3, 4) of a given skeleton, from its own rest pose to the rig's
    sliding : names of given joints that slide on their parents, which no rig follows; "" where none do
    """

    tree: KinematicTree
    names: tuple[str, ...]
    bone_joints: NDArray[np.int32]
    affinity: F64
    rotations: F64
    root_translations: F64
    rmse: float
    notes: tuple[str, ...] = ()
    bind: F64 | None = None
    sliding: str = ""


def build_skeleton(
    surface: Surface,
    curve: CurveSkeleton,
    rest: NDArray[np.floating],
    frames: NDArray[np.floating],
    skin: SkinningDecomposition,
    opacities: NDArray[np.floating] | None = None,
    threshold: float = 0.3,
    *,
    progress: Progress = no_progress,
) -> Skeleton:
    """Joints on the curve where the outer bones change, as one tree, posed and bound to replay the frames."""
    bones = skin.transforms.shape[1]
    masses = np.bincount(curve.owners, minlength=len(curve.nodes)).astype(float)
    weights = aggregate_weights(curve, skin.indices, skin.weights, bones, opacities)
    center = surface.vertices.mean(axis=0) if opacities is None else _center_of_mass(rest, opacities)
    found = joints_from_curve(curve, weights, skin.transforms, center, threshold=threshold)
    affinity = bone_affinity(weights, masses, found.node_joints, len(found.tree))
    stats = lbs_statistics(rest, frames, skin.indices, skin.weights, bones)
    body = _body(stats, surface, curve, rest, skin)
    tree = replace(found.tree, positions=(found.tree.positions - stats.center) / stats.scale)
    start = SkeletonFit(
        tree=tree,
        anchors=np.full((len(tree), 3), np.nan),
        bone_joints=affinity.argmax(axis=1).astype(np.int32),
        affinity=affinity,
        poses=fit_poses(body.stats, tree, affinity.argmax(axis=1), iterations=8),
    )
    budget = 2 * skin.rmse / stats.scale + 0.01
    center = (center - stats.center) / stats.scale
    fit = fit_structure(body, start, center, budget, progress)
    fit = pose_all_frames(stats, fit, some_frames(len(stats.energy)), progress)
    return _in_metres(stats, fit, surface)


def fit_structure(
    body: Body, fit: SkeletonFit, center: F64, budget: float, progress: Progress = no_progress
) -> SkeletonFit:
    """Improve, prune and grow a skeleton until it replays within `budget` (RMS, of the diagonal).

    center : (3,) centre of mass, in the statistics' units like all else
    """
    fit = improve(body, fit, rounds=4)
    fit = prune(body, fit, progress=progress)
    for _ in range(3):
        fit = grow(body, fit, VISIBLE_GAIN, 0.5 * budget, progress=progress)
        fit = grow(body, fit, MIN_GAIN, 0.8 * budget, progress=progress)
        fit = reroot(body, reattach(body, fit), center)
        if rms_error(body.stats, fit) < 0.8 * budget:
            break
    fit = prune(body, fit, 0.8 * budget, progress=progress)
    fit = improve(body, fit, rounds=4)
    fit = grow(body, fit, 0.0, 0.9 * budget, progress=progress)
    fit = bridge(body, fit, 0.85 * budget, progress)
    return tidy(body, fit)


def pose_all_frames(
    stats: LbsStatistics, fit: SkeletonFit, fitted: NDArray[np.intp], progress: Progress
) -> SkeletonFit:
    """Poses of all frames: the better fit of two starts, orientations and nearest fitted frame."""
    nearest = np.abs(np.arange(len(stats.energy))[:, None] - fitted).argmin(axis=1)
    starts = (None, fit.poses.rotations[nearest])
    fits = [
        replace(fit, poses=fit_poses(stats, fit.tree, fit.bone_joints, start, progress=progress))
        for start in starts
    ]
    errors = [squared_error(joint_statistics(stats, one), one.transforms()) for one in fits]
    second = errors[1] < errors[0]
    poses = Poses(
        np.where(second[:, None, None, None], fits[1].poses.rotations, fits[0].poses.rotations),
        np.where(second[:, None], fits[1].poses.offsets, fits[0].poses.offsets),
    )
    return replace(fit, poses=poses)


def some_frames(total: int) -> NDArray[np.intp]:
    """At most `STRUCTURE_FRAMES` evenly spaced frames."""
    return np.unique(np.linspace(0, total - 1, min(STRUCTURE_FRAMES, total)).round().astype(np.intp))


def _body(
    stats: LbsStatistics,
    surface: Surface,
    curve: CurveSkeleton,
    rest: NDArray[np.floating],
    skin: SkinningDecomposition,
) -> Body:
    """What the fit needs, for at most `STRUCTURE_FRAMES` evenly spaced frames."""
    few = some_frames(len(stats.energy))
    points = (rest - stats.center) / stats.scale
    return Body(
        stats=stats.take_frames(few),
        bone_motion=stats.to_units(skin.transforms, few),
        shapes=BoneShapes.of(points, skin.indices[:, 0], stats.bone_count),
        interior=Interior.of(surface, stats.center, stats.scale),
        curve=(curve.nodes - stats.center) / stats.scale,
    )


def _in_metres(stats: LbsStatistics, fit: SkeletonFit, surface: Surface) -> Skeleton:
    positions = fit.tree.positions * stats.scale + stats.center
    tree = replace(fit.tree, positions=positions)
    moves = fit.poses.offsets * stats.scale + stats.frame_centers - positions[0]
    outside = int((~inside(surface, positions)).sum())
    notes = (f"{outside} of {len(tree)} joints lie outside the surface.",) if outside else ()
    return Skeleton(
        tree=tree,
        names=name_joints(tree),
        bone_joints=fit.bone_joints,
        affinity=fit.affinity,
        rotations=local_quaternions(tree, fit.poses.rotations),
        root_translations=moves,
        rmse=rms_error(stats, fit) * stats.scale,
        notes=notes,
    )


def _center_of_mass(rest: NDArray[np.floating], opacities: NDArray[np.floating] | None) -> F64:
    share = np.ones(len(rest)) if opacities is None else np.maximum(opacities.astype(np.float64), 1e-3)
    return share @ rest.astype(np.float64) / share.sum()


def single_joint(
    rest: NDArray[np.floating],
    frames: NDArray[np.floating],
    skin: SkinningDecomposition,
    opacities: NDArray[np.floating] | None = None,
) -> Skeleton:
    """The skeleton of what moves rigidly or not at all: one joint at the centre of mass."""
    tree = KinematicTree(_center_of_mass(rest, opacities)[None], np.array([-1], dtype=np.int32))
    motion = skin.transforms[:, 0]
    moves = np.einsum("fab,b->fa", motion[..., :3], tree.positions[0]) + motion[..., 3] - tree.positions[0]
    return Skeleton(
        tree=tree,
        names=name_joints(tree),
        bone_joints=np.zeros(1, dtype=np.int32),
        affinity=np.ones((1, 1)),
        rotations=local_quaternions(tree, motion[:, None, :, :3]),
        root_translations=moves,
        rmse=skin.rmse,
    )
