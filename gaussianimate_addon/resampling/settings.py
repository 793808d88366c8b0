"""What the Resample panel chooses, kept in the scene."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import bpy

MODES = (
    ("POSE", "Current Pose", "Split the splats that the pose bends too much"),
    ("ACTION", "Action", "Split for all frames of the action, or those given"),
    ("LIMITS", "Range of Motion", "Split for every bone at both ends of its range about each of its axes"),
    ("UNIFORM", "Uniform", "Split every splat once, whatever the pose"),
)
DESCRIPTIONS = {
    "epsilon": "Largest error of a splat in the poses; smaller splits more",
    "budget": "Most splats after, times those before",
    "step": "Look at every Nth frame and the last one only",
    "angle": "Range to both sides of bones that have neither limits nor a motion",
}


def free_bones() -> Any:
    """Return the property of how far bones turn that nothing else says a range of, radians."""
    return bpy.props.FloatProperty(
        name="Free Bones",
        description=DESCRIPTIONS["angle"],
        default=math.pi / 4,
        min=0.0,
        max=math.pi,
        subtype="ANGLE",
    )


class GaussianimateResample(bpy.types.PropertyGroup):
    """What a resampling starts with; one set a scene."""

    if TYPE_CHECKING:
        mode: str
        automatic: bool
        epsilon: float
        budget: float
        custom_range: bool
        start: int
        end: int
        step: int
        angle: float
        bake: bool
    else:
        mode: bpy.props.EnumProperty(name="For", description="Poses that splats are to follow", items=MODES)
        automatic: bpy.props.BoolProperty(
            name="Automatic Epsilon",
            description="Try 1, 0.5, 0.2 ... 0.001 m (small clouds: less) until hardly anything sticks out",
            default=True,
        )
        epsilon: bpy.props.FloatProperty(
            name="Epsilon",
            description=DESCRIPTIONS["epsilon"],
            default=0.01,
            min=1e-6,
            soft_max=1.0,
            precision=4,
            unit="LENGTH",
        )
        budget: bpy.props.FloatProperty(
            name="Budget", description=DESCRIPTIONS["budget"], default=3.0, min=1.0, soft_max=20.0
        )
        custom_range: bpy.props.BoolProperty(
            name="Custom Range", description="Look at other frames than those of the action"
        )
        start: bpy.props.IntProperty(name="Start", description="First frame to look at", default=1)
        end: bpy.props.IntProperty(name="End", description="Last frame to look at", default=250)
        step: bpy.props.IntProperty(name="Step", description=DESCRIPTIONS["step"], default=1, min=1)
        angle: free_bones()
        bake: bpy.props.BoolProperty(
            name="Resample",
            description="Split splats that the baked frames would bend too much; the scene stays as it is",
        )


def resample_settings(context: bpy.types.Context) -> GaussianimateResample:
    """Return the settings of the scene."""
    return cast("GaussianimateResample", context.scene.gaussianimate_resample)  # pyright: ignore[reportAttributeAccessIssue]


def register() -> None:
    """Add the settings to scenes."""
    bpy.utils.register_class(GaussianimateResample)
    bpy.types.Scene.gaussianimate_resample = bpy.props.PointerProperty(type=GaussianimateResample)  # pyright: ignore[reportAttributeAccessIssue]


def unregister() -> None:
    """Undo :func:`register`."""
    del bpy.types.Scene.gaussianimate_resample  # pyright: ignore[reportAttributeAccessIssue]
    bpy.utils.unregister_class(GaussianimateResample)
