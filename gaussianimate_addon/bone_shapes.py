"""Where the bones of a rig's armature lie: tails, rolls and the small skin bones. No Blender needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.rigging.rig import Rig

F64 = NDArray[np.float64]
SHORTEST = 0.004  # of the box diagonal; Blender deletes bones of no length
SKIN_LENGTH = 0.015
STUB = 0.3  # length of a bone without children and without points, of its parent's


@dataclass(frozen=True)
class BoneShape:
    """tail : (3,); z_axis : (3,) direction of local Z (the roll); connected : head is the parent's tail."""

    tail: F64
    z_axis: F64
    connected: bool


def skeleton_shapes(rig: Rig) -> list[BoneShape]:
    """Return the shape of the bone of every joint."""
    main, shortest = main_children(rig), SHORTEST * _diagonal(rig)
    heads, tails = rig.joint_positions, _tails(rig, main, shortest)
    hinges = _hinge_axes(rig)
    x_axes = np.zeros_like(heads)
    shapes = []
    for j, parent in enumerate(rig.joint_parents):
        along = tails[j] - heads[j]
        along /= np.linalg.norm(along)
        x_axes[j] = _x_axis(along, hinges[j], x_axes[parent] if parent >= 0 else None)
        connected = bool(parent >= 0 and main[parent] == j and np.array_equal(tails[parent], heads[j]))
        shapes.append(BoneShape(tails[j], np.cross(x_axes[j], along), connected))
    return shapes


def skin_shapes(rig: Rig) -> list[tuple[F64, F64]]:
    """Return (head, tail) of every outer bone: amid its points, along its joint's bone."""
    main, diagonal = main_children(rig), _diagonal(rig)
    tails = _tails(rig, main, SHORTEST * diagonal)
    along = tails - rig.joint_positions
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    centres = bone_centres(rig)
    return [
        (centres[b], centres[b] + SKIN_LENGTH * diagonal * along[j]) for b, j in enumerate(rig.bone_joints)
    ]


def main_children(rig: Rig) -> NDArray[np.int64]:
    """Return for every joint the child that its bone points to, -1 for leaves: the longest branch."""
    count = len(rig.joint_parents)
    reach, main = np.zeros(count), np.full(count, -1)
    for j in range(count - 1, 0, -1):
        parent = rig.joint_parents[j]
        if parent < 0:
            continue
        length = reach[j] + np.linalg.norm(rig.joint_positions[j] - rig.joint_positions[parent])
        if main[parent] < 0 or length > reach[parent]:
            reach[parent], main[parent] = length, j
    return main


def _tails(rig: Rig, main: NDArray[np.int64], shortest: float) -> F64:
    heads, centres = rig.joint_positions, bone_centres(rig)
    tails = heads.copy()
    for j, parent in enumerate(rig.joint_parents):
        before = tails[parent] - heads[parent] if parent >= 0 else np.array([0.0, 0.0, 1.0])
        if main[j] >= 0:
            along = heads[main[j]] - heads[j]
        elif (rig.bone_joints == j).any():
            along = 2 * (centres[rig.bone_joints == j].mean(axis=0) - heads[j])
        else:
            along = STUB * before
        if np.linalg.norm(along) < shortest:
            along = before / np.linalg.norm(before) * shortest * 2
        tails[j] = heads[j] + along
    return tails


def bone_centres(rig: Rig) -> F64:
    """Return the weighted centre (B, 3) of each outer bone's points; its joint where it has none."""
    count = len(rig.bone_joints)
    mass = np.bincount(rig.indices.ravel(), rig.weights.ravel(), count)[:count]
    sums = np.stack(
        [
            np.bincount(rig.indices.ravel(), (rig.weights * rig.rest[:, axis, None]).ravel(), count)[:count]
            for axis in range(3)
        ],
        axis=1,
    )
    empty = mass <= 1e-9
    return np.where(
        empty[:, None], rig.joint_positions[rig.bone_joints], sums / np.where(empty, 1, mass)[:, None]
    )


def _hinge_axes(rig: Rig) -> list[F64 | None]:
    """Return for every joint the axis it mostly turns about (rest axes), None where it has no clear one.

    The principal axis of the rotation vectors sin(angle / 2) * axis over the frames.
    """
    vectors = rig.joint_rotations[..., 1:] * np.sign(rig.joint_rotations[..., :1] + 1e-30)
    axes: list[F64 | None] = []
    for j in range(vectors.shape[1]):
        spread, directions = np.linalg.eigh(vectors[:, j].T @ vectors[:, j] / max(len(vectors), 1))
        clear = spread[2] > 2 * spread[1] and spread[2] > np.sin(np.radians(5) / 2) ** 2
        axes.append(directions[:, 2] if clear else None)
    return axes


def _x_axis(along: F64, hinge: F64 | None, parent: F64 | None) -> F64:
    """Return local X: the hinge if it is across the bone, else the parent's X carried over, else any."""
    candidates = [parent, np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])]
    if hinge is not None and abs(hinge @ along) < 0.7:
        reference = parent if parent is not None else candidates[1]
        candidates.insert(0, hinge if hinge @ reference >= 0 else -hinge)
    for axis in candidates:
        if axis is None:
            continue
        across = axis - (axis @ along) * along
        if np.linalg.norm(across) > 0.2:
            return across / np.linalg.norm(across)
    raise AssertionError("two perpendicular axes cannot both lie along the bone")


def _diagonal(rig: Rig) -> float:
    return float(np.linalg.norm(np.ptp(rig.rest, axis=0))) or 1.0
