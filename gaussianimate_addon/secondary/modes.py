"""Live, Baked or Off: what moves the skin bones of an armature while it is posed anew.

Baked motion is keys on the skin bones in the action the armature plays. Live and Off mute their F-curves, so
that nothing is lost, Baked plays them. The captured replay is never touched.
"""

from __future__ import annotations

import bpy

from ...core.errors import RigError
from ..action import bone_path
from ..armature import SKIN_BONE, indexed_bones
from ..motion_switch import is_replaying
from ..properties import object_notes
from .bone_colours import restore_colours
from .history import channel_bag
from .live import SESSION

LIVE, BAKED, OFF = "LIVE", "BAKED", "OFF"
CHANNELS = (("location", 3), ("rotation_quaternion", 4))


def mode_of(armature: bpy.types.Object) -> str:
    """Return what moves the skin bones."""
    return object_notes(armature).secondary_motion


def set_mode(armature: bpy.types.Object, mode: str) -> None:
    """Choose what moves the skin bones.

    Raises
    ------
    RigError : there is nothing baked to play
    """
    if mode == BAKED and not is_baked(armature):
        raise RigError(f"The action of '{armature.name}' has no baked secondary motion; bake it first")
    object_notes(armature).secondary_motion = mode


def apply_mode(armature: bpy.types.Object) -> None:
    """Make curves and bones follow a change of the mode."""
    SESSION.forget(armature.session_uid)
    if armature.library is not None or is_replaying(armature):
        return
    mode = mode_of(armature)
    mute_baked(armature, mode != BAKED)
    if mode == OFF:
        rest_skin_bones(armature)
    armature.update_tag(refresh={"DATA"})


def apply_colours(armature: bpy.types.Object) -> None:
    """Colour the skeleton by its coverage from now on, or no more."""
    if not object_notes(armature).colour_bones:
        restore_colours(armature)
        return
    SESSION.pose_changed(armature)
    known = SESSION.known.get(armature.session_uid)
    if known is not None:
        known.asked = None  # coloured with the next answer, which is now
    armature.update_tag(refresh={"DATA"})


def mute_baked(armature: bpy.types.Object, mute: bool) -> None:
    """Mute or play the F-curves of skin bones, but never the replay's."""
    if is_replaying(armature):
        return
    for curve in baked_curves(armature):
        if curve.mute != mute:  # setting it evaluates the animation anew
            curve.mute = mute


def is_baked(armature: bpy.types.Object) -> bool:
    """Return whether the action the armature plays has keys on skin bones."""
    return not is_replaying(armature) and bool(baked_curves(armature))


def baked_curves(armature: bpy.types.Object) -> list[bpy.types.FCurve]:
    """Return the F-curves of skin bones in the action the armature plays."""
    bag = channel_bag(armature)
    if bag is None:
        return []
    found = []
    for bone in indexed_bones(armature, SKIN_BONE):
        for channel, size in CHANNELS:
            path = bone_path(bone.name, channel)
            found += [bag.fcurves.find(path, index=index) for index in range(size)]
    return [curve for curve in found if curve is not None]


def rest_skin_bones(armature: bpy.types.Object) -> None:
    """Put skin bones rigidly on their joints."""
    for bone in armature.pose.bones:
        if SKIN_BONE in bone.bone:
            bone.matrix_basis.identity()
