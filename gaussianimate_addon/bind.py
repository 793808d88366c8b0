"""What a deformer was bound to, whether that still holds, and how it is mended.

Blender's Apply moves the positions of splats but neither their scales, rotations and colours nor the bind;
on an armature it moves the bones but not the location keys. Some reference points of the splats and the
rest matrices of the skin bones are therefore stored when binding. From where they are now follows the map
that was applied, and with it everything that Apply left behind can follow.
"""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.deform.deform import diagonal
from ..core.errors import RigError
from .affine import apply_affine, fit_affine, fit_similarity
from .armature import SKIN_BONE, bone_matrices, indexed_bones
from .attributes import read_attribute, splats
from .capture_frames import COUNT, frames_object
from .deform_nodes import bone_names, get_bind, is_deform_group, own_group, set_bind, set_bone_names
from .modifiers import DEFORM, find_modifier, get_input
from .splat_transform import transform_shapes

POINTS, BONES = "gaussianimate_points", "gaussianimate_bones"
REFERENCES = 16
TOLERANCE = 1e-5  # of the size


def remember_points(object: bpy.types.Object) -> None:
    """Store how many splats there are, and row and position of a few that lie far apart."""
    positions = read_attribute(splats(object), "position").astype(np.float64)
    object[COUNT] = len(positions)
    object[POINTS] = [float(v) for i in _spread_rows(positions) for v in (i, *positions[i])]


def remember_bind(object: bpy.types.Object, armature: bpy.types.Object) -> None:
    """Store what the deformer of the object is bound to."""
    remember_points(object)
    object[BONES] = [float(v) for v in bone_matrices(indexed_bones(armature, SKIN_BONE)).ravel()]


def bind_is_stale(object: bpy.types.Object) -> str | None:
    """Return one sentence saying what no longer fits the bind, None if everything does.

    Works for unrigged capture objects too, whose splats a native Apply leaves half transformed.
    """
    if (stale := stale_points(object)) is not None:
        return stale
    modifier = find_modifier(object, DEFORM)
    if modifier is None:
        return None
    if not is_deform_group(modifier.node_group):
        return f"The deformer of '{object.name}' was changed; build the rig again, or bind it again"
    armature = get_input(modifier, "Armature")
    if armature is None or armature.type != "ARMATURE":
        return f"The armature of '{object.name}' is gone; build the rig again, or bind to another"
    if len(indexed_bones(armature, SKIN_BONE)) != len(bone_names(modifier.node_group)):
        return f"Skin bones of '{armature.name}' were added or removed; build the rig again, or bind again"
    if bone_names(modifier.node_group) != [bone.name for bone in indexed_bones(armature, SKIN_BONE)]:
        return f"Skin bones of '{armature.name}' were renamed; repair '{object.name}' to follow them again"
    if not _bones_hold(object, armature):
        return f"The rest pose of '{armature.name}' was changed; repair '{object.name}' to follow it again"
    return None


def stale_points(object: bpy.types.Object) -> str | None:
    """Return one sentence saying what became of the splats' positions alone, None if nothing did."""
    try:
        return _applied_text(object)
    except RigError as error:
        return str(error)


def applied_reason(object: bpy.types.Object) -> str | None:
    """Return one sentence where a native Apply moved the splats' positions only, and nothing followed yet.

    What is done to weights and layers before that is repaired would be transformed with the rest then. Splats
    that were edited otherwise are taken as they are.
    """
    try:
        return _applied_text(object)
    except RigError:
        return None


def _applied_text(object: bpy.types.Object) -> str | None:
    if _applied_to_points(object) is None:
        return None
    return f"The transform of '{object.name}' was applied to its positions only; repair it to fit again"


def rebind(object: bpy.types.Object) -> None:
    """Mend a stale bind: what an Apply or a renaming left behind follows.

    Raises
    ------
    RigError : the change was no Apply of one transform (edited splats or bones), or the rig is gone.
    """
    applied = _applied_to_points(object)
    if applied is not None:
        _follow_points(object, applied)
    if find_modifier(object, DEFORM) is not None:
        follow_armature(object)


def follow_armature(object: bpy.types.Object) -> None:
    """Let a deformer follow skin bones that were renamed, or moved by an Apply of the armature's transform.

    Raises
    ------
    RigError : they were changed otherwise, or are gone
    """
    modifier: Any = find_modifier(object, DEFORM)
    if not is_deform_group(modifier.node_group):
        raise RigError(f"the deformer of '{object.name}' was changed; build the rig again, or bind it again")
    armature = get_input(modifier, "Armature")
    bones = indexed_bones(armature, SKIN_BONE) if armature is not None and armature.type == "ARMATURE" else []
    if armature is None or not bones or len(bones) != len(bone_names(modifier.node_group)):
        raise RigError(f"the skin bones of '{object.name}' are gone; build the rig again")
    group = own_group(modifier)
    if bone_names(group) != [bone.name for bone in bones]:
        set_bone_names(group, [bone.name for bone in bones])
    if not _bones_hold(object, armature):
        _follow_bones(object, armature, group)


def follow_transform(object: bpy.types.Object, matrix: NDArray[np.float64]) -> None:
    """After the splats were moved by ``matrix`` (4, 4): let the bind start from where they are now."""
    modifier = find_modifier(object, DEFORM)
    if modifier is not None and is_deform_group(modifier.node_group):
        group = own_group(modifier)
        set_bind(group, get_bind(group) @ np.linalg.inv(matrix))
    remember_points(object)


def _follow_points(object: bpy.types.Object, applied: NDArray[np.float64]) -> None:
    positions = read_attribute(splats(object), "position")
    if abs(np.linalg.det(applied[:3, :3])) < 1e-12:
        raise RigError(
            f"'{object.name}' was flattened by a scale of 0; undo that, or import the capture again"
        )
    transform_shapes(object, applied, positions)
    follow_transform(object, applied)


def _follow_bones(object: bpy.types.Object, armature: bpy.types.Object, group: bpy.types.NodeTree) -> None:
    """Let the bind and the location keys follow an Apply of the armature."""
    before = bind_skin_rests(object)
    after = bone_matrices(indexed_bones(armature, SKIN_BONE))
    applied = fit_similarity(before, after)
    if applied is None:
        raise RigError(
            f"the bones of '{armature.name}' were edited or scaled unevenly; undo that, rig anew, or bind "
            "again with Present Weights"
        )
    set_bind(group, applied @ get_bind(group))
    scale = np.cbrt(np.linalg.det(applied[:3, :3]))
    if not np.isclose(scale, 1, atol=1e-5):
        _scale_locations(armature, float(scale))
    object[BONES] = [float(v) for v in after.ravel()]


def _scale_locations(armature: bpy.types.Object, scale: float) -> None:
    """Scale the bones' locations, keyed or not, which Apply leaves in the old unit."""
    for action in _actions(armature):
        strips: list[Any] = [strip for layer in action.layers for strip in layer.strips]
        for strip in strips:
            for curve in (curve for bag in strip.channelbags for curve in bag.fcurves):
                if curve.data_path.startswith("pose.bones") and curve.data_path.endswith(".location"):
                    _scale_curve(curve, scale)
    for bone in armature.pose.bones:
        bone.location *= scale


def _actions(armature: bpy.types.Object) -> set[bpy.types.Action]:
    """Return the action the armature plays and those it keeps in custom properties (replay, pose)."""
    kept = {value for value in armature.values() if isinstance(value, bpy.types.Action)}
    playing = armature.animation_data.action if armature.animation_data else None
    return kept | {playing} if playing is not None else kept


def _scale_curve(curve: bpy.types.FCurve, scale: float) -> None:
    for part in ("co", "handle_left", "handle_right"):
        values = np.empty(2 * len(curve.keyframe_points))
        curve.keyframe_points.foreach_get(part, values)
        values[1::2] *= scale
        curve.keyframe_points.foreach_set(part, values)
    curve.update()


def _applied_to_points(object: bpy.types.Object) -> NDArray[np.float64] | None:
    """Return the map (4, 4) that was applied to the splats' positions, None if they are where they were.

    Raises
    ------
    RigError : they moved, but not by one affine map.
    """
    stored = np.array(object.get(POINTS, ()), np.float64).reshape(-1, 4)
    stored = stored[np.isfinite(stored).all(axis=1)]
    if not len(stored):
        return None
    rows, before = stored[:, 0].astype(int), stored[:, 1:]
    attribute: Any = splats(object).attributes["position"]
    positions = attribute.data
    if len(positions) != object[COUNT]:
        played = frames_object(object) is not None
        way = "import the capture again" if played else "bind them again, with Present Weights"
        raise RigError(f"splats of '{object.name}' were added or removed; {way}")
    after = np.array([positions[row].vector for row in rows], np.float64)  # panels ask at every redraw
    size = np.abs(before).max() + diagonal(before)
    if np.abs(after - before).max() <= TOLERANCE * size:
        return None
    applied = fit_affine(before, after)
    if np.abs(apply_affine(applied, before) - after).max() > 10 * TOLERANCE * (np.abs(after).max() + size):
        raise RigError(
            f"splats of '{object.name}' were moved one by one; undo that, build the rig again, or bind again"
        )
    return applied


def _bones_hold(object: bpy.types.Object, armature: Any) -> bool:
    before, after = bind_skin_rests(object), bone_matrices(indexed_bones(armature, SKIN_BONE))
    if before.shape != after.shape:
        return False
    return bool(np.abs(after - before).max() <= TOLERANCE * (1 + np.abs(before[:, :3, 3]).max()))


def bind_skin_rests(object: bpy.types.Object) -> NDArray[np.float64]:
    """Return the rest matrices (B, 4, 4) of the skin bones in armature space when the object was bound."""
    return np.array(object.get(BONES, ()), np.float64).reshape(-1, 4, 4)


def _spread_rows(positions: NDArray[np.float64]) -> list[int]:
    """Return up to `REFERENCES` rows that are finite by farthest-point sampling (Gonzalez 1985)."""
    finite = np.flatnonzero(np.isfinite(positions).all(axis=1))
    places, rows = positions[finite], [0][: len(finite)]
    distance = np.full(len(places), np.inf)
    while len(rows) < min(REFERENCES, len(places)):
        distance = np.minimum(distance, ((places - places[rows[-1]]) ** 2).sum(axis=1))
        rows.append(int(distance.argmax()))
    return finite[rows].tolist()
