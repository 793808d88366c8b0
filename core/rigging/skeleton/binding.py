"""Which joint carries which outer bone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .lbs_statistics import LbsStatistics
from .tree import KinematicTree

F64 = NDArray[np.float64]


def bone_affinity(
    node_weights: F64, node_masses: F64, node_joints: NDArray[np.integer], joint_count: int
) -> F64:
    """Share (B, J) of each outer bone's points that lies on the segments each joint moves; rows sum to 1.

    node_weights : (M, B) mean bone weights of the points each curve node owns; node_masses : (M,) how many;
    node_joints : (M,) joint that moves the node. A bone without points is given to the root (joint 0).
    """
    shares = node_weights * node_masses[:, None]
    affinity = np.zeros((node_weights.shape[1], joint_count))
    np.add.at(affinity.T, node_joints, shares)
    totals = affinity.sum(axis=1, keepdims=True)
    affinity[totals[:, 0] <= 0, 0] = 1
    return affinity / np.where(totals > 0, totals, 1)


def merge_affinity(affinity: F64, renumber: NDArray[np.integer]) -> F64:
    """Sum the columns of an affinity (B, J) as joints get new indices (J,)."""
    merged = np.zeros((len(affinity), renumber.max() + 1))
    np.add.at(merged.T, renumber, affinity.T)
    return merged


def nearby_joints(tree: KinematicTree, affinity: F64, leaves: bool = False) -> NDArray[np.bool_]:
    """(B, J) joints a bone may be bound to: those it has a share in, and the neighbours of its largest.

    Never an end effector, which moves nothing, unless `leaves` says that joints without children turn too.
    """
    near = tree.hops() <= 1
    carriers = (tree.child_counts > 0) | leaves
    carriers[0] = True
    return ((affinity > 0.02) | near[affinity.argmax(axis=1)]) & carriers


def rebind(
    stats: LbsStatistics,
    joint_transforms: F64,
    bone_joints: NDArray[np.integer],
    allowed: NDArray[np.bool_],
    sweeps: int = 2,
    least_gain: float | F64 = 0.0,
) -> NDArray[np.int32]:
    """Give each bone the joint that lowers the replay's error most (iterated conditional modes, Besag 1986).

    Parameters
    ----------
    joint_transforms : (F, J, 3, 4) rest -> posed, in the statistics' units
    bone_joints : (B,) present binding
    allowed : (B, J) joints to choose from
    least_gain : (B,) or one, what a change must save of the squared error, in the statistics' units

    Returns
    -------
    (B,) binding whose squared error is not above that of the one given.
    """
    bones = stats.bone_count
    binding = np.array(bone_joints, dtype=np.int32)
    gram = stats.gram.reshape(bones, 4, 4 * bones)
    flat = np.moveaxis(joint_transforms[:, binding], 1, 2).reshape(len(joint_transforms), 3, -1)
    residual = flat @ stats.gram - stats.cross  # (F, 3, 4B)
    own = stats.gram.reshape(bones, 4, bones, 4)
    least = np.broadcast_to(np.maximum(least_gain, 1e-12 * max(stats.energy.sum(), 1e-300)), bones)
    for _ in range(sweeps):
        changed = False
        for bone in range(bones):
            choices = np.flatnonzero(allowed[bone])
            change = joint_transforms[:, choices] - joint_transforms[:, binding[bone], None]  # (F, C, 3, 4)
            linear = residual[:, :, 4 * bone : 4 * bone + 4]
            cost = np.einsum("fcai,fcai->c", change @ own[bone, :, bone] + 2 * linear[:, None], change)
            best = int(np.argmin(cost))
            if cost[best] < -least[bone]:
                residual += change[:, best] @ gram[bone]
                binding[bone] = choices[best]
                changed = True
        if not changed:
            break
    return binding
