"""Motions of the puppet whose outer bones sway: residuals depend on pose, joint velocity and root motion."""

from dataclasses import replace

import numpy as np

from gaussianimate.core.motion.database import Residuals, bone_transforms, build_database
from gaussianimate.core.motion.so3 import quaternion_exp, quaternion_log
from gaussianimate.core.rotations import quaternion_multiply, quaternion_to_matrix

FPS = 24.0
_random = np.random.default_rng(11)
_TURN = 0.25 * _random.normal(size=(11, 3, 3))
_SHIFT = 0.06 * _random.normal(size=(11, 3, 3))
_SWAY = 0.03 * _random.normal(size=(11, 3, 3))


def motion(seed, frames=60, fps=FPS):
    """Smooth random poses (F, 7, 4) and root translations (F, 3), of all joints at once."""
    random = np.random.default_rng(seed)
    time = np.arange(frames)[:, None, None] / fps
    speed, phase = random.uniform(1.0, 5.0, (2, 7, 3)), random.uniform(0, 2 * np.pi, (2, 7, 3))
    size = 0.35 * random.normal(size=(2, 7, 3))
    vectors = (size[:, None] * np.sin(speed[:, None] * time + phase[:, None])).sum(axis=0)
    root = 0.4 * np.sin(speed[0, 0] * time[:, 0] + phase[0, 0])
    return quaternion_exp(vectors), root


def residuals(puppet, rotations, root_translations, fps=FPS):
    """The bones' residuals: smooth in the pose of their joint, its velocity, and the root's in its frame."""
    vectors = quaternion_log(rotations)[:, puppet.CARRIERS]
    speed = np.diff(vectors, axis=0, prepend=vectors[:1]) * fps
    turns = quaternion_exp(np.einsum("bij,fbj->fbi", _TURN, np.sin(vectors)))
    offsets = np.einsum("bij,fbj->fbi", _SHIFT, np.sin(2 * vectors))
    offsets += np.einsum("bij,fbj->fbi", _SWAY, np.tanh(speed))
    return Residuals(turns, offsets)


def database(puppet, seeds, **options):
    """Database of one clip a seed."""
    motions = [motion(seed, **options) for seed in seeds]
    rotations, roots = (np.concatenate(rows) for rows in zip(*motions, strict=True))
    clips = np.repeat(np.arange(len(motions)), [len(m[0]) for m in motions])
    values = [residuals(puppet, *m) for m in motions]
    values = Residuals(
        np.concatenate([v.rotations for v in values]), np.concatenate([v.offsets for v in values])
    )
    base = build_database(puppet.rig(rotations, roots), clips)
    return replace(
        base,
        residual_rotations=values.rotations.astype(np.float32),
        residual_offsets=values.offsets.astype(np.float32),
    )


def error(puppet, base, found, rotations, root_translations):
    """Root mean square point distance of residuals from the truth, in diagonals of the rest pose."""
    true = residuals(puppet, rotations, root_translations)
    pose = rotations, root_translations
    return puppet.error(bone_transforms(base, found, *pose), bone_transforms(base, true, *pose))


def turned(rotations, root_translations, turn, root_rest):
    """The same motion in a world turned by a quaternion (4,) about the origin."""
    rotations = rotations.copy()
    rotations[:, 0] = quaternion_multiply(turn, rotations[:, 0])
    moved = (root_translations + root_rest) @ quaternion_to_matrix(turn).T - root_rest
    return rotations, moved
