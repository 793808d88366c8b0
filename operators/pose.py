"""Replay the capture, or pose it anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bpy

from ..gaussianimate_addon.job import Reasoned
from ..gaussianimate_addon.motion_switch import is_replaying, no_replay, pose_anew, replay, reset_pose
from ..gaussianimate_addon.subject import active_armature, linked_reason
from .place import select_only


class NeedsRig(Reasoned):
    """Mix-in of operators on a rigged capture."""

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """There must be an armature."""
        armature = active_armature(context)
        if armature is None:
            return "Select a rigged capture or its armature; build a rig first"
        if armature.name not in context.view_layer.objects:
            return f"'{armature.name}' is not in this view layer; enable its collection in the Outliner"
        return linked_reason(armature)


class GAUSSIANIMATE_OT_set_motion(NeedsRig, bpy.types.Operator):
    """Choose what the armature plays"""

    bl_idname = "gaussianimate.set_motion"
    bl_label = "Set Motion"
    bl_options = {"REGISTER", "UNDO"}

    if TYPE_CHECKING:
        motion: str
    else:
        motion: bpy.props.EnumProperty(
            name="Motion",
            items=(
                ("REPLAY", "Replay", "Play the captured motion"),
                ("POSE", "Pose Anew", "Play an action of your own; the captured motion is kept"),
            ),
        )

    @classmethod
    def description(cls, context: bpy.types.Context, properties: GAUSSIANIMATE_OT_set_motion) -> str:
        """Say what the button does, not what the operator is."""
        if properties.motion == "REPLAY":
            return "Play the captured motion"
        return "Start from rest in Pose Mode with an action of your own; the captured motion is kept"

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Switch the action; posing enters Pose Mode."""
        armature = active_armature(context)
        if self.motion == "REPLAY":
            if (reason := no_replay(armature)) is not None:
                self.report({"ERROR"}, reason)
                return {"CANCELLED"}
            if not is_replaying(armature):
                replay(armature)
            return {"FINISHED"}
        if context.mode != "POSE" or context.active_object != armature:
            armature.hide_set(False)
            select_only(context, armature)
            bpy.ops.object.mode_set(mode="POSE")
        if is_replaying(armature):
            pose_anew(armature)
        return {"FINISHED"}


class GAUSSIANIMATE_OT_reset_pose(NeedsRig, bpy.types.Operator):
    """Put every bone back to the rest pose; keys stay as they are"""

    bl_idname = "gaussianimate.reset_pose"
    bl_label = "Reset Pose"
    bl_options = {"REGISTER", "UNDO"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Clear the bones' transforms."""
        reset_pose(active_armature(context))
        return {"FINISHED"}
