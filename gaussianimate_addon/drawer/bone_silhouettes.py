"""What Blender draws for bones: templates, and the places at which they stand.

The shapes are those of Blender's overlay: octahedra with balls at their ends, boxes of the B-bones' width,
chains of balls for envelopes, lines for sticks, and custom shapes. Bent B-bones are taken as straight; lines
to parents, axes and empties as custom shapes are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import bpy
import numpy as np
from mathutils import Matrix
from numpy.typing import NDArray

from .bone_templates import (
    F32,
    Template,
    ball,
    box,
    box_wire,
    mesh_template,
    octahedron,
    octahedron_wire,
    segment,
)

BALL = 0.05  # radius of the ends, of the bone's length
STICK = 3  # half width, px
STEPS = 9  # balls of an envelope


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
    yield octahedron_wire(), placed  # far bones are thinner than a pixel, which only lines do not miss
    if not wire:
        yield octahedron(), placed
        yield ball(), _scaled(_moved(placed, 1.0), *[BALL] * 3)
        yield ball(), _scaled(placed[~bones.connected], *[BALL] * 3)


def _boxes(bones: _Bones, wire: bool) -> Iterator[Placed]:
    width, depth = (
        np.array([getattr(bone, name) for bone in bones.bones], np.float32) for name in ("bbone_x", "bbone_z")
    )
    placed = _scaled(bones.matrices, width, bones.lengths, depth)
    yield box_wire(), placed
    if not wire:
        yield box(), placed


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
        yield ball(), _scaled(_moved(bones.matrices, t * bones.lengths), *[radii] * 3)


def _sticks(bones: _Bones, wire: bool) -> Iterator[Placed]:
    yield segment(STICK), _scaled(bones.matrices, *[bones.lengths] * 3)


def _lines(bones: _Bones, wire: bool) -> Iterator[Placed]:
    yield segment(1), _scaled(bones.matrices, *[bones.lengths] * 3)


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
    yield mesh_template(shape.data, True, max(1, round(pose_bone.custom_shape_wire_width))), places
    if len(shape.data.polygons) and not wire and not pose_bone.bone.show_wire:
        yield mesh_template(shape.data, False, 1), places
