"""A skeleton taken up again: the joints there are stay, new ones grow where motion asks.

What a first capture showed stays what it was; more motion of the same body may show joints that were still
before (GaussiAnimate's progressive refinement).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...progress import Progress, no_progress
from ..curves.surface import Surface
from ..decomposition.ssdr import SkinningDecomposition
from .bone_shapes import BoneShapes
from .growth import bridge, grow
from .interior import Interior
from .kinematics import Poses, local_quaternions
from .lbs_statistics import LbsStatistics
from .poses import better_poses, fit_poses
from .pruning import prune, tidy
from .skeleton import VISIBLE_GAIN, pose_all_frames, some_frames
from .skeleton_fit import MIN_GAIN, Body, SkeletonFit, improve
from .succession import PosedSkeleton, succeed
from .tree import KinematicTree

F64 = NDArray[np.float64]
SETTLED = 10.0  # degrees, root mean square, by which a joint turned whose place is known from that


def pose_joints(
    stats: LbsStatistics,
    tree: KinematicTree,
    bone_joints: NDArray[np.integer],
    progress: Progress = no_progress,
) -> tuple[F64, F64]:
    """Fit poses of known joints to frames: the better of two starts, orientations and the frame before.

    Parameters
    ----------
    stats : of the frames; tree : in metres

    Returns
    -------
    rotations (F, J, 4) local quaternions and root_translations (F, 3), metres
    """
    local = _in_units(tree, stats)
    first = fit_poses(stats, local, bone_joints, progress=progress)
    start = np.roll(first.rotations, 1, axis=0)
    start[0] = first.rotations[0]
    second = fit_poses(stats, local, bone_joints, start, progress=progress)
    poses, _ = better_poses(stats, local, bone_joints, first, second)
    moves = poses.offsets * stats.scale + stats.frame_centers - tree.positions[0]
    return local_quaternions(local, poses.rotations), moves


def grow_skeleton(
    skeleton: PosedSkeleton,
    stats: LbsStatistics,
    surface: Surface,
    rest: NDArray[np.floating],
    skin: SkinningDecomposition,
    known: NDArray[np.bool_],
    progress: Progress = no_progress,
) -> PosedSkeleton:
    """Add joints where outer bones that hang on one joint move apart, by the rules of a first skeleton.

    The joints there are stay, and keep their place where the known frames told it; one that hardly turned in
    them finds its place now. Joints that were added are placed, and pruned, as usual.

    Parameters
    ----------
    skeleton : with poses in all frames and the binding of `skin`'s bones
    stats : of all frames, with `skin`'s weights
    known : (F,) frames that the skeleton was found in
    """
    few = some_frames(len(stats.energy))
    settled = _settled(skeleton, known)
    body = Body(
        stats=stats.take_frames(few),
        bone_motion=stats.to_units(skin.transforms, few),
        shapes=BoneShapes.of((rest - stats.center) / stats.scale, skin.indices[:, 0], stats.bone_count),
        interior=Interior.of(surface, stats.center, stats.scale),
        curve=(skeleton.tree.positions - stats.center) / stats.scale,
        settled=settled,
    )
    fit = _start(skeleton, stats, few)
    budget = 2 * skin.rmse / stats.scale + 0.01
    fit = improve(body, fit, rounds=2)
    fit = grow(body, fit, VISIBLE_GAIN, 0.5 * budget, progress)
    fit = grow(body, fit, MIN_GAIN, 0.8 * budget, progress)
    fit = prune(body, fit, 0.8 * budget, progress)
    fit = improve(body, fit, rounds=4)
    fit = grow(body, fit, 0.0, 0.9 * budget, progress)
    fit = prune(body, bridge(body, fit, 0.85 * budget, progress), 0.9 * budget, progress)
    fit = pose_all_frames(stats, tidy(body, fit), few, progress)
    assert fit.origins is not None
    positions = fit.tree.positions * stats.scale + stats.center
    kept = (fit.origins >= 0) & settled[fit.origins]
    positions[kept] = skeleton.tree.positions[fit.origins[kept]]  # bit by bit
    tree = replace(fit.tree, positions=positions)
    grown = PosedSkeleton(
        tree=tree,
        names=tuple(str(joint) for joint in range(len(tree))),
        bone_joints=fit.bone_joints,
        affinity=fit.affinity,
        rotations=local_quaternions(tree, fit.poses.rotations),
        root_translations=fit.poses.offsets * stats.scale + stats.frame_centers - positions[0],
        origins=fit.origins,
    )
    return succeed(grown, skeleton.names)


def _in_units(tree: KinematicTree, stats: LbsStatistics) -> KinematicTree:
    return replace(tree, positions=(tree.positions - stats.center) / stats.scale)


def _start(skeleton: PosedSkeleton, stats: LbsStatistics, frames: NDArray[np.intp]) -> SkeletonFit:
    """The fit of some frames as the skeleton stands."""
    tree = _in_units(skeleton.tree, stats)
    turns = skeleton.motions()[frames, :, :, :3]
    places = skeleton.root_translations[frames] + skeleton.tree.positions[0]
    return SkeletonFit(
        tree=tree,
        anchors=tree.positions,
        bone_joints=skeleton.bone_joints,
        affinity=skeleton.affinity,
        poses=Poses(turns, (places - stats.frame_centers[frames]) / stats.scale),
        origins=np.arange(len(tree), dtype=np.int32),
    )


def _settled(skeleton: PosedSkeleton, known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(J,) joints that turned enough in the known frames for their place to be told; ends and the root."""
    turns = 2 * np.abs(skeleton.rotations[known][..., 1:])  # 2 sin(angle / 2)
    turned = np.sqrt((turns**2).sum(axis=-1).mean(axis=0)) >= np.radians(SETTLED)
    turned[0] = True
    return turned | (skeleton.tree.child_counts == 0)
