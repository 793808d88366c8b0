"""Joint positions from motion: the centres of rotation between what a joint carries and what it hangs on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .kinematics import Poses
from .lbs_statistics import LbsStatistics
from .tree import KinematicTree

F64 = NDArray[np.float64]
HINGE_PRIOR = 2e-3  # weight of the anchors against the motion: a joint that turns under some 3 degrees stays


def place_joints(
    stats: LbsStatistics, tree: KinematicTree, bone_joints: NDArray[np.integer], poses: Poses, anchors: F64
) -> F64:
    """Joint positions (J, 3) that suit the rotations best, held by anchors where the motion does not tell.

    The skinned point is linear in the joints: joint j moves what hangs below it by ``(Rg_parent - Rg_j)
    J_j``. The root (whose place does not matter to the motion) stays.
    """
    joints, bones = len(tree), stats.bone_count
    if joints == 1:
        return tree.positions.copy()
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
    solved = np.linalg.solve(normal + np.diag(hold), right + hold * anchors[1:].ravel()).reshape(-1, 3)
    return np.concatenate([tree.positions[:1], solved])
