"""Body parts of a skeleton that are matched on their own, and how much each bone listens to each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Parts = tuple[NDArray[np.int32], ...]
SOFTNESS = 0.5
_LEAST_WEIGHT = 0.05


def skeleton_parts(
    parents: NDArray[np.integer], affinity: NDArray[np.floating], softness: float = SOFTNESS
) -> tuple[Parts, NDArray[np.int32], NDArray[np.float32]]:
    """Split a skeleton into overlapping parts: a joint that has children, its parent and those children.

    The root (joint 0) leads a part too but is in no part's key: its rotation is the heading, which must not
    matter.

    Parameters
    ----------
    parents : (J,) parents before children, -1 for the root (joint 0)
    affinity : (B, J) share of each outer bone that each joint carries, rows sum to 1
    softness : weight, 0..1, of a part for the bones of the neighbours of its leader, against 1 for those of
        the leader itself; 0: each bone listens to its own joint's part alone

    Returns
    -------
    parts : P arrays of joint indices
    leaders : (P,) int32, the joint each part is about
    bone_parts : (P, B) float32, weight of each part for each bone, columns sum to 1

    Parts that no bone listens to are left out.
    """
    parents = np.asarray(parents)
    joints = np.arange(len(parents))
    leaders = np.flatnonzero(np.isin(joints, parents) | (joints == 0))
    near = np.where((parents == leaders[:, None]) | (joints == parents[leaders, None]), softness, 0.0)
    leaf = ~np.isin(joints, leaders)
    near[(parents == leaders[:, None]) & leaf] = max(softness, _LEAST_WEIGHT)  # no other part has it
    near[np.arange(len(leaders)), leaders] = 1
    member = (parents == leaders[:, None]) | (joints == parents[leaders, None]) | (joints == leaders[:, None])
    weights = near @ np.asarray(affinity, np.float64).T
    for least in (_LEAST_WEIGHT, 0.0):
        total = weights.sum(axis=0)
        weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
        weights[weights < least] = 0
    weights[0, weights.sum(axis=0) == 0] = 1
    used = weights.any(axis=1)
    parts = tuple(np.flatnonzero(row[1:]).astype(np.int32) + 1 for row in member[used])
    return parts, leaders[used].astype(np.int32), weights[used].astype(np.float32)


def whole_body(joint_count: int, bone_count: int) -> tuple[Parts, NDArray[np.int32], NDArray[np.float32]]:
    """One part of all joints but the root, for every bone: whole-body matching."""
    return (
        (np.arange(1, joint_count, dtype=np.int32),),
        np.zeros(1, np.int32),
        np.ones((1, bone_count), np.float32),
    )
