"""What the selection tools draw with, kept in the scene."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import bpy

OPERATIONS = (
    ("ADD", "Add", "Add the selection to the weights"),
    ("SUBTRACT", "Subtract", "Take the selection from the weights"),
    ("REPLACE", "Replace", "The selection is the weights; 0 elsewhere"),
    ("MULTIPLY", "Multiply", "Keep weights inside the selection only"),
    ("MIX", "Mix", "Paint towards the strength"),
)
CURVES = (
    ("SMOOTHSTEP", "Smooth", "Fades with a continuous slope"),
    ("LINEAR", "Linear", "Fades evenly"),
)
DESCRIPTIONS = {
    "smoothness": "Width of the fade across the edge, pixels",
    "strength": "Weight where the selection is full",
    "radius": "Of the brush, pixels",
    "through": "Select through everything, not only the surface seen first",
    "depth": "Full so far behind the surface seen first, and gone at twice that; 0: as the splats are dense",
}
REMEMBERED = ("smoothness", "strength", "operation", "radius", "curve", "through", "depth")


class GaussianimateGesture(bpy.types.PropertyGroup):
    """The settings that a gesture starts from."""

    if TYPE_CHECKING:
        smoothness: float
        strength: float
        operation: str
        radius: float
        curve: str
        through: bool
        depth: float
    else:
        smoothness: bpy.props.FloatProperty(
            name="Smoothness",
            description=DESCRIPTIONS["smoothness"] + "; wheel or [ ] while drawing",
            default=40.0,
            min=0.0,
            soft_max=400.0,
        )
        strength: bpy.props.FloatProperty(
            name="Strength",
            description=DESCRIPTIONS["strength"] + "; Shift wheel while drawing",
            default=1.0,
            min=0.0,
            max=1.0,
        )
        operation: bpy.props.EnumProperty(name="Operation", items=OPERATIONS)
        radius: bpy.props.FloatProperty(
            name="Radius", description=DESCRIPTIONS["radius"], default=50.0, min=1.0, soft_max=300.0
        )
        curve: bpy.props.EnumProperty(name="Fade", items=CURVES)
        through: bpy.props.BoolProperty(name="Through", description=DESCRIPTIONS["through"], default=True)
        depth: bpy.props.FloatProperty(
            name="Depth",
            description=DESCRIPTIONS["depth"],
            subtype="DISTANCE",
            min=0.0,
        )


def gesture_settings(context: bpy.types.Context) -> GaussianimateGesture:
    """Return the settings of the scene."""
    return cast("GaussianimateGesture", context.scene.gaussianimate_gesture)  # pyright: ignore[reportAttributeAccessIssue]


def register() -> None:
    """Add the settings to scenes."""
    bpy.utils.register_class(GaussianimateGesture)
    bpy.types.Scene.gaussianimate_gesture = bpy.props.PointerProperty(type=GaussianimateGesture)  # pyright: ignore[reportAttributeAccessIssue]


def unregister() -> None:
    """Undo :func:`register`."""
    del bpy.types.Scene.gaussianimate_gesture  # pyright: ignore[reportAttributeAccessIssue]
    bpy.utils.unregister_class(GaussianimateGesture)
