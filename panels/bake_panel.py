"""Step 4: splat files of the posed frames."""

from __future__ import annotations

from typing import Any

import bpy

from ..gaussianimate_addon.properties import scene_settings
from ..gaussianimate_addon.resampling.settings import resample_settings
from ..gaussianimate_addon.subject import active_splats
from ..operators.bake_ply import GAUSSIANIMATE_OT_bake_ply
from ..operators.render_splats import GAUSSIANIMATE_OT_render_splats
from .layout import SubPanel, reason_below, wrapped


class GAUSSIANIMATE_PT_bake(SubPanel, bpy.types.Panel):
    """Write the frames."""

    bl_label = "4. Bake"
    bl_order = 4

    def draw(self, context: bpy.types.Context) -> None:
        """Folder, range and space; the whole range or one frame."""
        layout, settings, scene = self.layout, scene_settings(context), context.scene
        options = layout.column()
        options.use_property_split = True
        options.use_property_decorate = False
        options.prop(settings, "bake_directory")
        options.prop(settings, "bake_space")
        resampling = resample_settings(context)
        options.prop(resampling, "bake")
        if resampling.bake:
            options.prop(resampling, "automatic")
            if not resampling.automatic:
                options.prop(resampling, "epsilon")
            options.prop(resampling, "budget")
        frames = options.column(align=True)
        frames.prop(scene, "frame_start", text="Frames")
        frames.prop(scene, "frame_end", text="End")
        column = layout.column(align=True)
        button = column.operator(
            GAUSSIANIMATE_OT_bake_ply.bl_idname, text="Bake Frames", icon="RENDER_ANIMATION"
        )
        button.filepath = settings.bake_directory
        button.frame_start, button.frame_end = scene.frame_start, scene.frame_end
        _chosen(button, context)
        one = column.operator(
            GAUSSIANIMATE_OT_bake_ply.bl_idname, text=f"Export Frame {scene.frame_current}...", icon="EXPORT"
        )
        _chosen(one, context)
        reason_below(context, layout, GAUSSIANIMATE_OT_bake_ply)
        layout.operator(
            GAUSSIANIMATE_OT_render_splats.bl_idname, text="Render Splats...", icon="RENDER_RESULT"
        )
        if GAUSSIANIMATE_OT_bake_ply.unready(context) is None:
            reason_below(context, layout, GAUSSIANIMATE_OT_render_splats)
        if active_splats(context) is not None:
            wrapped(context, layout, "Blender's own PLY export leaves splats out; use these buttons", "INFO")


def _chosen(button: Any, context: bpy.types.Context) -> None:
    """Let a button use the settings."""
    resampling = resample_settings(context)
    button.space, button.resample = scene_settings(context).bake_space, resampling.bake
    button.epsilon = 0.0 if resampling.automatic else resampling.epsilon
    button.budget = resampling.budget
