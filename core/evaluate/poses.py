"""Poses of a rig's skeleton in any frames of the capture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..capture import Capture
from ..progress import Progress, no_progress
from ..rigging.rig import Rig
from ..rigging.skeleton.given import given_poses
from ..rigging.skeleton.kinematics import joint_transforms, local_quaternions
from ..rigging.skeleton.lbs_statistics import LbsStatistics, lbs_statistics
from ..rigging.skeleton.poses import better_poses, fit_poses
from ..rigging.skeleton.tree import KinematicTree

F64 = NDArray[np.float64]
MOST_STARTS = 200


def captured_poses(
    capture: Capture, rig: Rig, frames: NDArray[np.integer], progress: Progress = no_progress
) -> tuple[F64, F64]:
    """Local quaternions (Q, J, 4) and root translations (Q, 3) in frames (Q,) of the capture.

    On a skeleton the capture brought they are its own. Joints that were found in the motion are fitted to the
    points of the frames: only the joints, so how the outer bones stray from them is still unseen.
    """
    if rig.joint_bind is not None and capture.skeleton is not None:
        return given_poses(rig, capture.skeleton.take_frames(frames))
    rows = {frame: row for row, frame in enumerate(rig.frames.tolist())}
    known = np.array([rows.get(frame, -1) for frame in frames.tolist()])
    rotations, moves = rig.joint_rotations[known], rig.root_translations[known]
    new = np.flatnonzero(known < 0)
    if len(new):
        rotations[new], moves[new] = fitted_poses(rig, capture.positions[frames[new]], progress)
    return rotations, moves


def fitted_poses(
    rig: Rig, positions: NDArray[np.floating], progress: Progress = no_progress
) -> tuple[F64, F64]:
    """Poses (Q, J, 4), (Q, 3) of a rig's joints fitted to points (Q, N, 3), each bone rigid on its joint."""
    stats = lbs_statistics(rig.rest, positions, rig.indices, rig.weights, rig.bone_count)
    metres = KinematicTree(rig.joint_positions, rig.joint_parents)
    tree = KinematicTree((rig.joint_positions - stats.center) / stats.scale, rig.joint_parents)
    poses = fit_poses(stats, tree, rig.bone_joints, progress=progress)
    nearest = _nearest_captured(stats, tree, rig)
    again = fit_poses(stats, tree, rig.bone_joints, nearest, progress=progress)
    poses, _ = better_poses(stats, tree, rig.bone_joints, poses, again)
    moves = poses.offsets * stats.scale + stats.frame_centers - rig.joint_positions[0]
    return local_quaternions(metres, poses.rotations), moves


def _nearest_captured(stats: LbsStatistics, tree: KinematicTree, rig: Rig) -> F64:
    """Global rotations (Q, J, 3, 3) of the captured pose that fits each frame best: where to start."""
    some = np.unique(
        np.linspace(0, rig.frame_count - 1, min(rig.frame_count, MOST_STARTS)).round().astype(int)
    )
    still = np.zeros((len(some), 3))
    captured = joint_transforms(rig.joint_parents, tree.positions, rig.joint_rotations[some], still)
    flat = np.moveaxis(captured[:, rig.bone_joints], 1, 2).reshape(len(some), 3, -1)
    mean = flat @ stats.gram[:, 3::4].sum(axis=1) / stats.point_count  # (S, 3), that of the frames is zero
    own = np.einsum("sai,sai->s", flat @ stats.gram, flat) - stats.point_count * (mean**2).sum(axis=1)
    inner = stats.cross.reshape(len(stats.cross), -1) @ flat.reshape(len(some), -1).T
    return captured[(own - 2 * inner).argmin(axis=1), :, :, :3]
