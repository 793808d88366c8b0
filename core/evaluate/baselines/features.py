"""What a regression sees of a pose: its rotations, and on demand how they and the root move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...motion.timeline import clip_bounds
from ...rigging.skeleton.poses import joint_transforms
from ...rotations import quaternion_to_matrix
from ..subject import Query, Training

F32, F64 = NDArray[np.float32], NDArray[np.float64]
LAGS = (1 / 15, 3 / 15, 6 / 15)  # seconds ago that a pose is compared with
LEAST_SPREAD = 0.02  # of a feature, which is divided by its spread
STILL = 1e-3  # features that move less are left out


@dataclass(frozen=True)
class PoseFeatures:
    """Standardised features of poses; causal, blind to place and heading.

    A joint's local rotation is seen as the first two columns of its matrix (Zhou et al., "On the continuity
    of rotation representations in neural networks", 2019), the lean of the body as world up in the root's
    frame. With motion, the changes of these over `LAGS` and the root's turning, velocity and acceleration in
    its own frame are added: the information that the motion kernel has.
    """

    parents: NDArray[np.int32]
    joint_positions: F64
    up: F64
    motion: bool
    columns: NDArray[np.intp]
    means: F32
    scales: F32

    @staticmethod
    def of(learned: Training, motion: bool = False) -> PoseFeatures:
        """Features of what moves in the training frames, standardised on them."""
        base = learned.database
        rig = base.parents, base.joint_positions, base.up, motion
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
        up = np.swapaxes(local[:, 0], -1, -2) @ self.up
        pose = np.concatenate([local[:, 1:, :, :2].reshape(len(local), -1), up], axis=-1)
        if not self.motion:
            return pose.astype(np.float32)
        changes = [pose - pose[earlier(query, lag)] for lag in LAGS]
        return np.concatenate([pose, *changes, self._root_motion(query)], axis=-1).astype(np.float32)

    def _root_motion(self, query: Query) -> F64:
        """Turning about up, velocity and acceleration (Q, 8) of the root, a tick as the unit of time."""
        root = joint_transforms(
            self.parents[:1], self.joint_positions[:1], query.rotations[:, :1], query.root_translations
        )[:, 0]
        frame = root[..., :3]
        place = frame @ self.joint_positions[0] + root[..., 3]
        tick = earlier(query, LAGS[0])
        between = np.swapaxes(frame[tick], -1, -2) @ frame
        turn = np.stack([between[:, 2, 1], between[:, 0, 2], between[:, 1, 0]], axis=-1)
        turn = turn - np.stack([between[:, 1, 2], between[:, 2, 0], between[:, 0, 1]], axis=-1)
        yaw = np.einsum("qba,b,qa->q", frame, self.up, turn)[:, None]
        step = place - place[tick]
        own = np.swapaxes(frame, -1, -2)
        return np.concatenate(
            [yaw, yaw[tick], np.matvec(own, step), np.matvec(own, step - step[tick])], axis=-1
        )


def earlier(query: Query, seconds: float) -> NDArray[np.intp]:
    """Row (Q,) of the pose so long ago, at least one frame, held at the start of the clip."""
    frames = max(1, round(seconds * query.fps))
    return np.maximum(np.arange(len(query)) - frames, clip_bounds(query.clips)[0])
