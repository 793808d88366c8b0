"""The tab: what is active, and a running job."""

from __future__ import annotations

import bpy

from ..gaussianimate_addon.job import running
from ..gaussianimate_addon.subject import active_armature
from ..gaussianimate_addon.weights.chosen import chosen_splats
from .layout import SidebarPanel, wrapped


class GAUSSIANIMATE_PT_main(SidebarPanel, bpy.types.Panel):
    """Import, rig, animate, bake."""

    bl_label = "GaussiAnimate"

    def draw(self, context: bpy.types.Context) -> None:
        """Say what the steps below work on."""
        layout = self.layout
        job = running()
        if job is not None:
            layout.progress(factor=job.fraction, text=f"{job.label}: {job.stage}")
            layout.label(text="Press Esc to cancel")
            return
        splats = chosen_splats(context)  # those beside an active armature too, which can be bound to it
        if splats is None:
            wrapped(context, layout, "Select a capture, or import one", "INFO")
            return
        armature = active_armature(context)
        column = layout.column(align=True)
        column.label(text=splats.name, icon="OUTLINER_OB_POINTCLOUD")
        column.label(text=f"{len(splats.data.points):,} splats", icon="BLANK1")
        if armature is not None:
            column.label(text=armature.name, icon="OUTLINER_OB_ARMATURE")
