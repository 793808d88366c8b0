"""What a regression sees of a pose: its rotations, and on demand how they and the root move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...motion.timeline import clip_bounds
from ...rigging.skeleton.kinematics import joint_transforms
from ...rotations import quaternion_to_matrix
from ..subject import Query, Training

F32, F64 = NDArray[np.float32], NDArray[np.float64]
TICK = 1 / 15  # seconds, unit of the lags
LAGS = (0, 1, 2, 4, 6)  # ticks ago at which poses are looked at
CHANGES = np.array([[1, -1, 0, 0, 0], [1, -2, 1, 0, 0], [1, 0, -2, 1, 0], [1, 0, 0, 0, -1]], float)
LEAST_SPREAD = 0.02  # of a feature, which is divided by its spread
STILL = 1e-3  # features that move less are left out


@dataclass(frozen=True)
class PoseFeatures:
    """Standardised features of poses; causal, blind to place and heading.

    A joint's local rotation is seen as the first two columns of its matrix (Zhou et al., "On the continuity
    of rotation representations in neural networks", 2019), the lean of the body as world up in the frames of
    the root and of the main joint, the one that carries most. With motion come velocities and accelerations
    of these (`CHANGES`) and, of the root and the main joint, velocity, acceleration and turning in their own
    frames: the information that the motion kernel has.
    """

    parents: NDArray[np.int32]
    joint_positions: F64
    main_joint: int
    up: F64
    motion: bool
    columns: NDArray[np.intp]
    means: F32
    scales: F32

    @staticmethod
    def of(learned: Training, motion: bool = False) -> PoseFeatures:
        """Features of what moves in the training frames, standardised on them."""
        base = learned.database
        main_joint = int(np.bincount(base.bone_joints, base.masses, base.joint_count).argmax())
        rig = base.parents, base.joint_positions, main_joint, base.up, motion
        nothing = np.zeros(0, np.float32)
        raw = PoseFeatures(*rig, np.zeros(0, np.intp), nothing, nothing).raw(learned.poses)[learned.rows]
        spread = raw.std(axis=0)
        columns = np.flatnonzero(spread > STILL)
        scales = (1 / np.maximum(spread[columns], LEAST_SPREAD)).astype(np.float32)
        return PoseFeatures(*rig, columns, raw[:, columns].mean(axis=0), scales)

    def __call__(self, query: Query) -> F32:
        """Features (Q, D) of every frame of a query."""
        return (self.raw(query)[:, self.columns] - self.means) * self.scales

    def raw(self, query: Query) -> F32:
        """All features (Q, D'), not standardised."""
        local = np.asarray(quaternion_to_matrix(query.rotations), np.float64)
        posed = joint_transforms(self.parents, self.joint_positions, query.rotations, query.root_translations)
        ends = (0, self.main_joint)
        lean = [np.swapaxes(posed[:, joint, :, :3], -1, -2) @ self.up for joint in ends]
        pose = np.concatenate([local[:, 1:, :, :2].reshape(len(local), -1), *lean], axis=-1)
        if not self.motion:
            return pose.astype(np.float32)
        past = np.stack([earlier(query, lag) for lag in LAGS])  # (L, Q)
        changes = np.einsum("cl,lqd->cqd", CHANGES, pose[past])
        motions = [_motion(posed[:, joint], self.joint_positions[joint], past) for joint in ends]
        return np.concatenate([pose, *changes, *motions], axis=-1).astype(np.float32)


def _motion(posed: F64, joint: F64, past: NDArray[np.intp]) -> F64:
    """Velocity, accelerations and turning (Q, 15) of a joint in its own frame, a tick as the unit of time.

    posed : (Q, 3, 4) from rest; joint : (3,) at rest; past : (L, Q) rows of each pose and of those before it
    """
    turns = posed[..., :3]
    place = turns @ joint + posed[..., 3]
    moves = np.matvec(np.swapaxes(turns, -1, -2), np.einsum("cl,lqa->cqa", CHANGES[:3], place[past]))
    between = np.swapaxes(turns[past[1]], -1, -2) @ turns
    skew = between - np.swapaxes(between, -1, -2)
    turn = np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=-1)
    return np.concatenate([*moves, turn, turn - turn[past[1]]], axis=-1)


def earlier(query: Query, ticks: int) -> NDArray[np.intp]:
    """Row (Q,) of the pose so many ticks ago, at least a frame each, held at the start of the clip."""
    frames = ticks * max(1, round(TICK * query.fps))
    return np.maximum(np.arange(len(query)) - frames, clip_bounds(query.clips)[0])
