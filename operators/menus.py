"""Where else the operators are found: the File and Render menus, and files dropped on a 3D view."""

from __future__ import annotations

import bpy

from .bake_ply import GAUSSIANIMATE_OT_bake_ply
from .import_capture import GAUSSIANIMATE_OT_import_capture
from .render_splats import GAUSSIANIMATE_OT_render_splats


class GAUSSIANIMATE_FH_capture(bpy.types.FileHandler):
    """Drop the files of a capture on a 3D view."""

    bl_idname = "GAUSSIANIMATE_FH_capture"
    bl_label = "GaussiAnimate capture"
    bl_import_operator = GAUSSIANIMATE_OT_import_capture.bl_idname
    # Meshes are left to Blender's own importers: asking at every dropped .obj would be a nuisance.
    bl_file_extensions = ".ply;.splat;.ksplat;.spz;.sog;.npz"

    @classmethod
    def poll_drop(cls, context: bpy.types.Context) -> bool:
        """Only where the capture would be seen."""
        return context.area is not None and context.area.type == "VIEW_3D"


def _import_entry(menu: bpy.types.Menu, context: bpy.types.Context) -> None:
    menu.layout.operator(
        GAUSSIANIMATE_OT_import_capture.bl_idname, text="4D capture (.ply, .splat, .spz, .sog, .npz, meshes)"
    )


def _export_entry(menu: bpy.types.Menu, context: bpy.types.Context) -> None:
    menu.layout.operator(GAUSSIANIMATE_OT_bake_ply.bl_idname, text="Gaussian splats (.ply)")


def _render_entry(menu: bpy.types.Menu, context: bpy.types.Context) -> None:
    menu.layout.operator(
        GAUSSIANIMATE_OT_render_splats.bl_idname, text="Render Splats...", icon="POINTCLOUD_DATA"
    )


def register() -> None:
    """Add the entries."""
    bpy.utils.register_class(GAUSSIANIMATE_FH_capture)
    bpy.types.TOPBAR_MT_file_import.append(_import_entry)
    bpy.types.TOPBAR_MT_file_export.append(_export_entry)
    bpy.types.TOPBAR_MT_render.append(_render_entry)


def unregister() -> None:
    """Remove the entries."""
    bpy.types.TOPBAR_MT_render.remove(_render_entry)
    bpy.types.TOPBAR_MT_file_export.remove(_export_entry)
    bpy.types.TOPBAR_MT_file_import.remove(_import_entry)
    bpy.utils.unregister_class(GAUSSIANIMATE_FH_capture)
