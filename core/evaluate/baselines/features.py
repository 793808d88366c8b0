"""What a regression sees of a pose: its rotations, and on demand how they and the root move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...motion.keys import KeyLayout, key_groups, motion_keys, moving_layout
from ..subject import Query, Training

F32 = NDArray[np.float32]
LEAST_SPREAD = 0.02  # of a feature, which is divided by its spread
STILL = 1e-3  # features that move less are left out


@dataclass(frozen=True)
class PoseFeatures:
    """Standardised columns of the motion keys (`motion.keys`).

    A joint's local rotation is seen as the first two columns of its matrix (Zhou et al., "On the continuity
    of rotation representations in neural networks", 2019), heading not at all, the lean of the body as world
    up. With motion, the recent changes of these and the motion of root and main joint
    are added: what the kernel knows.
    """

    layout: KeyLayout
    columns: NDArray[np.intp]
    means: F32
    scales: F32

    @staticmethod
    def of(learned: Training, motion: bool = False) -> PoseFeatures:
        """Features of what moves in the training frames, standardised on them."""
        base = learned.database
        main_joint = int(np.bincount(base.bone_joints, base.masses, base.joint_count).argmax())
        layout = moving_layout(base.parents, base.joint_positions, main_joint, base.up, base.rotations)
        columns = _columns(layout, motion)
        raw = _keys(layout, learned.poses)[learned.rows][:, columns]
        spread = raw.std(axis=0)
        used = spread > STILL
        scales = 1 / np.maximum(spread[used], LEAST_SPREAD)
        return PoseFeatures(layout, columns[used], raw[:, used].mean(axis=0), scales)

    def __call__(self, query: Query) -> F32:
        """Features (Q, D) of every frame of a query."""
        return (_keys(self.layout, query)[:, self.columns] - self.means) * self.scales


def _keys(layout: KeyLayout, query: Query) -> F32:
    return motion_keys(layout, query.rotations, query.root_translations, query.times, query.clips)


def _columns(layout: KeyLayout, motion: bool) -> NDArray[np.intp]:
    """Columns of rotations and up in the pose and its changes, and those of root and main joint after."""
    turns = 9 * np.arange(len(layout.rotation_joints))[:, None] + [0, 1, 3, 4, 6, 7]
    up = layout.columns_per_pose - 3 + np.arange(3)
    pose = np.concatenate([turns.ravel(), up])
    if not motion:
        return pose
    groups, _, kinds = key_groups(layout)
    starts = layout.columns_per_pose * np.arange(int(kinds.max()))
    motions = np.flatnonzero(kinds[groups] == kinds.max())
    return np.concatenate([(starts[:, None] + pose).ravel(), motions])
