"""Add-on preferences: what is remembered between sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bpy

from .views import redraw_views

# The package Blender knows us by: "bl_ext.<repo>.gaussianimate", or "gaussianimate" for a checkout.
PACKAGE = __package__.rpartition(".")[0]

UP_AXES = (
    ("Z", "Z up", "Blender, Houdini"),
    ("Y", "Y up", "glTF, most character tools"),
    ("NEG_Y", "-Y up", "COLMAP and most trained splats: the camera's down axis is +Y"),
)
SKIN_LAYOUTS = (
    ("EXACT", "Exact", "Floats: 16 bytes a splat for each bone that holds it"),
    ("COMPACT", "Compact", "16 bits a value: 10 bytes a splat for two bones, 28 for four"),
    ("PAPER10", "Paper", "8 bits a value and two bones: 8 bytes a splat, as in the gradient rig's paper"),
)


def _redraw(self: bpy.types.AddonPreferences, context: bpy.types.Context) -> None:
    redraw_views()


class GaussianimatePreferences(bpy.types.AddonPreferences):
    """Shown under Edit > Preferences > Add-ons."""

    bl_idname = PACKAGE

    if TYPE_CHECKING:
        up_axis: str
        skin_layout: str
    else:
        up_axis: bpy.props.EnumProperty(
            name="Up Axis of Captures",
            description="Assumed for files that do not say; the axis last chosen at an import",
            items=UP_AXES,
            default="Y",
        )
        skin_layout: bpy.props.EnumProperty(
            name="Weights on the Graphics Card",
            description="How the drawer stores weights and their gradients",
            items=SKIN_LAYOUTS,
            default="EXACT",
            update=_redraw,
        )

    def draw(self, context: bpy.types.Context) -> None:
        self.layout.prop(self, "up_axis")
        self.layout.prop(self, "skin_layout")


def preferences(context: bpy.types.Context) -> GaussianimatePreferences | None:
    """Return the add-on's preferences, None where it is registered without being enabled."""
    addon = context.preferences.addons.get(PACKAGE)
    return addon.preferences if addon is not None else None  # pyright: ignore[reportReturnType]
