"""The tools that draw selections, in the toolbar of the 3D viewport."""

from __future__ import annotations

from typing import Any

import bpy

from ..gaussianimate_addon.weights.gesture_settings import gesture_settings

IDNAME = "gaussianimate.add_selection_layer"
TOOLS = (
    ("RECTANGLE", "Weights Rectangle", "ops.sculpt.border_mask"),
    ("ELLIPSE", "Weights Ellipse", "ops.gpencil.primitive_circle"),
    ("LASSO", "Weights Lasso", "ops.sculpt.lasso_mask"),
    ("STROKE", "Weights Brush", "brush.generic"),
)
MODES = ("OBJECT", "POSE")
_registered: list[type] = []


def _draw_settings(shape: str) -> Any:
    def draw_settings(context: Any, layout: bpy.types.UILayout, tool: Any) -> None:
        settings = gesture_settings(context)
        for name in ("operation", "strength", "smoothness", "curve", "through"):
            layout.prop(settings, name)
        if not settings.through:
            layout.prop(settings, "depth")
        if shape == "STROKE":
            layout.prop(settings, "radius")

    return staticmethod(draw_settings)


def _keymap(shape: str) -> tuple[Any, ...]:
    """Press the left button, with Ctrl to subtract."""
    return tuple(
        (IDNAME, {"type": "LEFTMOUSE", "value": "PRESS", "ctrl": ctrl}, {"properties": [("shape", shape)]})
        for ctrl in (False, True)
    )


def _tool(mode: str, shape: str, label: str, icon: str) -> type:
    contents = {
        "bl_space_type": "VIEW_3D",
        "bl_context_mode": mode,
        "bl_idname": f"gaussianimate.{shape.lower()}_{mode.lower()}",
        "bl_label": label,
        "bl_description": "Draw a soft selection over the splats: the active bone's weights",
        "bl_icon": icon,
        "bl_widget": None,
        "bl_keymap": _keymap(shape),
        "draw_settings": _draw_settings(shape),
    }
    return type(f"GAUSSIANIMATE_TOOL_{shape.lower()}_{mode.lower()}", (bpy.types.WorkSpaceTool,), contents)


def register() -> None:
    """Add the tools, as one group, to object and pose mode."""
    for mode in MODES:
        previous = None
        for shape, label, icon in TOOLS:
            tool = _tool(mode, shape, label, icon)
            if previous is None:
                bpy.utils.register_tool(tool, separator=True, group=True)
            else:
                bpy.utils.register_tool(tool, after={previous})
            previous = tool.bl_idname  # type: ignore[attr-defined]
            _registered.append(tool)


def unregister() -> None:
    """Undo :func:`register`."""
    while _registered:
        bpy.utils.unregister_tool(_registered.pop())  # pyright: ignore[reportArgumentType]
