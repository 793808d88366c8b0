"""Motion of another armature on the skeleton."""

from __future__ import annotations

from typing import Any

import bpy

from ..gaussianimate_addon.retarget_map import BY_HAND, retarget_settings
from ..gaussianimate_addon.subject import active_armature
from ..operators.retarget_action import GAUSSIANIMATE_OT_retarget_action, GAUSSIANIMATE_OT_suggest_bone_map
from .layout import SubPanel, reason_below, wrapped

OPTIONS = ("align_rest", "scale_root", "in_place")
LIKELY, SURE = 0.4, 0.75  # confidence of a suggestion: doubtful below the first, sure from the second on
NAME = 0.57  # of a line, for the bone's name: "chain_03.001.L" is read whole in a sidebar of usual width


def confidence_icon(confidence: float, mapped: bool) -> str:
    """Return the icon of a line: by hand, sure, likely, doubtful, none."""
    if not mapped:
        return "BLANK1"
    if confidence >= BY_HAND:
        return "USER"
    return "CHECKMARK" if confidence >= SURE else "QUESTION" if confidence >= LIKELY else "ERROR"


class GAUSSIANIMATE_UL_bone_map(bpy.types.UIList):
    """One line a bone of the skeleton: its name, the source bone, how sure that is"""

    def draw_item(
        self,
        context: bpy.types.Context,
        layout: bpy.types.UILayout,
        data: Any,
        item: Any,
        icon: Any,
        active_data: Any,
        active_property: str | None,
        index: int | None = 0,
        flt_flag: int | None = 0,
    ) -> None:
        """Draw a line."""
        row = layout.split(factor=NAME, align=True)
        row.label(text=item.name, icon=confidence_icon(item.confidence, bool(item.source)))
        source = data.source
        if source is not None and source.type == "ARMATURE":
            row.prop_search(item, "source", source.data, "bones", text="")
        else:
            row.label(text=item.source)


class GAUSSIANIMATE_PT_retarget(SubPanel, bpy.types.Panel):
    """Choose a source, look the map over, retarget."""

    bl_label = "Retarget"
    bl_order = 4
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        """The source, the map, the options, the button."""
        layout, armature = self.layout, active_armature(context)
        if armature is None:
            reason_below(context, layout, GAUSSIANIMATE_OT_retarget_action)
            return
        settings = retarget_settings(armature)
        column = layout.column()
        column.use_property_split = True
        column.use_property_decorate = False
        column.prop(settings, "source")
        self._draw_map(context, settings)
        options = layout.column(align=True)
        for name in OPTIONS:
            options.prop(settings, name)
        row = layout.row()
        row.enabled = settings.source is not None  # a script may name one, the button cannot
        button = row.operator(GAUSSIANIMATE_OT_retarget_action.bl_idname, icon="ARMATURE_DATA")
        button.source = settings.source.name if settings.source is not None else ""
        for name in OPTIONS:
            setattr(button, name, getattr(settings, name))
        reason_below(context, layout, GAUSSIANIMATE_OT_retarget_action)

    def _draw_map(self, context: bpy.types.Context, settings: Any) -> None:
        layout = self.layout
        if settings.source is None:
            wrapped(context, layout, "Choose the armature whose motion is wanted", "INFO")
            return
        button = layout.operator(GAUSSIANIMATE_OT_suggest_bone_map.bl_idname, icon="VIEWZOOM")
        button.source = settings.source.name
        if len(settings.bones):
            layout.template_list(
                "GAUSSIANIMATE_UL_bone_map", "", settings, "bones", settings, "active", rows=6
            )
            doubtful = sum(1 for pair in settings.bones if pair.source and pair.confidence < LIKELY)
            if doubtful:
                plural = f"{doubtful} bone{'s' if doubtful > 1 else ''}"
                wrapped(context, layout, f"{plural} may be wrong; look at the lines marked so", "ERROR")
