"""Views that are given to scripts as text, and viewports brought back to the view of a layer."""

from __future__ import annotations

import json
from typing import Any, cast

import bpy
import numpy as np
from mathutils import Matrix

from ...core.errors import SelectionError
from ...core.selection.viewpoint import Viewpoint
from .gestures import camera_viewpoint, region_viewpoint, rest_matrix


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
        except (KeyError, TypeError, ValueError) as error:
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
            region = next(region for region in area.regions if region.type == "WINDOW")
            return space, region, space.region_3d
    return None


def show_view(context: bpy.types.Context, object: bpy.types.Object, seen: Viewpoint) -> None:
    """Bring a 3D viewport to the view a layer was drawn in: what was in the picture then is in it now.

    In a region of other proportions the same height is shown.

    Raises
    ------
    SelectionError : there is no 3D viewport
    """
    found = viewport(context)
    if found is None:
        raise SelectionError("There is no 3D viewport to show the layer's view in")
    space, region, view = found
    projection = np.array(seen.projection)
    orthographic = projection[3, 3] != 0
    view.view_perspective = "ORTHO" if orthographic else "PERSP"
    to_camera = np.array(seen.view) @ np.linalg.inv(rest_matrix(object))
    view.view_matrix = Matrix(_rigid(to_camera).tolist())
    view.update()
    height, target = region.height, abs(projection[1, 1]) / seen.window[3]  # of a unit, in pixels
    now = abs(cast(Any, view.window_matrix)[1][1]) / height
    if orthographic:
        matrix = view.view_matrix.copy()
        view.view_distance *= now / target
        view.view_matrix = matrix
    else:
        space.lens *= target / now
    view.update()


def _rigid(matrix: np.ndarray) -> np.ndarray:
    """Return the matrix without scale, which no viewport has."""
    u, _, vt = np.linalg.svd(matrix[:3, :3])
    rigid = matrix.copy()
    rigid[:3, :3] = u @ np.diag([1, 1, np.sign(np.linalg.det(u @ vt))]) @ vt
    return rigid
