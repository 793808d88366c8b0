"""Which splats and armature are meant while they do not belong together yet."""

from __future__ import annotations

import bpy

from ..point_cloud import is_splat_data
from ..subject import active_splats


def chosen_splats(context: bpy.types.Context) -> bpy.types.Object | None:
    """Return the active splats (or the active armature's), else the first selected ones."""
    active = active_splats(context)
    if active is not None and (active == context.active_object or chosen_armature(context) is None):
        return active
    selected = context.selected_objects
    return next((object for object in selected if is_splat_data(object.data)), active)


def chosen_armature(context: bpy.types.Context) -> bpy.types.Object | None:
    """Return the active armature, else the first selected one."""
    active = context.active_object
    if active is not None and active.type == "ARMATURE":
        return active
    return next((object for object in context.selected_objects if object.type == "ARMATURE"), None)
