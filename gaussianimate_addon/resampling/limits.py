"""How far each bone may turn: its limits, else what its motion uses, else an angle to both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import bpy
import numpy as np
from mathutils import Euler, Matrix, Quaternion
from numpy.typing import NDArray

from ..action import bone_path
from ..armature import JOINT, SKIN_BONE
from ..motion_switch import REPLAY

Axis = Literal["X", "Y", "Z"]
AXES: tuple[Axis, ...] = ("X", "Y", "Z")
SMALLEST = 1e-3  # radians, below which a turn bends nothing
SAMPLES = 200  # frames at most at which a motion is looked at
Range = tuple[float, float]


@dataclass(frozen=True)
class Turn:
    """One end of a bone's range: an angle, radians, about one of its own axes ("X", "Y" or "Z")."""

    bone: str
    axis: Axis
    angle: float


def turns_of(armature: bpy.types.Object, angle: float) -> list[Turn]:
    """Return both ends of every range of the bones that splats follow.

    Parameters
    ----------
    angle : range to both sides, radians, where neither limits nor a motion tell one
    """
    turns: list[Turn] = []
    motions = _Motions(armature)
    for bone in carrying_bones(armature):
        used, locks = motions.ranges(bone), list(cast(Any, bone.lock_rotation))
        for number, axis in enumerate(AXES):
            if locks[number]:
                continue
            given = constrained(bone, number) or (used[number] if used is not None else (-angle, angle))
            turns += [Turn(bone.name, axis, end) for end in given if abs(end) > SMALLEST]
    return turns


def carrying_bones(armature: bpy.types.Object) -> list[bpy.types.PoseBone]:
    """Return the bones that an animator turns and that splats follow, at once or by bones below.

    Skin bones of a learned rig, which answer the skeleton, are not turned by hand.
    """
    data = cast(bpy.types.Armature, armature.data)
    learned = any(JOINT in bone for bone in data.bones)
    carrying = set()
    for bone in data.bones:
        if SKIN_BONE in bone:
            above = [each.name for each in bone.parent_recursive]
            carrying.update(above if learned and JOINT not in bone else [bone.name, *above])
    return [bone for bone in armature.pose.bones if bone.name in carrying]


def constrained(bone: bpy.types.PoseBone, axis: int) -> Range | None:
    """Return the range about an axis (0-2) that constraints in local space or IK limits allow."""
    name = "xyz"[axis]
    constraint: Any
    for constraint in bone.constraints:
        if constraint.type != "LIMIT_ROTATION" or constraint.mute or constraint.owner_space != "LOCAL":
            continue
        if getattr(constraint, f"use_limit_{name}"):
            return getattr(constraint, f"min_{name}"), getattr(constraint, f"max_{name}")
    if getattr(bone, f"lock_ik_{name}"):
        return 0.0, 0.0
    if getattr(bone, f"use_ik_limit_{name}"):
        return getattr(bone, f"ik_min_{name}"), getattr(bone, f"ik_max_{name}")
    return None


class _Motions:
    """The rotation curves of the actions an armature plays and replays, by data path."""

    def __init__(self, armature: bpy.types.Object) -> None:
        playing = armature.animation_data.action if armature.animation_data else None
        self._curves: list[dict[str, dict[int, bpy.types.FCurve]]] = []
        self._frames: list[NDArray[np.float64]] = []
        for action in dict.fromkeys(filter(None, (playing, armature.get(REPLAY)))):
            first, last = action.frame_range
            self._frames.append(np.linspace(first, last, min(int(last - first) + 1, SAMPLES)))
            self._curves.append(_rotation_curves(action))

    def ranges(self, bone: bpy.types.PoseBone) -> list[Range] | None:
        """Return the range of the rotation vector along each axis, radians; None where it is not keyed."""
        found = []
        for curves, frames in zip(self._curves, self._frames, strict=True):
            vectors = _rotation_vectors(bone, curves, frames)
            if vectors is not None:
                found.append(vectors)
        if not found:
            return None
        vectors = np.concatenate(found)
        return [(float(vectors[:, i].min()), float(vectors[:, i].max())) for i in range(3)]


def _rotation_curves(action: bpy.types.Action) -> dict[str, dict[int, bpy.types.FCurve]]:
    found: dict[str, dict[int, bpy.types.FCurve]] = {}
    strips: list[Any] = [strip for layer in action.layers for strip in layer.strips]
    for curve in (curve for strip in strips for bag in strip.channelbags for curve in bag.fcurves):
        if ".rotation_" in curve.data_path:
            found.setdefault(curve.data_path, {})[curve.array_index] = curve
    return found


def _rotation_vectors(
    bone: bpy.types.PoseBone,
    curves: dict[str, dict[int, bpy.types.FCurve]],
    frames: NDArray[np.float64],
) -> NDArray[np.float64] | None:
    """Return axis times angle (F, 3) of a bone's keyed rotation, in its own axes; None without keys."""
    mode = bone.rotation_mode
    channel = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}.get(
        mode, "rotation_euler"
    )
    keyed = curves.get(bone_path(bone.name, channel))
    if not keyed:
        return None
    rest = list(getattr(bone, channel))
    values = np.array(
        [[keyed[i].evaluate(f) if i in keyed else rest[i] for i in range(len(rest))] for f in frames.tolist()]
    )
    return np.array([_vector(row, mode) for row in values.tolist()])


def _vector(row: list[float], mode: str) -> list[float]:
    if mode == "QUATERNION":
        turn = Quaternion(row).normalized()
    elif mode == "AXIS_ANGLE":
        turn = Matrix.Rotation(row[0], 3, row[1:]).to_quaternion()  # pyright: ignore[reportArgumentType]
    else:
        turn = Euler(row, mode).to_quaternion()  # pyright: ignore[reportArgumentType]
    if turn.w < 0:
        turn.negate()
    axis, angle = turn.to_axis_angle()
    return [angle * part for part in axis]
