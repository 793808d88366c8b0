"""Add-on preferences: what is remembered between sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bpy

# The package Blender knows us by: "bl_ext.<repo>.gaussianimate", or "gaussianimate" for a checkout.
PACKAGE = __package__.rpartition(".")[0]

UP_AXES = (
    ("Z", "Z up", "Blender, Houdini"),
    ("Y", "Y up", "glTF, most character tools"),
    ("NEG_Y", "-Y up", "COLMAP and most trained splats: the camera's down axis is +Y"),
)


class GaussianimatePreferences(bpy.types.AddonPreferences):
    """Shown under Edit > Preferences > Add-ons."""

    bl_idname = PACKAGE

    if TYPE_CHECKING:
        up_axis: str
    else:
        up_axis: bpy.props.EnumProperty(
            name="Up Axis of Captures",
            description="Assumed for files that do not say; the axis last chosen at an import",
            items=UP_AXES,
            default="Y",
        )

    def draw(self, context: bpy.types.Context) -> None:
        self.layout.prop(self, "up_axis")


def preferences(context: bpy.types.Context) -> GaussianimatePreferences | None:
    """Return the add-on's preferences, None where it is registered without being enabled."""
    addon = context.preferences.addons.get(PACKAGE)
    return addon.preferences if addon is not None else None  # pyright: ignore[reportReturnType]
