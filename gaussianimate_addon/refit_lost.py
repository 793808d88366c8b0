"""What of the user's work pointed to bones that are gone."""

from __future__ import annotations

import re

import bpy

from .motion_switch import REPLAY

_BONE = re.compile(r'pose\.bones\["((?:[^"\\]|\\.)*)"\]')
SHOWN = 4  # names in one sentence


def lost_keys(armature: bpy.types.Object) -> list[str]:
    """Return a sentence for each action of the armature with keys of bones that do not exist."""
    notes = []
    for action in _actions(armature):
        lost = [name for name in _keyed(action, armature) if name not in armature.pose.bones]
        if lost:
            notes.append(f"Keys of {_listed(lost)} in action '{action.name}' play nothing now.")
    return notes


def stale_bakes(armature: bpy.types.Object, moved: set[str]) -> list[str]:
    """Return a sentence for each action of the armature with keys of skin bones that hang elsewhere now.

    Parameters
    ----------
    moved : names of the skin bones that hang on another joint than before
    """
    return [
        f"Secondary motion baked in action '{action.name}' was made for the joints before; bake it again."
        for action in _actions(armature)
        if moved & set(_keyed(action, armature))
    ]


def lost_targets(armature: bpy.types.Object) -> list[str]:
    """Return a sentence for each constraint, in the scene's objects, to a bone that does not exist."""
    notes = []
    for object in bpy.data.objects:
        holders = [(object.name, object.constraints)]
        if object.pose is not None:
            holders += [(bone.name, bone.constraints) for bone in object.pose.bones]
        for name, constraints in holders:
            for constraint in constraints:
                bone = getattr(constraint, "subtarget", "")
                if (
                    getattr(constraint, "target", None) == armature
                    and bone
                    and bone not in armature.pose.bones
                ):
                    notes.append(
                        f"Constraint '{constraint.name}' of '{name}' follows '{bone}', which is gone."
                    )
        if object.parent == armature and object.parent_type == "BONE":
            if object.parent_bone not in armature.pose.bones:
                notes.append(f"'{object.name}' hung on '{object.parent_bone}', which is gone.")
    return notes


def _actions(armature: bpy.types.Object) -> list[bpy.types.Action]:
    """Return the actions that the armature plays, keeps or has in its tracks, but for the replay."""
    kept = {value for value in armature.values() if isinstance(value, bpy.types.Action)}
    for action in bpy.data.actions:
        if any(armature in slot.users() for slot in action.slots):
            kept.add(action)
    kept.discard(armature.get(REPLAY))  # pyright: ignore[reportArgumentType]
    return sorted(kept, key=lambda action: action.name)


def _keyed(action: bpy.types.Action, armature: bpy.types.Object) -> list[str]:
    """Return the bones keyed for this armature: by the slots it uses, or by all where it uses none."""
    mine = [slot.handle for slot in action.slots if armature in slot.users()]
    bags = [
        bag
        for layer in action.layers
        for strip in layer.strips
        for bag in strip.channelbags  # pyright: ignore[reportAttributeAccessIssue]
    ]
    paths = (c.data_path for bag in bags if not mine or bag.slot_handle in mine for c in bag.fcurves)
    found = (_BONE.match(path) for path in paths)
    return list(dict.fromkeys(bpy.utils.unescape_identifier(match[1]) for match in found if match))


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:SHOWN])
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
