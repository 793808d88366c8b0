"""Replaying the capture or posing anew: which action the armature plays."""

from __future__ import annotations

import bpy

# On the armature object: the action that replays the capture, and the one it was last posed with.
REPLAY, POSE = "gaussianimate_replay", "gaussianimate_pose"
# Rotation modes the user gave to bones for his pose: the replay is in quaternions.
MODES = "gaussianimate_rotation_modes"


def remember_replay(armature: bpy.types.Object) -> None:
    """Note the action the armature plays now as its replay, kept even while it is not played."""
    action = _playing(armature)
    if action is not None:
        armature[REPLAY] = action


def is_replaying(armature: bpy.types.Object) -> bool:
    """Return whether the armature plays its capture."""
    return armature.get(REPLAY) is not None and _playing(armature) == armature.get(REPLAY)


def no_replay(armature: bpy.types.Object) -> str | None:
    """Return one sentence where there is no captured motion to replay, else None."""
    if REPLAY not in armature:  # splats were bound to it
        return f"'{armature.name}' has no captured motion to replay; Build Rig makes an armature that has"
    if armature[REPLAY] is None:
        return f"The replay of '{armature.name}' was deleted; build the rig again"
    return None


def replay(armature: bpy.types.Object) -> None:
    """Play the capture."""
    _keep_pose(armature)
    reset_pose(armature)
    armature[MODES] = {bone.name: bone.rotation_mode for bone in armature.pose.bones}
    for bone in armature.pose.bones:
        bone.rotation_mode = "QUATERNION"
    _play(armature, armature[REPLAY])


def pose_anew(armature: bpy.types.Object) -> None:
    """Play the user's own action, made when there is none; bones without keys stand at rest."""
    action = armature.get(POSE)
    if action is None:
        action = bpy.data.actions.new(f"{armature.name} pose")
    play_pose(armature, action)


def play_pose(armature: bpy.types.Object, action: bpy.types.Action) -> None:
    """Play an action as the user's own from now on; the one he had before is kept in the file."""
    _keep_pose(armature)
    before = armature.get(POSE)
    if before is not None:
        before.use_fake_user = True
    action.use_fake_user = True  # the user's work outlives a rig that is built again
    if is_replaying(armature):
        modes = armature.get(MODES, {})
        for bone in armature.pose.bones:
            bone.rotation_mode = modes.get(bone.name, bone.rotation_mode)
    armature[POSE] = action
    reset_pose(armature)
    _play(armature, action)


def reset_pose(armature: bpy.types.Object) -> None:
    """Put bones back to rest."""
    for bone in armature.pose.bones:
        bone.matrix_basis.identity()


def _playing(armature: bpy.types.Object) -> bpy.types.Action | None:
    return armature.animation_data.action if armature.animation_data else None


def _keep_pose(armature: bpy.types.Object) -> None:
    """An action the user assigned himself is his pose from now on."""
    action = _playing(armature)
    if action is not None and action != armature.get(REPLAY):
        armature[POSE] = action


def _play(armature: bpy.types.Object, action: bpy.types.Action) -> None:
    data = armature.animation_data or armature.animation_data_create()
    data.action = action
    if data.action_slot is None and action.slots:
        data.action_slot = action.slots[0]
    armature.update_tag()
