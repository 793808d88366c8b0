"""What Blender draws for bones: templates, and the places at which they stand.

A template is a mesh in a bone's own axes, Y along the bone. The shapes are those of Blender's overlay:
octahedra with balls at their ends, boxes of the B-bones' width, chains of balls for envelopes, lines for
sticks, and custom shapes. Bent B-bones are taken as straight; lines to parents, axes and empties as custom
shapes are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, cast

import bpy
import numpy as np
from mathutils import Matrix
from numpy.typing import NDArray

F32 = NDArray[np.float32]
BALL = 0.05  # radius of the ends, of the bone's length
STICK = 3  # half width, px
STEPS = 9  # balls of an envelope


@dataclass(frozen=True, eq=False)
class Template:
    """A mesh that bones are drawn with.

    points : (V, 3), corners of triangles or ends of lines, one after the other
    wire : whether they are lines
    spread : px by which they are widened
    faces_eye : a ball seen as a disc, whose axes are the view's
    """

    points: F32
    wire: bool = False
    spread: int = 1
    faces_eye: bool = False


@dataclass(frozen=True)
class _Bones:
    """Visible bones of an armature.

    matrices : (B, 4, 4) to armature space, Y along the bone
    lengths : (B,)
    connected : (B,) whether the head is the parent's tail
    kinds : (B,) how each is displayed
    bones : their bones or edit bones
    """

    matrices: F32
    lengths: F32
    connected: NDArray[np.bool_]
    kinds: NDArray[np.str_]
    bones: Sequence[Any]


Placed = tuple[Template, F32]


def bone_silhouettes(context: bpy.types.Context, depsgraph: bpy.types.Depsgraph) -> list[Placed]:
    """Return templates and where they stand, (n, 4, 4) to world space, for all bones that are in front.

    These are the visible bones of armatures that show in front and are visible in the context's viewport.
    """
    space: Any = context.space_data
    if not space.overlay.show_bones:
        return []
    clear = space.shading.type == "WIREFRAME" or (space.shading.type == "SOLID" and space.shading.show_xray)
    found: dict[Template, list[F32]] = {}
    for armature in context.view_layer.objects:
        shown = armature.type == "ARMATURE" and armature.show_in_front
        if not shown or not armature.visible_in_viewport_get(space):
            continue
        world = np.array(armature.evaluated_get(depsgraph).matrix_world, np.float32)
        wire = clear or armature.display_type in ("WIRE", "BOUNDS")
        for template, places in _placed(armature, depsgraph, wire):
            if len(places):
                found.setdefault(template, []).append(world @ places)
    return [(template, np.concatenate(places)) for template, places in found.items()]


def _placed(armature: bpy.types.Object, depsgraph: bpy.types.Depsgraph, wire: bool) -> Iterator[Placed]:
    """Yield templates and where they stand, (n, 4, 4) to armature space."""
    if armature.mode == "EDIT":
        bones = _edit_bones(armature)
    else:
        posed = armature.evaluated_get(depsgraph)
        bones, custom = _pose_bones(armature, posed)
        for pose_bone, matrix in custom:
            yield from _custom(pose_bone, matrix, wire)
    for kind, place in _PLACES.items():
        rows = np.flatnonzero(bones.kinds == kind)
        if len(rows):
            few = _Bones(
                bones.matrices[rows],
                bones.lengths[rows],
                bones.connected[rows],
                bones.kinds[rows],
                [bones.bones[row] for row in rows.tolist()],
            )
            yield from place(few, wire)


def _visible(bone: Any, collections: Iterable[Any]) -> bool:
    """Whether a pose or edit bone is neither hidden nor in hidden collections only."""
    several = list(collections)
    return not bone.hide and (not several or any(c.is_visible_effectively for c in several))


def _kind(armature: bpy.types.Object, bone: Any) -> str:
    own = getattr(bone, "display_type", "ARMATURE_DEFINED")
    return cast(Any, armature.data).display_type if own == "ARMATURE_DEFINED" else own


def _bones(armature: bpy.types.Object, bones: list[Any], matrices: F32) -> _Bones:
    connected = [bone.parent is not None and bone.use_connect for bone in bones]
    return _Bones(
        matrices=matrices.reshape(-1, 4, 4),
        lengths=np.array([bone.length for bone in bones], np.float32),
        connected=np.array(connected, bool),
        kinds=np.array([_kind(armature, bone) for bone in bones], np.str_),
        bones=bones,
    )


def _edit_bones(armature: bpy.types.Object) -> _Bones:
    edit_bones: Any = cast(bpy.types.Armature, armature.data).edit_bones
    shown = [bone for bone in edit_bones if _visible(bone, bone.collections)]
    return _bones(armature, shown, np.array([bone.matrix for bone in shown], np.float32))


def _pose_bones(
    armature: bpy.types.Object, posed: bpy.types.Object
) -> tuple[_Bones, list[tuple[bpy.types.PoseBone, F32]]]:
    """Return the bones of usual shapes, and those with custom shapes with their matrices."""
    pose: Any = posed.pose
    matrices = np.empty((len(pose.bones), 4, 4), np.float32)
    pose.bones.foreach_get("matrix", matrices.ravel())
    matrices = matrices.transpose(0, 2, 1)  # Blender stores columns
    with_shapes = cast(Any, armature.data).show_bone_custom_shapes
    rows, bones, custom = [], [], []
    for row, pose_bone in enumerate(pose.bones):
        if not _visible(pose_bone, pose_bone.bone.collections):
            continue
        if with_shapes and pose_bone.custom_shape is not None:
            custom.append((pose_bone, matrices[row]))
        else:
            rows.append(row)
            bones.append(pose_bone.bone)
    return _bones(armature, bones, matrices[rows]), custom


def _scaled(matrices: F32, *factors: float | F32) -> F32:
    """Return matrices (n, 4, 4) of axes stretched by (n,) or one factor each."""
    columns = [matrices[:, :, i] * np.reshape(factor, (-1, 1)) for i, factor in enumerate(factors)]
    return np.stack([*columns, matrices[:, :, 3]], axis=2)


def _moved(matrices: F32, along: float | F32) -> F32:
    """Return matrices (n, 4, 4) moved along their own Y axis."""
    moved = matrices.copy()
    moved[:, :, 3] += matrices[:, :, 1] * np.reshape(along, (-1, 1))
    return moved


def _octahedra(bones: _Bones, wire: bool) -> Iterator[Placed]:
    placed = _scaled(bones.matrices, *[bones.lengths] * 3)
    yield _octahedron_wire(), placed  # far bones are thinner than a pixel, which only lines do not miss
    if not wire:
        yield _octahedron(), placed
        yield _ball(), _scaled(_moved(placed, 1.0), *[BALL] * 3)
        yield _ball(), _scaled(placed[~bones.connected], *[BALL] * 3)


def _boxes(bones: _Bones, wire: bool) -> Iterator[Placed]:
    width, depth = (
        np.array([getattr(bone, name) for bone in bones.bones], np.float32) for name in ("bbone_x", "bbone_z")
    )
    placed = _scaled(bones.matrices, width, bones.lengths, depth)
    yield _box_wire(), placed
    if not wire:
        yield _box(), placed


def _envelopes(bones: _Bones, wire: bool) -> Iterator[Placed]:
    head, tail = (
        np.array([getattr(bone, name) for bone in bones.bones], np.float32)
        for name in ("head_radius", "tail_radius")
    )
    if wire:
        yield from _lines(bones, wire)
        return
    for t in np.linspace(0, 1, STEPS).tolist():
        radii = ((1 - t) * head + t * tail).astype(np.float32)
        yield _ball(), _scaled(_moved(bones.matrices, t * bones.lengths), *[radii] * 3)


def _sticks(bones: _Bones, wire: bool) -> Iterator[Placed]:
    yield _segment(STICK), _scaled(bones.matrices, *[bones.lengths] * 3)


def _lines(bones: _Bones, wire: bool) -> Iterator[Placed]:
    yield _segment(1), _scaled(bones.matrices, *[bones.lengths] * 3)


_PLACES: dict[str, Callable[[_Bones, bool], Iterator[Placed]]] = {
    "OCTAHEDRAL": _octahedra,
    "BBONE": _boxes,
    "ENVELOPE": _envelopes,
    "STICK": _sticks,
    "WIRE": _lines,
}


def _custom(pose_bone: bpy.types.PoseBone, matrix: F32, wire: bool) -> Iterator[Placed]:
    """Yield the shape of a bone that has its own, as Blender places it."""
    shape: Any = pose_bone.custom_shape
    if shape.type != "MESH":
        return
    other = pose_bone.custom_shape_transform
    base = matrix if other is None else np.array(other.matrix, np.float32)
    scale = pose_bone.custom_shape_scale_xyz.copy()
    if pose_bone.use_custom_shape_bone_size:
        scale *= pose_bone.bone.length
    turn: Any = pose_bone.custom_shape_rotation_euler
    local = Matrix.LocRotScale(cast(Any, pose_bone.custom_shape_translation), turn, cast(Any, scale))
    places = (base @ np.array(local, np.float32))[None]
    yield _mesh(shape.data, True, max(1, round(pose_bone.custom_shape_wire_width))), places
    if len(shape.data.polygons) and not wire and not pose_bone.bone.show_wire:
        yield _mesh(shape.data, False, 1), places


_meshes: dict[tuple[int, bool, int], tuple[bytes, Template]] = {}


def _mesh(mesh: bpy.types.Mesh, wire: bool, thick: int) -> Template:
    """Return a mesh as a template, the same one until its points change."""
    points = np.empty((len(mesh.vertices), 3), np.float32)
    cast(Any, mesh.vertices).foreach_get("co", points.ravel())
    key, state = (mesh.session_uid, wire, thick), points.tobytes()
    known = _meshes.get(key)
    if known is not None and known[0] == state:
        return known[1]
    rows: Any = mesh.edges if wire else mesh.loop_triangles
    if not wire:
        mesh.calc_loop_triangles()
    corners = np.empty((len(rows), 2 if wire else 3), np.int32)
    rows.foreach_get("vertices", corners.ravel())
    template = Template(points[corners.ravel()], wire, thick)
    _meshes[key] = state, template
    return template


_OCTAHEDRON = np.array(
    [(0, 0, 0), (0.1, 0.1, 0.1), (0.1, 0.1, -0.1), (-0.1, 0.1, -0.1), (-0.1, 0.1, 0.1), (0, 1, 0)], np.float32
)
_RING = [(1, 2), (2, 3), (3, 4), (4, 1)]
_CUBE = np.array(list(product((-1, 1), (0, 1), (-1, 1))), np.float32)  # x, y, z; the last counts fastest


@cache
def _octahedron() -> Template:
    faces = [(end, *edge) for end in (0, 5) for edge in _RING]
    return Template(_OCTAHEDRON[np.ravel(faces)])


@cache
def _octahedron_wire() -> Template:
    edges = _RING + [(end, corner) for end in (0, 5) for corner in range(1, 5)]
    return Template(_OCTAHEDRON[np.ravel(edges)], wire=True)


@cache
def _box() -> Template:
    quads = [(0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5)]
    return Template(_CUBE[[i for a, b, c, d in quads for i in (a, b, c, a, c, d)]])


@cache
def _box_wire() -> Template:
    edges = [(a, a | bit) for bit in (1, 2, 4) for a in range(8) if not a & bit]
    return Template(_CUBE[np.ravel(edges)], wire=True)


@cache
def _segment(spread: int) -> Template:
    return Template(np.array([(0, 0, 0), (0, 1, 0)], np.float32), wire=True, spread=spread)


@cache
def _ball(around: int = 12) -> Template:
    """A ball of radius 1."""
    turn = np.linspace(0, 2 * np.pi, around + 1)
    rim = np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=1)
    corners = np.stack([np.zeros((around, 3)), rim[:-1], rim[1:]], axis=1)
    return Template(corners.reshape(-1, 3).astype(np.float32), faces_eye=True)
