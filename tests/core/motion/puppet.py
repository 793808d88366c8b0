"""A body of seven joints with two arms; each bone's residual depends on the rotation of its own joint."""

import numpy as np

from gaussianimate.core.motion.database import build_database
from gaussianimate.core.motion.so3 import quaternion_exp, quaternion_log
from gaussianimate.core.rigging.rig import Rig
from gaussianimate.core.rigging.skeleton.kinematics import joint_transforms
from gaussianimate.core.rotations import affine_multiply, quaternion_to_matrix

PARENTS = np.array([-1, 0, 1, 2, 1, 4, 1], np.int32)
JOINTS = np.array(
    [[0, 0, 0], [0, 1, 0], [0.5, 1, 0], [1.5, 1, 0], [-0.5, 1, 0], [-1.5, 1, 0], [0, 1.8, 0]], float
)
CARRIERS = np.array([0, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6], np.int32)
LIMBS = ([2, 3], [4, 5], [6, 1])
POINTS = 20  # a bone
_random = np.random.default_rng(6)
PIVOTS = JOINTS[CARRIERS] + 0.3 * _random.normal(size=(len(CARRIERS), 3))
_CLOUD = 0.2 * _random.normal(size=(len(CARRIERS), POINTS, 3))
REST = (PIVOTS[:, None] + _CLOUD - _CLOUD.mean(axis=1, keepdims=True)).reshape(-1, 3).astype(np.float32)
DIAGONAL = float(np.linalg.norm(np.ptp(REST, axis=0)))
_TURN = 0.25 * _random.normal(size=(len(CARRIERS), 3, 3))
_SHIFT = 0.08 * _random.normal(size=(len(CARRIERS), 3, 3))


def clip(joints, frames=80, phase=0.0, amplitude=0.9):
    """Local rotations (F, 7, 4) in which some joints swing once, and root translations (F, 3)."""
    time = 2 * np.pi * np.arange(frames) / frames + phase
    rotations = np.zeros((frames, len(PARENTS), 4))
    rotations[..., 0] = 1
    for number, joint in enumerate(joints):
        swing = [0.4 * np.sin(time + number), 0 * time, np.sin(time + 0.7 * number)]
        rotations[:, joint] = quaternion_exp(amplitude * np.stack(swing, axis=1))
    return rotations, np.stack([0.3 * np.sin(time), 0 * time, 0 * time], axis=1)


def truth(rotations, root_translations):
    """The outer bones' transforms (F, B, 3, 4) in poses."""
    vectors = quaternion_log(rotations)[:, CARRIERS]
    turn = quaternion_to_matrix(quaternion_exp(np.einsum("bij,fbj->fbi", _TURN, vectors)))
    shift = np.einsum("bij,fbj->fbi", _SHIFT, np.sin(vectors)) + PIVOTS
    local = np.concatenate([turn, (shift - np.einsum("fbij,bj->fbi", turn, PIVOTS))[..., None]], axis=-1)
    joints = joint_transforms(PARENTS, JOINTS, rotations, root_translations)
    return affine_multiply(joints[:, CARRIERS], local)


def rig(rotations, root_translations, transforms=None, frames=None):
    """The rig of a capture of the puppet."""
    bones = len(CARRIERS)
    return Rig(
        rest=REST,
        indices=np.repeat(np.arange(bones), POINTS)[:, None].astype(np.int32),
        weights=np.ones((bones * POINTS, 1), np.float32),
        bone_transforms=truth(rotations, root_translations) if transforms is None else transforms,
        joint_names=tuple(f"joint {j}" for j in range(len(PARENTS))),
        joint_parents=PARENTS,
        joint_positions=JOINTS,
        bone_joints=CARRIERS,
        joint_rotations=rotations,
        root_translations=root_translations,
        frames=np.arange(len(rotations), dtype=np.int32) if frames is None else np.asarray(frames, np.int32),
        fps=24.0,
        canonical_frame=0,
    )


def database(motions, **options):
    """The motion database of clips ((F, 7, 4), (F, 3))."""
    rotations, roots = (np.concatenate(rows) for rows in zip(*motions, strict=True))
    clips = np.repeat(np.arange(len(motions)), [len(motion[0]) for motion in motions])
    return build_database(rig(rotations, roots), clips, **options)


def error(transforms, expected):
    """Root mean square point distance of two sets of bone transforms, in diagonals of the rest pose."""
    points = REST.reshape(len(CARRIERS), POINTS, 3).astype(float)
    apart = transforms - expected
    moved = np.einsum("fbij,bnj->fbni", apart[..., :3], points) + apart[:, :, None, :, 3]
    return float(np.sqrt((moved**2).sum(axis=-1).mean())) / DIAGONAL
