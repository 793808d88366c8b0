"""How splats are shown in viewports."""

from __future__ import annotations

import bpy

from ..gaussianimate_addon.drawer.display import DRAWER as CHOSEN
from ..gaussianimate_addon.drawer.viewport import DRAWER
from ..gaussianimate_addon.properties import display_settings
from ..gaussianimate_addon.subject import active_armature, active_splats
from ..gaussianimate_addon.weights.gesture_display import chosen_display
from ..operators.display import GAUSSIANIMATE_OT_set_display
from .layout import SubPanel, reason_below, wrapped

BUTTONS = (("DRAWER", "GaussiAnimate", "SHADING_RENDERED"), ("NATIVE", "Native", "BLENDER"))


class GAUSSIANIMATE_PT_display(SubPanel, bpy.types.Panel):
    """Who draws, and what is shown."""

    bl_label = "Display"
    bl_order = 0

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Only where there is something to show."""
        return active_splats(context) is not None

    def draw(self, context: bpy.types.Context) -> None:
        """The switch; what the drawer shows; what it takes, and what keeps it from drawing."""
        layout, splats = self.layout, active_splats(context)
        display = None if splats is None else chosen_display(splats)
        row = layout.row(align=True)
        row.scale_y = 1.2
        for value, text, icon in BUTTONS:
            name = GAUSSIANIMATE_OT_set_display.bl_idname
            button = row.operator(name, text=text, icon=icon, depress=display == value)
            button.display = value
        reason_below(context, layout, GAUSSIANIMATE_OT_set_display)
        if display != CHOSEN:
            return
        if DRAWER.failure is not None:
            wrapped(context, layout, DRAWER.failure, "ERROR")
            again = layout.operator(
                GAUSSIANIMATE_OT_set_display.bl_idname, text="Try Again", icon="FILE_REFRESH"
            )
            again.display = CHOSEN
            return
        self._draw_settings(context)
        self._draw_state(context)

    def _draw_settings(self, context: bpy.types.Context) -> None:
        settings = display_settings(context.scene)
        options = self.layout.column()
        options.use_property_split = True
        options.use_property_decorate = False
        options.prop(settings, "show")
        options.prop(settings, "elastic")
        column = options.column(heading="Overlays", align=True)
        for name in ("outlines", "gradients", "unweighted"):
            column.prop(settings, name)
        armature = active_armature(context)
        if (settings.show == "WEIGHT" or settings.gradients) and (
            armature is None or armature.data.bones.active is None
        ):
            wrapped(context, self.layout, "Weights are those of the active bone: select one", "INFO")

    def _draw_state(self, context: bpy.types.Context) -> None:
        atlas = DRAWER.splats.atlas
        if atlas is not None:
            count = sum(len(span) for span in atlas.spans)
            text = f"In this scene: {count:,} splats, {atlas.memory / 1e6:.1f} MB on the graphics card"
            wrapped(context, self.layout, "\n".join([text, *atlas.notes]), "INFO")
        if DRAWER.splats.problem is not None:
            wrapped(context, self.layout, DRAWER.splats.problem, "ERROR")
