"""Splats that poses bend too much: show them, split them, put the whole ones back."""

from __future__ import annotations

from typing import Any

import bpy

from ..gaussianimate_addon.attributes import splats
from ..gaussianimate_addon.resampling.digest import is_out_of_date
from ..gaussianimate_addon.resampling.overlay import overlay_text
from ..gaussianimate_addon.resampling.settings import GaussianimateResample, resample_settings
from ..gaussianimate_addon.resampling.whole import NOTES, whole_of
from ..gaussianimate_addon.subject import active_splats
from ..operators.resample import GAUSSIANIMATE_OT_resample, GAUSSIANIMATE_OT_restore_splats
from ..operators.show_bent import GAUSSIANIMATE_OT_hide_bent, GAUSSIANIMATE_OT_show_bent
from .layout import SubPanel, reason_below, wrapped


class GAUSSIANIMATE_PT_resample(SubPanel, bpy.types.Panel):
    """Split over-stretched splats."""

    bl_label = "Resample"
    bl_order = 4
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        """The settings, the buttons, what was found or done."""
        settings, object = resample_settings(context), active_splats(context)
        self._draw_settings(settings)
        column = self.layout.column(align=True)
        shown = None if object is None else overlay_text(object)
        row = column.row(align=True)
        _chosen(row.operator(GAUSSIANIMATE_OT_show_bent.bl_idname, icon="HIDE_OFF"), settings)
        if shown is not None:
            row.operator(GAUSSIANIMATE_OT_hide_bent.bl_idname, text="", icon="X")
        _chosen(column.operator(GAUSSIANIMATE_OT_resample.bl_idname, icon="STICKY_UVS_DISABLE"), settings)
        reason_below(context, self.layout, GAUSSIANIMATE_OT_resample)
        if shown is not None:
            wrapped(context, self.layout, shown, "INFO")
        if object is not None and whole_of(splats(object)) is not None:
            self._draw_done(context, object)

    def _draw_settings(self, settings: GaussianimateResample) -> None:
        column = self.layout.column()
        column.use_property_split = True
        column.use_property_decorate = False
        column.prop(settings, "mode")
        if settings.mode == "UNIFORM":
            return
        if settings.mode == "ACTION":
            column.prop(settings, "custom_range")
            if settings.custom_range:
                frames = column.column(align=True)
                for name in ("start", "end", "step"):
                    frames.prop(settings, name)
        elif settings.mode == "LIMITS":
            column.prop(settings, "angle")
        column.prop(settings, "automatic")
        if not settings.automatic:
            column.prop(settings, "epsilon")
        column.prop(settings, "budget")

    def _draw_done(self, context: bpy.types.Context, object: bpy.types.Object) -> None:
        layout, data = self.layout, splats(object)
        notes = str(data.get(NOTES, "")).splitlines()
        for number, note in enumerate(notes):
            wrapped(context, layout, note, "ERROR" if number else "INFO")
        if is_out_of_date(data):
            wrapped(
                context, layout, "Weights changed since: resample again, which starts from the whole", "ERROR"
            )
        layout.operator(GAUSSIANIMATE_OT_restore_splats.bl_idname, icon="LOOP_BACK")


def _chosen(button: Any, settings: GaussianimateResample) -> None:
    """Let a button use the settings."""
    button.mode = settings.mode
    button.epsilon = 0.0 if settings.automatic else settings.epsilon
    button.angle = settings.angle
    if settings.mode != "UNIFORM":
        button.budget = settings.budget
    if settings.mode == "ACTION" and settings.custom_range:
        button.frame_start, button.frame_end = settings.start, settings.end
        button.frame_step = settings.step
