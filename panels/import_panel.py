"""Step 1: get a capture."""

from __future__ import annotations

import bpy

from ..gaussianimate_addon.properties import object_notes, scene_settings
from ..gaussianimate_addon.subject import active_splats
from ..operators.capture_from_object import GAUSSIANIMATE_OT_capture_from_object
from ..operators.import_capture import GAUSSIANIMATE_OT_import_capture
from .layout import SubPanel, wrapped


class GAUSSIANIMATE_PT_import(SubPanel, bpy.types.Panel):
    """Files, or an animated mesh."""

    bl_label = "1. Import"
    bl_order = 1

    def draw(self, context: bpy.types.Context) -> None:
        """Offer both sources and what the last one had to say."""
        layout, settings = self.layout, scene_settings(context)
        column = layout.column(align=True)
        files = column.operator(GAUSSIANIMATE_OT_import_capture.bl_idname, icon="IMPORT")
        mesh = column.operator(GAUSSIANIMATE_OT_capture_from_object.bl_idname, icon="MESH_DATA")
        files.splat_count = mesh.splat_count = settings.splat_count
        layout.prop(settings, "splat_count", text="Mesh Splats")
        splats = active_splats(context)
        if splats is not None and object_notes(splats).import_notes:
            wrapped(context, layout, object_notes(splats).import_notes, "INFO")
