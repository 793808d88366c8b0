"""Who draws a splat object in viewports: Blender, or the drawer."""

from __future__ import annotations

from typing import cast

import bpy

from ...gpu_shaders import SkinLayout
from ..point_cloud import is_splat_data
from ..preferences import preferences
from ..properties import display_settings, object_notes
from .draw import Shading, Show

DRAWER, NATIVE = "DRAWER", "NATIVE"


def drawn_objects() -> list[bpy.types.Object]:
    """Return the file's splat objects that the drawer draws, in the order of their names."""
    return [o for o in bpy.data.objects if object_notes(o).display == DRAWER and is_splat_data(o.data)]


def set_display(object: bpy.types.Object, display: str) -> None:
    """Let the drawer (`DRAWER`) or Blender (`NATIVE`) draw the object in viewports.

    Blender's own drawing is switched off by Display As Bounds, which no render minds.
    """
    notes = object_notes(object)
    if display == DRAWER and notes.display != DRAWER:
        notes.native_display = object.display_type
        object.display_type = "BOUNDS"
    elif display == NATIVE and notes.display == DRAWER:
        object.display_type = notes.native_display or "TEXTURED"
    notes.display = display


def display_shading(context: bpy.types.Context) -> Shading:
    """Return how the scene wants its splats drawn."""
    settings = display_settings(context.scene)
    return Shading(
        show=Show[settings.show],
        elastic=1.0 if settings.elastic else 0.0,
        outlines=settings.outlines,
        mark_unweighted=settings.unweighted,
        scene_linear=True,
    )


def skin_layout(context: bpy.types.Context) -> SkinLayout:
    """Return how weights are stored on the graphics card."""
    chosen = preferences(context)
    return cast(SkinLayout, chosen.skin_layout.lower()) if chosen is not None else "exact"
