"""Small captures with a known answer."""

from __future__ import annotations

import numpy as np

from gaussianimate.core.capture import Capture
from gaussianimate.core.rigging.skeleton.kinematics import joint_transforms
from gaussianimate.core.rotations import axis_angle_to_quaternion


def capture(frames: np.ndarray, faces: np.ndarray | None = None, name: str = "synthetic") -> Capture:
    """A capture of positions (F, N, 3), all frames valid unless they hold NaN."""
    valid = np.isfinite(frames).all(axis=(1, 2))
    return Capture(name, frames.astype(np.float32), valid, faces=faces, fps=24.0)


def tube(length: float = 4.0, radius: float = 0.25, rings: int = 81, sides: int = 16) -> np.ndarray:
    """Points (N, 3) of a tube along x with closed ends."""
    turn = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    along = np.linspace(0, length, rings)
    x, angle = (grid.ravel() for grid in np.meshgrid(along, turn, indexing="ij"))
    wall = np.stack([x, radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    caps = [
        np.stack([np.full(sides, end), r * np.cos(turn), r * np.sin(turn)], axis=1)
        for end in (0, length)
        for r in (0.33 * radius, 0.67 * radius)
    ]
    return np.concatenate([wall, *caps])


def bend(count: int, joints: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Smooth random local rotations (F, J, 4) and root translations (F, 3), the rest pose first."""
    rng = np.random.default_rng(seed)
    time = np.linspace(0, 2 * np.pi, count)
    axes = rng.normal(size=(joints, 3))
    speed = rng.uniform(0.5, 1.5, joints)
    angles = 0.9 * np.sin(time[:, None] * speed)
    rotations = axis_angle_to_quaternion(np.broadcast_to(axes, (count, joints, 3)), angles)
    moves = np.stack([0.3 * np.sin(time), 0.2 * time, 0 * time], axis=1)
    return rotations, moves


def chain(parts: int, count: int = 40, blend: float = 0.15, seed: int = 0) -> dict[str, np.ndarray]:
    """A tube of `parts` equal segments, bent at the joints between them by linear blend skinning.

    Returns rest (N, 3), frames (F, N, 3), indices, weights (N, 2), transforms (F, parts, 3, 4), joints
    (parts, 3) (the first one the root at the tube's start).
    """
    length = 4.0
    rest = tube(length)
    joints = np.stack([np.arange(parts) * length / parts, np.zeros(parts), np.zeros(parts)], axis=1)
    rotations, moves = bend(count, parts, seed)
    rotations[0], moves[0] = [1, 0, 0, 0], 0
    transforms = joint_transforms(np.arange(parts) - 1, joints, rotations, moves)
    place = rest[:, 0] * parts / length
    nearest = np.clip(np.round(place).astype(int), 1, parts - 1) if parts > 1 else np.ones(len(rest), int)
    share = np.clip(0.5 + (place - nearest) / (2 * blend), 0, 1)
    indices = np.stack([nearest - 1, np.minimum(nearest, parts - 1)], axis=1)
    weights = np.stack([1 - share, share], axis=1)
    order = np.argsort(-weights, axis=1)
    indices, weights = np.take_along_axis(indices, order, 1), np.take_along_axis(weights, order, 1)
    blended = np.einsum("nk,fnkab->fnab", weights, transforms[:, indices])
    frames = np.einsum("fnab,nb->fna", blended[..., :3], rest) + blended[..., 3]
    return {
        "rest": rest,
        "frames": frames,
        "indices": indices.astype(np.int32),
        "weights": weights,
        "transforms": transforms,
        "joints": joints,
        "rotations": rotations,
        "moves": moves,
    }


def straight_curve(rest: np.ndarray, nodes: int = 51, length: float = 4.0):
    """The curve skeleton of `tube`: its axis."""
    from gaussianimate.core.rigging.curves.curve import CurveSkeleton

    x = np.linspace(0, length, nodes)
    places = np.stack([x, 0 * x, 0 * x], axis=1)
    owners = np.abs(rest[:, 0][:, None] - x).argmin(axis=1).astype(np.int32)
    edges = np.stack([np.arange(nodes - 1), np.arange(1, nodes)], axis=1).astype(np.int32)
    return CurveSkeleton(places, edges, owners, np.full(nodes, 0.25))
