"""The armature at rest, where weights are drawn, or posed again."""

from __future__ import annotations

import bpy

from ..gaussianimate_addon.deformer import deformer_armature
from ..gaussianimate_addon.job import Reasoned
from ..gaussianimate_addon.subject import active_splats, linked_reason


class GAUSSIANIMATE_OT_toggle_rest(Reasoned, bpy.types.Operator):
    """Show the armature at rest, where weights are drawn, or posed again"""

    bl_idname = "gaussianimate.toggle_rest"
    bl_label = "Rest Position"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """There must be an armature of this file."""
        object = active_splats(context)
        armature = deformer_armature(object) if object is not None else None
        return "Bind the splats to an armature first" if armature is None else linked_reason(armature.data)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Switch."""
        object = active_splats(context)
        armature = deformer_armature(object) if object is not None else None
        assert armature is not None
        data: bpy.types.Armature = armature.data  # pyright: ignore[reportAssignmentType]
        data.pose_position = "POSE" if data.pose_position == "REST" else "REST"
        return {"FINISHED"}
