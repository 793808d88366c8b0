"""The capture's own motion as an action on the armature.

Keys lie on whole scene frames. Capture frame i is shown at ``frame_start + i * scene fps / capture fps``;
where the two rates differ the motion is resampled (`replay_motion`).
"""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.rigging.rig import Rig
from ..core.rotations import affine_inverse, affine_multiply, continuous_quaternions, matrix_to_quaternion
from .armature import JOINT, SKIN_BONE, bone_matrices, indexed_bones
from .replay_motion import motions_on_whole_frames

F64 = NDArray[np.floating]
MADE_HERE = "gaussianimate_made"  # custom property that marks the actions made here


def replay_action(
    armature: bpy.types.Object,
    rig: Rig,
    scene: bpy.types.Scene,
    frame_start: float | None = None,
    frame_step: float | None = None,
) -> bpy.types.Action:
    """Key skeleton and skin bones so that the armature replays the capture, and make it the current action.

    Joints get rotations, the root its location too; skin bones get location and rotation relative to their
    joint's bone, so that clearing their keys leaves them rigidly on the skeleton.

    Parameters
    ----------
    frame_start : scene frame of capture frame 0, default ``scene.frame_start``
    frame_step : scene frames a captured frame lasts, default scene rate / capture rate
    """
    action, bag = new_action(armature, f"{armature.name} replay")
    action[MADE_HERE] = True
    animation = armature.animation_data_create()
    animation.action, animation.action_slot = action, action.slots[0]
    key_replay(bag, armature, rig, scene, frame_start, frame_step)
    return action


def key_replay(
    bag: bpy.types.ActionChannelbag,
    armature: bpy.types.Object,
    rig: Rig,
    scene: bpy.types.Scene,
    frame_start: float | None = None,
    frame_step: float | None = None,
    space: F64 | None = None,
) -> None:
    """Key the capture's own motion in an empty channel bag; see `replay_action`.

    Parameters
    ----------
    space : (4, 4) similarity from the rig's axes to those of the armature; None: they are the same
    """
    start = scene.frame_start if frame_start is None else frame_start
    step = scene_fps(scene) / rig.fps if frame_step is None else frame_step
    frames, motions, transforms = motions_on_whole_frames(rig, start + rig.frames * step)
    joints, skin = indexed_bones(armature, JOINT), indexed_bones(armature, SKIN_BONE)
    for bone in joints:
        j = bone[JOINT]
        parent = int(rig.joint_parents[j])
        local = (
            motions[:, j]
            if parent < 0
            else affine_multiply(affine_inverse(motions[:, parent]), motions[:, j])
        )
        key_bone(bag, bone, frames, _in_space(local, space), location=parent < 0)
    for b, bone in enumerate(skin):
        carrier = motions[:, rig.bone_joints[b]]
        local = affine_multiply(affine_inverse(carrier), transforms[:, b])
        key_bone(bag, bone, frames, _in_space(local, space), location=True)


def _in_space(motion: F64, space: F64 | None) -> F64:
    """Return the motion (F, 3, 4) of the same points after all were moved by a similarity (4, 4)."""
    if space is None:
        return motion
    return affine_multiply(affine_multiply(space, motion), affine_inverse(space))


def scene_fps(scene: bpy.types.Scene) -> float:
    """Return the scene's frames a second."""
    return scene.render.fps / scene.render.fps_base


def new_action(armature: bpy.types.Object, name: str) -> tuple[bpy.types.Action, bpy.types.ActionChannelbag]:
    """Make an action with one slot for the armature, not played yet; returns it and where its curves go."""
    action = bpy.data.actions.new(name)
    slot = action.slots.new(id_type="OBJECT", name=armature.name)
    strip: Any = action.layers.new("Layer").strips.new(type="KEYFRAME")
    return action, strip.channelbag(slot, ensure=True)


def key_bone(
    bag: bpy.types.ActionChannelbag,
    bone: bpy.types.Bone,
    frames: F64,
    motion: F64,
    location: bool,
    rotation: bool = True,
) -> None:
    """Key a bone at frames (F,) so that, in its parent's rest frame, it moves by ``motion`` (F, 3, 4) in
    armature axes."""
    rest = bone_matrices([bone])[0, :3]
    basis = affine_multiply(affine_multiply(affine_inverse(rest), motion), rest)
    if rotation:
        turns = continuous_quaternions(matrix_to_quaternion(basis[..., :3]))
        add_curves(bag, bone_path(bone.name, "rotation_quaternion"), bone.name, frames, turns)
    if location:
        add_curves(bag, bone_path(bone.name, "location"), bone.name, frames, basis[..., 3])


def bone_path(name: str, channel: str) -> str:
    """Return the data path of a pose bone's channel."""
    return f'pose.bones["{bpy.utils.escape_identifier(name)}"].{channel}'


def add_curves(bag: bpy.types.ActionChannelbag, path: str, group: str, frames: F64, values: F64) -> None:
    """Add linear curves of values (F, K), one an index of the path, with keys at frames (F,)."""
    kinds: Any = bpy.types.Keyframe.bl_rna.properties["interpolation"]
    linear = kinds.enum_items["LINEAR"].value
    for index in range(values.shape[1]):
        curve = bag.fcurves.new(path, index=index, group_name=group)
        curve.keyframe_points.add(len(frames))
        curve.keyframe_points.foreach_set("co", np.column_stack([frames, values[:, index]]).ravel())
        curve.keyframe_points.foreach_set("interpolation", np.full(len(frames), linear))
        curve.update()
