"""Forward kinematics.

Conventions: joint frames are axis-aligned at rest, rotations local, ``Rg_j = Rg_parent R_j`` and
``x_j = x_parent + Rg_parent (J_j - J_parent)``; the joint's skinning transform is
``S_j = [Rg_j | x_j - Rg_j J_j]``, the identity at rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...rotations import continuous_quaternions, matrix_to_quaternion, quaternion_to_matrix
from .tree import KinematicTree

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Poses:
    """F poses of J joints in the normalised units of `LbsStatistics`.

    rotations : (F, J, 3, 3) *global* rotations; offsets : (F, 3) posed root joint
    """

    rotations: F64
    offsets: F64


def joint_transforms(
    tree_parents: NDArray[np.integer], positions: F64, rotations: F64, root_translations: F64
) -> F64:
    """Forward kinematics: skinning transforms of all joints.

    Parameters
    ----------
    tree_parents : (J,) parents before children, -1 for the root
    positions : (J, 3) rest positions
    rotations : (..., J, 4) local quaternions wxyz, identity at rest
    root_translations : (..., 3) displacement of the root joint from its rest position

    Returns
    -------
    (..., J, 3, 4) float64, rest -> posed. Exactly the identity where rotations are and the translation is
    zero.
    """
    local = quaternion_to_matrix(np.asarray(rotations, dtype=np.float64))
    posed = np.empty((*local.shape[:-1], 4))
    for j, parent in enumerate(tree_parents):
        if parent < 0:
            posed[..., j, :, :3] = local[..., j, :, :]
            pivot = positions[j] + root_translations
        else:
            posed[..., j, :, :3] = posed[..., parent, :, :3] @ local[..., j, :, :]
            pivot = posed[..., parent, :, :3] @ positions[j] + posed[..., parent, :, 3]
        posed[..., j, :, 3] = pivot - posed[..., j, :, :3] @ positions[j]
    return posed


def local_quaternions(tree: KinematicTree, rotations: F64) -> F64:
    """Local quaternions (F, J, 4), without sign flips in time, of global rotations (F, J, 3, 3)."""
    local = rotations.copy()
    child = np.flatnonzero(tree.parents >= 0)
    local[:, child] = np.swapaxes(rotations[:, tree.parents[child]], -1, -2) @ rotations[:, child]
    return np.asarray(continuous_quaternions(matrix_to_quaternion(local)), np.float64)


def skinning_transforms(tree: KinematicTree, poses: Poses) -> F64:
    """(F, J, 3, 4) rest -> posed transforms of the joints, in the statistics' units."""
    transforms = np.empty((*poses.rotations.shape[:3], 4))
    transforms[..., :3] = poses.rotations
    for j, parent in enumerate(tree.parents):
        if parent < 0:
            pivot = poses.offsets
        else:
            pivot = transforms[:, parent, :, :3] @ tree.positions[j] + transforms[:, parent, :, 3]
        transforms[:, j, :, 3] = pivot - poses.rotations[:, j] @ tree.positions[j]
    return transforms
