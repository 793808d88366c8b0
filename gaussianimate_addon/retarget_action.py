"""A retargeted motion as an action of the armature, which plays it from then on."""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np
from mathutils import Quaternion
from numpy.typing import NDArray

from ..core.rotations import affine_inverse, affine_multiply, matrix_to_quaternion
from .action import add_curves, bone_path, key_bone, new_action
from .armature import bone_matrices
from .motion_switch import play_pose
from .retarget_map import target_bones

F64 = NDArray[np.float64]


def write_retargeted(
    armature: bpy.types.Object, name: str, parents: NDArray[np.integer], motions: F64, start: int
) -> bpy.types.Action:
    """Key the skeleton's bones on whole frames from ``start`` on, and let the armature play that.

    Skin bones get no keys; the action the armature was posed with before, and its replay, are kept.

    Parameters
    ----------
    parents : (T,) parent of each of `target_bones`, -1 for none
    motions : (F, T, 3, 4) from rest to posed, in the armature's space
    """
    action, bag = new_action(armature, name)
    play_pose(armature, action)
    frames = np.arange(start, start + len(motions), dtype=np.float64)
    for index, bone in enumerate(target_bones(armature)):
        parent = int(parents[index])
        local = motions[:, index]
        if parent >= 0:
            local = affine_multiply(affine_inverse(motions[:, parent]), local)
        mode = armature.pose.bones[bone.name].rotation_mode
        key_bone(bag, bone, frames, local, location=parent < 0, rotation=mode == "QUATERNION")
        if mode != "QUATERNION":
            _key_other_rotation(bag, bone, frames, local, mode)
    return action


def _key_other_rotation(
    bag: bpy.types.ActionChannelbag, bone: bpy.types.Bone, frames: F64, local: NDArray[np.floating], mode: Any
) -> None:
    """Key a bone that the user set to Euler angles or axis and angle: his other actions need that."""
    rest = bone_matrices([bone])[0, :3, :3]
    turns = matrix_to_quaternion(rest.T @ local[..., :3] @ rest)
    values = []
    for turn in map(Quaternion, turns):
        if mode == "AXIS_ANGLE":
            axis, angle = turn.to_axis_angle()
            values.append((angle, *axis))
        else:
            values.append(turn.to_euler(mode, values[-1]) if values else turn.to_euler(mode))
    path = "rotation_axis_angle" if mode == "AXIS_ANGLE" else "rotation_euler"
    add_curves(bag, bone_path(bone.name, path), bone.name, frames, np.array(values))
