"""Weights that are drawn: bind to an armature, the layers of the active bone, their numbers."""

from __future__ import annotations

from typing import Any, cast

import bpy

from ..gaussianimate_addon.deformer import deformer_armature
from ..gaussianimate_addon.weights.chosen import chosen_armature, chosen_splats
from ..gaussianimate_addon.weights.layer_list import (
    holds_splats,
    layer_list,
    listed_layers,
    refused,
    unreadable,
)
from ..operators.bind_armature import GAUSSIANIMATE_OT_bind
from ..operators.edit_layers import GAUSSIANIMATE_OT_edit_layers
from ..operators.estimate_gradients import GAUSSIANIMATE_OT_estimate_gradients
from ..operators.mirror_layers import GAUSSIANIMATE_OT_mirror_layers
from ..operators.redraw_selection_layer import GAUSSIANIMATE_OT_redraw_selection_layer
from ..operators.toggle_rest import GAUSSIANIMATE_OT_toggle_rest
from ..operators.view_selection_layer import GAUSSIANIMATE_OT_view_selection_layer
from .layout import SubPanel, reason_below, wrapped

ICONS = {"rectangle": "MESH_PLANE", "ellipse": "MESH_CIRCLE", "lasso": "STROKE", "stroke": "BRUSH_DATA"}
DRAW = "Draw with the tools at the foot of the toolbar"
NO_DEFORM = "This bone moves no splats: choose one whose Deform is on, such as a skin bone of a capture's rig"
SIGNS = {"add": "ADD", "subtract": "REMOVE", "replace": "FILE_REFRESH", "multiply": "X", "mix": "COLOR"}


class GAUSSIANIMATE_UL_layers(bpy.types.UIList):
    """The layers of the active bone, in the order they act"""

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
        """Draw a line: what was drawn, what it does, whether it acts."""
        object = chosen_splats(context)
        layers = listed_layers(object)
        if not 0 <= item.index < len(layers):
            return
        layer = layers[item.index]
        row = layout.row(align=True)
        row.active = not layer.muted
        row.prop(item, "title", text="", emboss=False, icon=cast(Any, ICONS[layer.shape.kind]))
        row.label(text="", icon=cast(Any, SIGNS[layer.operation]))
        row.prop(item, "shown", text="", emboss=False, icon="HIDE_ON" if layer.muted else "HIDE_OFF")

    def filter_items(
        self, context: bpy.types.Context, data: Any, property: str
    ) -> tuple[list[int], list[int]]:
        """Show the layers of the active bone only."""
        object = chosen_splats(context)
        layers = listed_layers(object)
        flags = [
            self.bitflag_filter_item if i < len(layers) and layers[i].bone == data.bone else 0
            for i in range(len(data.lines))
        ]
        return flags, []


class GAUSSIANIMATE_PT_weights(SubPanel, bpy.types.Panel):
    """Bind, draw, edit."""

    bl_label = "Weights"
    bl_order = 3
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        """The bind, then the layers."""
        layout, object = self.layout, chosen_splats(context)
        row = layout.row(align=True)
        row.operator_menu_enum(GAUSSIANIMATE_OT_bind.bl_idname, "method", icon="ARMATURE_DATA")
        reason_below(context, layout, GAUSSIANIMATE_OT_bind)
        if object is None:
            return
        armature = deformer_armature(object)
        if armature is None:
            if chosen_armature(context) is None:
                wrapped(context, layout, "Select the splats and the armature, then bind", "INFO")
            return
        data = cast(bpy.types.Armature, armature.data)
        if data.pose_position == "REST" or context.mode in ("POSE", "OBJECT"):
            layout.operator(
                GAUSSIANIMATE_OT_toggle_rest.bl_idname,
                depress=data.pose_position == "REST",
                icon="ARMATURE_DATA",
            )
        layout.prop(layer_list(object), "bone", icon="BONE_DATA")
        if (problem := unreadable(object)) is not None:
            wrapped(context, layout, problem, "ERROR")
            return
        if (hint := hint_before_layers(object, data)) is None:
            self._draw_layers(context, object)
        else:
            wrapped(context, layout, hint, "INFO")
        estimate = GAUSSIANIMATE_OT_estimate_gradients.bl_idname
        if listed_layers(object):
            layout.operator_menu_enum(estimate, "layers", icon="NORMALS_VERTEX")
        else:
            layout.operator(estimate, icon="NORMALS_VERTEX")

    def _draw_layers(self, context: bpy.types.Context, object: bpy.types.Object) -> None:
        layout, shown, layers = self.layout, layer_list(object), listed_layers(object)
        row = layout.row()
        row.template_list("GAUSSIANIMATE_UL_layers", "", shown, "lines", shown, "active", rows=4)
        column = row.column(align=True)
        for action, icon in (
            ("DUPLICATE", "DUPLICATE"),
            ("DELETE", "TRASH"),
            ("UP", "TRIA_UP"),
            ("DOWN", "TRIA_DOWN"),
        ):
            button = column.operator(GAUSSIANIMATE_OT_edit_layers.bl_idname, text="", icon=cast(Any, icon))
            button.action = action
        if not 0 <= shown.active < len(layers) or layers[shown.active].bone != shown.bone:
            return
        line = shown.lines[shown.active]
        column = layout.column()
        column.use_property_split = True
        column.use_property_decorate = False
        for name in ("operation", "strength", "smoothness", "curve", "through"):
            column.prop(line, name)
        if not line.through:
            column.prop(line, "depth")
        if (problem := refused(object)) is not None:
            wrapped(context, layout, problem, "ERROR")
        row = layout.row(align=True)
        row.operator(GAUSSIANIMATE_OT_view_selection_layer.bl_idname, text="Its View", icon="VIEW_CAMERA")
        row.operator(GAUSSIANIMATE_OT_redraw_selection_layer.bl_idname, icon="GREASEPENCIL")
        row = layout.row(align=True)
        one = row.operator(GAUSSIANIMATE_OT_mirror_layers.bl_idname, text="Mirror Layer", icon="MOD_MIRROR")
        one.whole_bone = False
        all_of_it = row.operator(GAUSSIANIMATE_OT_mirror_layers.bl_idname, text="Mirror Bone")
        all_of_it.whole_bone = True


def hint_before_layers(object: bpy.types.Object, armature: bpy.types.Armature) -> str | None:
    """Return what is to be done before the active bone has layers to list; None where it has some."""
    if not (bone := layer_list(object).bone):
        return "Choose the bone that weights are drawn for"
    if any(layer.bone == bone for layer in listed_layers(object)):
        return None
    return DRAW if holds_splats(armature.bones[bone]) else NO_DEFORM
