"""Changing an armature in use: shown while it is edited, whole again where something goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.errors import RigError
from ..core.rigging.rig import Rig
from .action import MADE_HERE, key_replay, new_action
from .armature import SKIN_BONE
from .motion_store import forget_motion_of
from .motion_switch import REPLAY, is_replaying
from .rig_object import replay_timing


@contextmanager
def editable(context: bpy.types.Context, armature: bpy.types.Object) -> Iterator[None]:
    """Show the armature while its bones are edited; its mode is as before afterwards.

    Raises
    ------
    RigError : it cannot be shown
    """
    mode, is_active = armature.mode, context.view_layer.objects.active == armature
    with _shown(armature):
        if mode != "OBJECT" and is_active:
            bpy.ops.object.mode_set(mode="OBJECT")
        try:
            yield
        finally:
            if mode == "POSE" and is_active:
                bpy.ops.object.mode_set(mode="POSE")


def leave_edit_mode(armature: bpy.types.Object) -> bool:
    """Go back to the mode before Edit Mode, as Tab does, so that edits count; returns whether it was left."""
    if armature.mode != "EDIT":
        return False
    with _shown(armature):
        bpy.ops.object.mode_set(mode="EDIT", toggle=True)
    return True


@contextmanager
def _shown(armature: bpy.types.Object) -> Iterator[None]:
    hidden, disabled = armature.hide_get(), armature.hide_viewport
    armature.hide_viewport = False
    armature.hide_set(False)
    try:
        if not armature.visible_get():
            raise RigError(f"'{armature.name}' is hidden with its collection; show it first")
        yield
    finally:
        armature.hide_viewport = disabled
        armature.hide_set(hidden)


@contextmanager
def replaced_data(armature: bpy.types.Object) -> Iterator[None]:
    """Work on a copy of the armature's data, which replaces it where all goes well."""
    before = cast(bpy.types.Armature, armature.data)
    name, fake = before.name, before.use_fake_user
    armature.data = before.copy()
    try:
        yield
    except BaseException:
        copy = cast(bpy.types.Armature, armature.data)
        armature.data = before
        bpy.data.armatures.remove(copy)
        raise
    after = cast(bpy.types.Armature, armature.data)
    before.user_remap(after)
    forget_motion_of(before)
    bpy.data.armatures.remove(before)
    after.name, after.use_fake_user = name, fake


def dress(armature: bpy.types.Object, joints: set[str]) -> None:
    """Give new bones what the others got when they were made."""
    data = cast(bpy.types.Armature, armature.data)
    for bone in data.bones:
        deforms = SKIN_BONE in bone
        if not deforms and bone.name not in joints:
            continue
        if bone.color.palette == "DEFAULT":
            bone.color.palette = "THEME04" if deforms else "THEME09"
            armature.pose.bones[bone.name].rotation_mode = "QUATERNION"
        bone.use_deform = deforms


def rekey(
    context: bpy.types.Context,
    object: bpy.types.Object,
    armature: bpy.types.Object,
    space: NDArray[np.float64],
    rig: Rig,
) -> None:
    """Key the replay anew in its own action, wherever that is played."""
    action = _own_replay(armature)
    slot = next((slot for slot in action.slots if armature in slot.users()), None) or action.slots[0]
    strip: Any = action.layers[0].strips[0]
    bag = strip.channelbag(slot, ensure=True)
    bag.fcurves.clear()
    for group in list(bag.groups):
        bag.groups.remove(group)
    key_replay(bag, armature, rig, context.scene, *replay_timing(object), space)
    armature.update_tag()


def _own_replay(armature: bpy.types.Object) -> bpy.types.Action:
    """Return the replay of this armature: a new one where it was deleted, a copy where others play it too."""
    action: Any = armature.get(REPLAY)
    playing = is_replaying(armature)
    if action is None or not len(action.layers):
        action = new_action(armature, f"{armature.name} replay")[0]
        action[MADE_HERE] = True
    elif action.library is not None or any(
        other.get(REPLAY) == action and other.data != armature.data for other in bpy.data.objects
    ):
        action = action.copy()
    else:
        return action
    armature[REPLAY] = action
    if playing:
        armature.animation_data.action = action
        armature.animation_data.action_slot = action.slots[0]
    return action
