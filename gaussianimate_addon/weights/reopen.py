"""Viewports brought back to the view of a layer, and from there to where they were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import bpy
import gpu
import numpy as np
from mathutils import Matrix
from numpy.typing import NDArray

from ...core.errors import SelectionError
from ...core.selection.viewpoint import Viewpoint
from .gestures import region_viewpoint, rest_matrix
from .pixel_map import PixelMap, is_flat, pixel_map, view_scale
from .views import viewport

F64 = NDArray[np.float64]
LENSES = (1.0, 250.0)  # that a viewport can have


@dataclass(frozen=True)
class ViewState:
    """How a viewport looks: numbers, and the names of what it is locked to."""

    perspective: str
    location: tuple[float, ...]
    rotation: tuple[float, ...]
    distance: float
    lens: float
    locked_object: str
    locked_bone: str
    locked_cursor: bool


def view_state(space: bpy.types.SpaceView3D, view: bpy.types.RegionView3D) -> ViewState:
    """Return how a viewport looks now."""
    locked: Any = space.lock_object
    return ViewState(
        view.view_perspective,
        tuple(cast(Any, view.view_location)),  # the matrix may be the camera's
        tuple(cast(Any, view.view_rotation)),
        view.view_distance,
        space.lens,
        "" if locked is None else locked.name,
        space.lock_bone,
        space.lock_cursor,
    )


def restore_view(space: bpy.types.SpaceView3D, view: bpy.types.RegionView3D, state: ViewState) -> None:
    """Let a viewport look as it did."""
    view.view_perspective = cast(Any, state.perspective)
    view.view_location, view.view_rotation = cast(Any, (state.location, state.rotation))
    view.view_distance, space.lens = state.distance, state.lens
    space.lock_object = bpy.data.objects.get(state.locked_object)
    space.lock_bone, space.lock_cursor = state.locked_bone, state.locked_cursor
    view.update()


def find_viewport(
    context: bpy.types.Context,
) -> tuple[bpy.types.SpaceView3D, bpy.types.Region, bpy.types.RegionView3D]:
    """Return the 3D viewport that is to show a layer's view.

    Raises
    ------
    SelectionError : there is none, or it cannot be drawn
    """
    found = viewport(context)
    if found is None:
        raise SelectionError("There is no 3D viewport to show the layer's view in; open one")
    if not _can_draw():
        raise SelectionError("The layer's view is shown in a window, and this Blender runs without one")
    return found


def _can_draw() -> bool:
    """Whether viewports have a graphics device: without a window only where a script has started it.

    Blender crashes where the matrices of a viewport are asked for without one.
    """
    if not bpy.app.background:
        return True
    try:
        gpu.platform.backend_type_get()
    except SystemError:
        return False
    return True


def show_view(context: bpy.types.Context, object: bpy.types.Object, seen: Viewpoint) -> PixelMap:
    """Bring a 3D viewport to the view a layer was drawn in: what was in the picture then is in it now.

    The viewport leaves its camera and whatever it is locked to. In a region of other proportions or size the
    layer's whole window is shown, as large as it fits. Where the object was moved since, the view goes along
    (where it was scaled unevenly, as nearly as a viewport can).

    Returns
    -------
    map : from the pixels of the region to those of the layer

    Raises
    ------
    SelectionError : there is no 3D viewport, the object is scaled to nothing, or the view is no camera's
    """
    space, region, view = find_viewport(context)
    rest = rest_matrix(object)
    if abs(np.linalg.det(rest)) < 1e-18:
        raise SelectionError(f"'{object.name}' is scaled to nothing; give it a scale other than 0")
    if not seen.projection[0][0] or not seen.projection[1][1] or abs(np.linalg.det(seen.view)) < 1e-18:
        raise SelectionError("The layer's view is one that no viewport can show")
    space.lock_object, space.lock_cursor = cast(Any, None), False
    view.view_perspective = "ORTHO" if is_flat(seen) else "PERSP"
    to_camera = np.array(seen.view) @ np.linalg.inv(rest)
    size = view_scale(to_camera)  # of the layer's units now, other than 1 where the object was scaled since
    matrix = _rigid(to_camera, size)
    view.view_matrix = Matrix(matrix.tolist())
    view.update()
    wanted = min(region.width * abs(seen.projection[0][0]), region.height * abs(seen.projection[1][1])) / 2
    wanted *= size if is_flat(seen) else 1
    projection: Any = view.window_matrix
    now = abs(projection[1][1]) * region.height / 2
    if is_flat(seen):
        view.view_distance *= now / wanted
        view.view_matrix = Matrix(matrix.tolist())  # the distance moved the eye
    else:
        space.lens = min(max(space.lens * wanted / now, LENSES[0]), LENSES[1])
    view.update()
    return pixel_map(region_viewpoint(object, region, view), seen)


def _rigid(matrix: F64, size: float) -> F64:
    """Return the matrix without scale, which no viewport has; what it shows stays where it is seen."""
    u, _, vt = np.linalg.svd(matrix[:3, :3])
    rigid = matrix.copy()
    rigid[:3, :3] = u @ np.diag([1, 1, np.sign(np.linalg.det(u @ vt))]) @ vt
    rigid[:3, 3] /= size
    return rigid
