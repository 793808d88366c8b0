"""Show which splats a resampling would split, before it does."""

from __future__ import annotations

import bpy

from ..gaussianimate_addon.properties import object_notes
from ..gaussianimate_addon.resampling.overlay import hide_overlay, show_overlay
from ..gaussianimate_addon.resampling.task import Answer
from .resampling_options import ResamplingJob


class GAUSSIANIMATE_OT_show_bent(ResamplingJob, bpy.types.Operator):
    """Show which splats Resample would split with these settings: green once, to red several times"""

    bl_idname = "gaussianimate.show_bent"
    bl_label = "Show Bent Splats"
    bl_options = {"REGISTER"}

    def apply(self, context: bpy.types.Context, result: Answer) -> None:
        """Lay it over the splats, which GaussiAnimate draws from now on."""
        object = self.subject()
        before = object_notes(object).display
        for line in show_overlay(object, result).splitlines():
            self.report({"INFO"}, line)
        self.job_undo = object_notes(object).display != before


class GAUSSIANIMATE_OT_hide_bent(bpy.types.Operator):
    """Show the splats in their colours again"""

    bl_idname = "gaussianimate.hide_bent"
    bl_label = "Hide Bent Splats"
    bl_options = {"INTERNAL"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Remove the overlay."""
        hide_overlay()
        return {"FINISHED"}
