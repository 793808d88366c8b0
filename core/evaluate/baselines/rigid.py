"""What a skeleton alone can do: linear blend skinning on its joints, and a bag of rigid bones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...motion.database import Residuals
from ...motion.values import ValueSpace
from ...progress import Progress, no_progress
from ...rigging.decomposition.ssdr import fit_weights
from ...rigging.rig import Rig
from ...rigging.skeleton.kinematics import joint_transforms
from ...rotations import affine_inverse, affine_multiply, quaternion_to_matrix
from ..fitted import Fitted
from ..subject import Query, Training

F64 = NDArray[np.float64]
WEIGHT_FRAMES = 300
INFLUENCES = 4


def fit_lbs(learned: Training, progress: Progress = no_progress) -> Fitted:
    """Skin the points to the joints themselves: convex weights of least squares over training frames.

    At most 4 joints a point, each support solved exactly (as in Le & Deng 2012, 4.1); at most
    `WEIGHT_FRAMES` frames, evenly spaced.
    """
    rig = learned.rig
    rows = _spread(rig.frame_count, WEIGHT_FRAMES)
    joints = _joints(rig, rig.joint_rotations[rows], rig.root_translations[rows])
    indices, weights = fit_weights(rig.rest, learned.positions[rows], joints, INFLUENCES, progress=progress)
    size = indices.nbytes + weights.nbytes // 2  # weights as float32
    return Fitted(indices, weights, lambda q: _joints(rig, q.rotations, q.root_translations), size)


def fit_bag_of_bones(learned: Training) -> Fitted:
    """Fix every outer bone to the joint in whose frame it moves least over the training frames.

    "Least" by the variance of its points; it rests where it is there on average.
    """
    rig = learned.rig
    joints, means = steadiest_joints(rig, learned.space, learned.database.pivots)

    def transforms(query: Query) -> F64:
        carriers = _joints(rig, query.rotations, query.root_translations)[:, joints]
        return np.asarray(affine_multiply(carriers, means), np.float64)

    return Fitted(rig.indices, rig.weights, transforms, joints.nbytes + means.nbytes // 2)


def steadiest_joints(rig: Rig, space: ValueSpace, pivots: F64) -> tuple[NDArray[np.intp], F64]:
    """Joint (B,) each outer bone is steadiest on, and its mean transform (B, 3, 4) there.

    The joint is chosen over at most `WEIGHT_FRAMES` frames, evenly spaced.
    """
    rows = _spread(rig.frame_count, WEIGHT_FRAMES)
    posed = affine_inverse(_joints(rig, rig.joint_rotations, rig.root_translations))
    variances = [
        _values(affine_multiply(posed[rows, joint, None], rig.bone_transforms[rows]), space, pivots)
        .var(axis=0)
        .sum(axis=-1)
        for joint in range(rig.joint_count)
    ]
    best = np.argmin(variances, axis=0)
    values = _values(affine_multiply(posed[:, best], rig.bone_transforms), space, pivots)
    return best, _about(space.project(values.mean(axis=0).reshape(1, -1)), pivots)


def _values(local: NDArray[np.floating], space: ValueSpace, pivots: F64) -> F64:
    """Values (F, B, 12) of transforms (F, B, 3, 4): their distance is that of the bones' points."""
    turned = local[..., :3] @ space.roots
    moved = (np.einsum("fbij,bj->fbi", local[..., :3], pivots) + local[..., 3]) * space.masses[:, None]
    return np.concatenate([turned, moved[..., None]], axis=-1).reshape(*local.shape[:2], 12)


def _about(placed: Residuals, pivots: F64) -> F64:
    """Transforms (B, 3, 4) that turn about the pivots and take them to `placed.offsets`."""
    turn = np.asarray(quaternion_to_matrix(placed.rotations[0]), np.float64)
    shift = placed.offsets[0] - np.einsum("bij,bj->bi", turn, pivots)
    return np.concatenate([turn, shift[..., None]], axis=-1)


def _joints(rig: Rig, rotations: F64, root_translations: F64) -> F64:
    return joint_transforms(rig.joint_parents, rig.joint_positions, rotations, root_translations)


def _spread(count: int, most: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))
