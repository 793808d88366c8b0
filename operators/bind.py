"""Keep the bind right: apply transforms with splats and all, and mend what a native Apply left behind."""

from __future__ import annotations

import bpy

from ..core.errors import GaussiAnimateError
from ..gaussianimate_addon.apply_transform import apply_transform
from ..gaussianimate_addon.deformer import bind_is_stale, deformer_armature, rebind
from ..gaussianimate_addon.job import Reasoned
from ..gaussianimate_addon.subject import active_splats, linked_reason
from ..gaussianimate_addon.weights.layers import has_layers
from ..gaussianimate_addon.weights.numbering import follow_bones


class GAUSSIANIMATE_OT_apply_transform(Reasoned, bpy.types.Operator):
    """Apply location, rotation and scale to the splats: sizes, orientations and colours follow, which \
Object > Apply leaves behind"""

    bl_idname = "gaussianimate.apply_transform"
    bl_label = "Apply Transform to Splats"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """Splats must be active."""
        object = active_splats(context)
        return "Select Gaussian splats" if object is None else linked_reason(object, object.data)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Apply."""
        return _reported(self, apply_transform, context)


class GAUSSIANIMATE_OT_rebind(Reasoned, bpy.types.Operator):
    """Bind the splats to the armature as both stand now, after a transform was applied to one of them"""

    bl_idname = "gaussianimate.rebind"
    bl_label = "Rebind"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """The bind must be stale."""
        object = active_splats(context)
        if object is None:
            return "Select a rigged capture or its armature"
        if reason := linked_reason(object, object.data):
            return reason
        return None if bind_is_stale(object) else "The bind fits: nothing was applied since"

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Rebind."""
        return _reported(self, _rebind, context)


def _rebind(object: bpy.types.Object) -> None:
    """Let layers follow bones that were edited without this extension, and rebind."""
    armature = deformer_armature(object)
    if armature is not None and has_layers(object):
        follow_bones(armature)
    rebind(object)


def _reported(operator: bpy.types.Operator, change, context: bpy.types.Context) -> set[str]:
    """Call a bridge on the active splats; a user's mistake becomes a report."""
    try:
        change(active_splats(context))
    except GaussiAnimateError as error:
        operator.report({"ERROR"}, str(error))
        return {"CANCELLED"}
    return {"FINISHED"}
