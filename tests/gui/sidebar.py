"""Buttons of the sidebar, pressed with the mouse; found by hovering until Blender tells which is under it."""

from __future__ import annotations

import bpy
import driver

STEP = 8  # pixels, less than half of a button's height
TABS = 24  # pixels at the right
_seen: dict[tuple[str, float], int] = {}  # height at which a button was found the last time


def open_panel(name):
    """Let a panel be open and those beside it closed, as a user may have them."""
    others = [cls for cls in bpy.types.Panel.__subclasses__() if hasattr(cls, "bl_parent_id")]
    for panel in others:
        if not panel.__name__.startswith("GAUSSIANIMATE_PT_"):
            continue
        bpy.utils.unregister_class(panel)
        panel.bl_options = set() if panel.__name__.endswith(f"_{name}") else {"DEFAULT_CLOSED"}
        bpy.utils.register_class(panel)


def click(hand, operator, across=0.5):
    """Press the button of an operator; use with ``yield from``.

    operator : as in ``gaussianimate.bind``
    across : where the button is, from the left (0) to the right (1)
    """
    region = sidebar()
    x, known = region.x + int(across * (region.width - TABS)), _seen.get((operator, across))
    heights = range(region.y + region.height - STEP, region.y, -STEP)
    for y in ([known] if known is not None else []) + list(heights):
        hand.point(x, y)
        yield 0.15
        if f"bpy.ops.{operator}(" in hovered(region):
            _seen[operator, across] = y
            hand.down()
            yield 0.15
            hand.up()
            yield 0.6
            return
    raise AssertionError(f"no button of {operator} in the sidebar")


def sidebar():
    return next(region for region in driver.view()["area"].regions if region.type == "UI")


def hovered(region):
    """Return the Python call of the button below the mouse, nothing where there is none."""
    where = driver.view() | {"region": region}
    with bpy.context.temp_override(**where):
        if not bpy.ops.ui.copy_python_command_button.poll():
            return ""
        bpy.ops.ui.copy_python_command_button()
    return bpy.context.window_manager.clipboard
