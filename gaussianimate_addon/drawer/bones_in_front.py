"""Bones that are shown in front stay in front of the splats."""

from __future__ import annotations

import bpy


def mask_bones_in_front(context: bpy.types.Context, depsgraph: bpy.types.Depsgraph) -> bool:
    """Set the depth to 0 where bones of armatures that are shown in front are visible.

    Returns whether there are any.
    """
    return False
