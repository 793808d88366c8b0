"""Views that are given to scripts as text, and the 3D viewport there is."""

from __future__ import annotations

import json
from typing import Any

import bpy

from ...core.errors import SelectionError
from ...core.selection.viewpoint import Viewpoint
from .gestures import camera_viewpoint, region_viewpoint


def viewpoint_of(text: str, object: bpy.types.Object, context: bpy.types.Context) -> Viewpoint:
    """Return the viewpoint a script names.

    Parameters
    ----------
    text : the name of a camera object (pixels are those of the render), or JSON of a `Viewpoint`
        (``view``, ``projection``, ``window``), or nothing for the 3D viewport of the context

    Raises
    ------
    SelectionError : it is none of these
    """
    if text.lstrip().startswith("{"):
        try:
            return Viewpoint.from_dict(json.loads(text))
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise SelectionError(f"The view cannot be read: {error}") from error
    if text:
        camera = bpy.data.objects.get(text)
        if camera is None or camera.type != "CAMERA":
            raise SelectionError(f"There is no camera '{text}' to select through")
        return camera_viewpoint(object, camera, context)
    region, view = context.region, context.region_data
    if view is None or region is None or region.type != "WINDOW":
        found = viewport(context)
        if found is None:
            raise SelectionError("There is no 3D viewport to select in; name a camera")
        _, region, view = found
    return region_viewpoint(object, region, view)


def viewport(
    context: bpy.types.Context,
) -> tuple[bpy.types.SpaceView3D, bpy.types.Region, bpy.types.RegionView3D] | None:
    """Return the 3D viewport of the context's area, else the window's first."""
    areas = [context.area] if context.area is not None else []
    areas += list(context.screen.areas) if context.screen is not None else []
    for area in areas:
        if area.type == "VIEW_3D":
            space: Any = area.spaces.active
            # of the four of a quad view, the last one is the view's own
            region = [region for region in area.regions if region.type == "WINDOW"][-1]
            return space, region, space.region_3d
    return None
