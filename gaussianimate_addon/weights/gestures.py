"""From what was drawn in a view to a selection layer, and the layer onto the splats."""

from __future__ import annotations

from typing import Any, cast

import bpy
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.errors import SelectionError
from ...core.selection.depth import FrontSurface
from ...core.selection.depth_picture import DepthPicture
from ...core.selection.feather import Feather
from ...core.selection.layer import SelectionLayer
from ...core.selection.preview import Preview
from ...core.selection.shapes import Ellipse, Lasso, Rectangle, Shape, Stroke
from ...core.selection.viewpoint import Viewpoint
from ..armature import SKIN_BONE, indexed_bones
from ..attributes import read_attribute, splats
from ..deform_nodes import get_bind
from ..deformer import deformer, deformer_armature
from ..point_cloud import BASE as COLOUR
from .followers import renew_deformer
from .gesture_path import FEWEST
from .layer_list import choose_line
from .layers import has_layers, read_layers, restart_layers, write_layers
from .numbering import bound_objects, follow_numbers, number_bones

F64 = NDArray[np.float64]
FARTHEST = 1e12  # pixels from the window's corner; far beyond, squares of them overflow
SHAPES = ("RECTANGLE", "ELLIPSE", "LASSO", "STROKE")


def rest_matrix(object: bpy.types.Object) -> F64:
    """Return where the splats stand in the world (4, 4) while their armature is at rest."""
    modifier: Any = deformer(object)
    armature = deformer_armature(object)
    if modifier is None or armature is None:
        return np.array(object.matrix_world, np.float64)
    return np.array(armature.matrix_world, np.float64) @ get_bind(modifier.node_group)


def region_viewpoint(
    object: bpy.types.Object, region: bpy.types.Region, view: bpy.types.RegionView3D
) -> Viewpoint:
    """Return how a region of a 3D viewport shows an object's splats at rest."""
    to_camera = np.array(view.view_matrix, np.float64) @ rest_matrix(object)
    window = (0, 0, region.width, region.height)
    return Viewpoint(to_camera, np.array(view.window_matrix, np.float64), window)  # type: ignore[arg-type]


def camera_viewpoint(
    object: bpy.types.Object, camera: bpy.types.Object, context: bpy.types.Context
) -> Viewpoint:
    """Return how renders through a camera show an object's splats at rest, in pixels of the render.

    Raises
    ------
    SelectionError : the camera is scaled to nothing
    """
    if abs(camera.matrix_world.determinant()) < 1e-18:
        raise SelectionError(f"'{camera.name}' is scaled to nothing; give it a scale other than 0")
    render = context.scene.render
    width, height = (
        max(render.resolution_x * render.resolution_percentage // 100, 1),
        max(render.resolution_y * render.resolution_percentage // 100, 1),
    )
    depsgraph = context.evaluated_depsgraph_get()
    projection = camera.calc_matrix_camera(
        depsgraph, x=width, y=height, scale_x=render.pixel_aspect_x, scale_y=render.pixel_aspect_y
    )
    placed = np.linalg.inv(np.array(camera.matrix_world.normalized(), np.float64))
    to_camera = placed @ rest_matrix(object)
    return Viewpoint(to_camera, np.array(projection, np.float64), (0, 0, width, height))  # type: ignore[arg-type]


def make_shape(
    kind: str, points: ArrayLike, radius: float = 50.0, angle: float = 0.0, drawn_radius: float = 0.0
) -> Shape:
    """Return what was drawn.

    Parameters
    ----------
    kind : "RECTANGLE" or "ELLIPSE" (two opposite corners of it, or of the box about it, before it is
        turned; of more points, their box), "LASSO" (its corners, closed), "STROKE" (its path)
    points : (P, 2) pixels, y up; of a stroke also (P, 3) with the radius at each point; of a lasso also a
        list of outlines, inside being where an odd number of them is
    radius : of a stroke whose points bring none, pixels
    angle : turns rectangles and ellipses counter-clockwise about their centre, radians
    drawn_radius : the ``radius`` that a stroke was drawn with whose points bring theirs; they follow it where
        it was changed since. 0: they stay

    Raises
    ------
    SelectionError : too few points, or numbers that are not finite
    """
    if kind not in SHAPES:
        raise SelectionError(f"Selections have no shape {kind}; there are {', '.join(SHAPES)}")
    if kind == "LASSO":
        outlines: Any = points if _is_nested(points) else [points]
        rings = [_rows(kind, ring) for ring in outlines]
        return Lasso(tuple(tuple(_pairs(ring)) for ring in rings)).simplified()
    rows = _rows(kind, points)
    corners = _pairs(rows)
    if kind == "STROKE":
        follow = radius / drawn_radius if drawn_radius > 0 else 1.0
        radii = rows[:, 2] * follow if rows.shape[1] == 3 else np.full(len(rows), radius)
        return Stroke(tuple(corners), tuple(radii.tolist())).simplified()
    (left, bottom), (right, top) = rows.min(axis=0).tolist(), rows.max(axis=0).tolist()
    made = Rectangle if kind == "RECTANGLE" else Ellipse
    return made(((left + right) / 2, (bottom + top) / 2), ((right - left) / 2, (top - bottom) / 2), angle)


def _is_nested(points: Any) -> bool:
    """Whether points are lists of outlines."""
    try:
        return np.ndim(points[0][0]) > 0
    except (IndexError, KeyError, TypeError, ValueError):
        return False


def _rows(kind: str, points: ArrayLike) -> F64:
    """Return points as (P, 2), or (P, 3) with radii; raise SelectionError where they are none."""
    try:
        rows = np.atleast_2d(np.asarray(points, np.float64))
    except (TypeError, ValueError, OverflowError):
        raise SelectionError("The points of a selection are rows of two numbers, x and y") from None
    if rows.ndim != 2 or rows.shape[1] not in ((2, 3) if kind == "STROKE" else (2,)):
        raise SelectionError("The points of a selection are rows of two numbers, x and y")
    if len(rows) < FEWEST[kind]:
        raise SelectionError(f"A {kind.lower()} needs at least {FEWEST[kind]} points, not {len(rows)}")
    if (np.abs(rows) > FARTHEST).any():
        raise SelectionError(f"The points of a selection are pixels, and lie within {FARTHEST:g} of them")
    return rows


def _pairs(rows: F64) -> list[tuple[float, float]]:
    return [(x, y) for x, y in rows[:, :2].tolist()]


def surface_below(
    object: bpy.types.Object, view: Viewpoint, shape: Shape, feather: Feather
) -> FrontSurface | None:
    """Return the surface of the splats seen first under a shape, None where there are no splats."""
    picture = depth_picture(object, Preview(view, read_attribute(splats(object), "position")))
    return surface_under(picture, shape, feather)


def depth_picture(object: bpy.types.Object, seen: Preview) -> DepthPicture:
    """Return the depths of an object's splats, which are seen in a view."""
    data = splats(object)
    return DepthPicture(seen, read_attribute(data, COLOUR)[:, 3], read_attribute(data, "scale"))


def surface_under(picture: DepthPicture, shape: Shape, feather: Feather) -> FrontSurface | None:
    """Return the surface under a shape with its feather, None where there are no splats."""
    bounds = shape.bounds
    if bounds is None:
        return None
    grown = max(feather.none, 0) + 1
    return picture.surface((bounds[0] - grown, bounds[1] - grown, bounds[2] + grown, bounds[3] + grown))


def layer_bone(object: bpy.types.Object, name: str) -> str:
    """Return the deform bone of that name (empty: the active one), which gets a number if it has none.

    Raises
    ------
    SelectionError : the splats are bound to nothing, or the armature has no such deform bone
    """
    armature = deformer_armature(object)
    if armature is None or armature.type != "ARMATURE":
        raise SelectionError(f"'{object.name}' is bound to no armature yet; bind it to one first")
    follow_numbers(armature)  # bones may have been edited while nothing followed them
    data = cast(bpy.types.Armature, armature.data)
    active = data.bones.active
    name = name or (active.name if active is not None else "")
    if not name:
        raise SelectionError(f"Choose a bone of '{armature.name}' to draw weights for")
    bone = data.bones.get(name)
    if bone is None:
        raise SelectionError(f"'{armature.name}' has no bone '{name}'")
    if SKIN_BONE not in bone:
        if not bone.use_deform:
            raise SelectionError(
                f"The bone '{name}' deforms nothing; choose a deform bone in the Weights panel, or switch "
                "Deform on in its properties"
            )
        number_bones(armature)
    if SKIN_BONE not in bone:
        raise SelectionError(f"The bone '{name}' is no skin bone of the rig; choose one of its skin bones")
    return name


def add_layer(object: bpy.types.Object, layer: SelectionLayer, at: int | None = None) -> tuple[str, ...]:
    """Add a layer to the splats, last or at an index, and let their weights follow; returns notes.

    It becomes the active one of the list.
    """
    start_layers(object)
    stack = read_layers(object)
    notes = write_layers(object, stack.added(layer, at))
    choose_line(object, len(stack.layers) if at is None else at)
    return notes


def start_layers(object: bpy.types.Object) -> None:
    """Let splats that were rigged from their capture carry layers too: on the weights they have."""
    armature = deformer_armature(object)
    if has_layers(object) or armature is None:
        return
    restart_layers(object, [bone.name for bone in indexed_bones(armature, SKIN_BONE)])
    for other in bound_objects(armature):
        if other.data == object.data:
            renew_deformer(other, armature)  # for as many influences as there may be now


def check_rest(object: bpy.types.Object) -> None:
    """Raise SelectionError unless the splats stand as they do at rest, which is where layers are drawn."""
    armature = deformer_armature(object)
    if armature is None:
        return
    data = cast(bpy.types.Armature, armature.data)
    if data.pose_position == "POSE" and any(not _is_identity(bone) for bone in armature.pose.bones):
        raise SelectionError(
            f"Weights are drawn on the rest pose; set '{armature.name}' to Rest Position or clear its pose"
        )


def _is_identity(bone: bpy.types.PoseBone) -> bool:
    return bool(np.allclose(np.array(bone.matrix), np.array(bone.bone.matrix_local), atol=1e-5))
