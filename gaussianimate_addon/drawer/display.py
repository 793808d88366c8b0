"""Who draws a splat object in viewports: Blender, or the drawer."""

from __future__ import annotations

from typing import cast

import bpy

from ...gpu_shaders import SkinLayout
from ..modifiers import DISPLAY, remove_modifier
from ..point_cloud import is_splat_data
from ..preferences import preferences
from ..properties import display_settings, object_notes
from .draw import Shading, Show
from .viewport_subset import thin_out

DRAWER, NATIVE = "DRAWER", "NATIVE"


def drawn_objects() -> list[bpy.types.Object]:
    """Return the file's own splat objects that the drawer draws, in the order of their names.

    Objects linked from another file are shown by Blender, whose display they keep.
    """
    return [
        object
        for object in bpy.data.objects
        if object.type == "POINTCLOUD"  # which most are not, and which is soon said
        and object_notes(object).display == DRAWER
        and object.library is None
        and is_splat_data(object.data)
    ]


def set_display(object: bpy.types.Object, display: str) -> None:
    """Let the drawer (`DRAWER`) or Blender (`NATIVE`) draw the object in viewports.

    Blender's own drawing is switched off by Display As Bounds, which no render minds, and what of it that
    leaves, with the deformer's work in viewports, by `thin_out`.
    """
    notes = object_notes(object)
    if display == DRAWER:
        if notes.display != DRAWER:
            notes.native_display = object.display_type
        notes.display = DRAWER
        _hand_over(object)
    elif notes.display == DRAWER:
        notes.display = NATIVE
        _give_back(object)
        remove_modifier(object, DISPLAY)


def hand_over_all() -> None:
    """Switch Blender's own drawing off for all objects that the drawer draws."""
    for object in drawn_objects():
        _hand_over(object)


def give_back_all() -> None:
    """Let Blender draw all objects, which keep their chosen display: for files, and where drawing fails."""
    for object in drawn_objects():
        _give_back(object)


def _hand_over(object: bpy.types.Object) -> None:
    if object.display_type != "BOUNDS":
        object.display_type = "BOUNDS"
    thin_out(object, True)


def _give_back(object: bpy.types.Object) -> None:
    native = object_notes(object).native_display or "TEXTURED"
    if object.display_type == "BOUNDS" and native != "BOUNDS":
        object.display_type = native  # pyright: ignore[reportAttributeAccessIssue]
    thin_out(object, False)


def display_shading(context: bpy.types.Context) -> Shading:
    """Return how the scene wants its splats drawn."""
    settings = display_settings(context.scene)
    return Shading(
        show=Show[settings.show],
        elastic=1.0 if settings.elastic else 0.0,
        outlines=settings.outlines,
        mark_unweighted=settings.unweighted,
        gradients=settings.gradients,
        scene_linear=True,
    )


def skin_layout(context: bpy.types.Context) -> SkinLayout:
    """Return how weights are stored on the graphics card."""
    chosen = preferences(context)
    return cast(SkinLayout, chosen.skin_layout.lower()) if chosen is not None else "exact"
