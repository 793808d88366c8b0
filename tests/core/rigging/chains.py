"""Articulated chains whose bones and weights are known."""

import numpy as np
from scipy.spatial.transform import Rotation


def chain(points=1000, bones=5, frames=40, seed=3):
    """Points (N, 3) along the x axis, bone b carrying b..b + 1, and its motions (F, B, 3, 4)."""
    rng = np.random.default_rng(seed)
    rest = np.c_[rng.uniform(0, bones, points), rng.normal(size=(points, 2)) * 0.25]
    phase = 2 * np.pi * np.arange(frames) / frames
    poses = np.tile(np.eye(4), (frames, bones, 1, 1))
    for b in range(bones):
        axis, shift, speed = rng.normal(size=3), rng.uniform(0, 6), rng.integers(1, 4)
        angle = 0.8 * (np.sin(speed * phase + shift) - np.sin(shift))
        local = np.tile(np.eye(4), (frames, 1, 1))
        local[:, :3, :3] = Rotation.from_rotvec(angle[:, None] * axis / np.linalg.norm(axis)).as_matrix()
        pivot = np.array([b, 0.0, 0.0])
        local[:, :3, 3] = pivot - local[:, :3, :3] @ pivot
        poses[:, b] = local if b == 0 else poses[:, b - 1] @ local
    poses[:, :, 1, 3] += 0.3 * np.sin(phase)[:, None]
    return rest, poses[:, :, :3]


def parts(rest, bones):
    """Bone (N,) that each point belongs to where parts are rigid."""
    return np.minimum(rest[:, 0].astype(int), bones - 1)


def smooth_weights(rest, bones):
    """Weights (N, B) that blend from each bone to the next."""
    weights = np.maximum(1 - np.abs(rest[:, :1] - (np.arange(bones) + 0.5)), 0)
    weights /= weights.sum(1, keepdims=True)
    weights[weights < 1e-3] = 0
    return weights / weights.sum(1, keepdims=True)


def skin(rest, weights, poses):
    """Frames (F, N, 3) by linear blend skinning, written plainly."""
    out = np.zeros((len(poses), len(rest), 3))
    for f, pose in enumerate(poses):
        for b, motion in enumerate(pose):
            out[f] += weights[:, b, None] * (rest @ motion[:, :3].T + motion[:, 3])
    return out


def diagonal(rest):
    """Length of the box diagonal."""
    return float(np.linalg.norm(np.ptp(rest, axis=0)))


def rms(distance):
    """Root mean square length of vectors (..., 3)."""
    return float(np.sqrt((distance**2).sum(-1).mean()))
