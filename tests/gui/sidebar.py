"""Buttons of the sidebar, pressed with the mouse; found by hovering until Blender tells which is under it."""

from __future__ import annotations

import bpy
import driver

ROW = 26  # pixels from one row of buttons to the next
STEP = 8  # pixels, less than half of a button's height
PANEL = "GAUSSIANIMATE_PT_"
TABS = 24  # pixels at the right
_seen: dict[tuple[str, float], int] = {}  # height at which a button was found the last time


def open_panels(*names):
    """Let some panels be open and those beside them closed, as a user may have them; before they are seen."""
    others = [cls for cls in bpy.types.Panel.__subclasses__() if hasattr(cls, "bl_parent_id")]
    for panel in others:
        if not panel.__name__.startswith(PANEL):
            continue
        bpy.utils.unregister_class(panel)
        panel.bl_options = set() if panel.__name__.removeprefix(PANEL) in names else {"DEFAULT_CLOSED"}
        bpy.utils.register_class(panel)


def click(hand, operator, across=0.5, below=0):
    """Press the button of an operator; use with ``yield from``.

    operator : as in ``gaussianimate.bind``
    across : where the button is, from the left (0) to the right (1)
    below : press what is so many rows below it, such as a menu, which tells nothing of itself
    """
    yield from _hover(hand, "copy_python_command_button", f"bpy.ops.{operator}(", across)
    hand.point(hand.at[0], hand.at[1] - below * ROW)
    yield 0.15
    hand.down()
    yield 0.15
    hand.up()
    yield 0.6


def enter(hand, path, digits, across=0.7):
    """Type a number below 1 into the field of a property whose path ends so; use with ``yield from``."""
    yield from _hover(hand, "copy_data_path_button", path, across)
    yield from hand.key("RET")
    for key in ("PERIOD", *digits, "RET"):
        yield from hand.key(key)
    yield 0.6


def _hover(hand, copy, text, across):
    """Go to the button that tells this text of itself."""
    region = sidebar()
    x, known = region.x + int(across * (region.width - TABS)), _seen.get((text, across))
    heights = range(region.y + region.height - STEP, region.y, -STEP)
    for y in ([known] if known is not None else []) + list(heights):
        hand.point(x, y)
        yield 0.15
        if text in _told(copy, region):
            _seen[text, across] = y
            return
    raise AssertionError(f"no {text} in the sidebar")


def sidebar():
    return next(region for region in driver.view()["area"].regions if region.type == "UI")


def _told(copy, region):
    """Return what Blender copies of the button below the mouse, nothing where there is none."""
    where, act = driver.view() | {"region": region}, getattr(bpy.ops.ui, copy)
    with bpy.context.temp_override(**where):
        if not act.poll() or act() != {"FINISHED"}:
            return ""
    return bpy.context.window_manager.clipboard
