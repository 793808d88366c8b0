"""Where the skin bones of a learned rig stand now, and what that tells: how axes of then and now lie."""

from __future__ import annotations

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.errors import RigError
from .affine import fit_similarity
from .armature import SKIN_BONE
from .bind import bind_skin_rests
from .deform_nodes import bone_names, get_bind
from .modifiers import DEFORM, find_modifier
from .motion_store import kept_rests

F64 = NDArray[np.float64]
TOLERANCE = 1e-4  # of the size: skin bones that are off by more were moved


def skin_space(armature: bpy.types.Object) -> F64:
    """Return the similarity (4, 4) from the rig's axes to those of the armature, told by its skin bones.

    It is the identity unless the armature's transform was applied. Skin bones that were moved alone do not
    matter as long as most stand where they stood.

    Raises
    ------
    RigError : they do not tell
    """
    _, before = kept_rests(armature)
    now = _skin_rests(armature, before)
    known = sorted(before.keys() & now.keys())
    if not known:
        raise RigError(f"'{armature.name}' has lost all its skin bones; undo that, or build the rig again")
    old, new = np.array([before[b] for b in known]), np.array([now[b] for b in known])
    size = 1 + np.abs(old[:, :3, 3]).max()
    still = (np.abs(new - old) <= TOLERANCE * size).all(axis=(1, 2))
    if 2 * still.sum() >= len(known):
        return np.eye(4)
    applied = fit_similarity(old, new)
    if applied is None:
        raise RigError(
            f"Many skin bones of '{armature.name}' were moved, and splats follow them; undo that, or build "
            "the rig again"
        )
    return applied


def object_to_rig(object: bpy.types.Object, armature: bpy.types.Object) -> F64:
    """Return the map (4, 4) from the object's space as it is now to the rig's axes.

    The bind leads to the armature as it stood when it was bound last, its skin bones of then to the rig.
    """
    _, before = kept_rests(armature)
    bound = bind_skin_rests(object)
    bind = get_bind(_deformer_group(object))
    if len(bound) != len(before):
        return bind
    applied = fit_similarity(np.array([before[b] for b in sorted(before)]), bound)
    return bind if applied is None else np.linalg.inv(applied) @ bind


def wanted_skin(
    object: bpy.types.Object, armature: bpy.types.Object, space: F64
) -> dict[int, tuple[str, F64]]:
    """Return name and rest matrix (4, 4), in armature space, that each skin bone is to have."""
    _, before = kept_rests(armature)
    named = bone_names(_deformer_group(object))
    there = skin_bones(armature, before)
    scale = np.cbrt(np.linalg.det(space[:3, :3]))
    wanted = {}
    for b, rest in before.items():
        matrix = space @ rest
        matrix[:3, :3] /= scale
        name = there[b].name if b in there else named[b] if b < len(named) else f"skin_{b + 1:03d}"
        wanted[b] = name, matrix
    return wanted


def _skin_rests(armature: bpy.types.Object, before: dict[int, F64]) -> dict[int, F64]:
    """Rest matrices of the skin bones that are there, by index; of copies the one nearest to where it was."""
    return {b: np.array(bone.matrix_local, np.float64) for b, bone in skin_bones(armature, before).items()}


def skin_bones(armature: bpy.types.Object, before: dict[int, F64]) -> dict[int, bpy.types.Bone]:
    """Return the skin bones that are there by index; of copies the one nearest to where it was."""
    found: dict[int, bpy.types.Bone] = {}
    for bone in armature.data.bones:  # pyright: ignore[reportAttributeAccessIssue]
        index = int(bone.get(SKIN_BONE, -1))
        if index not in before:
            continue
        known = found.get(index)
        if known is None or _away(bone, before[index]) < _away(known, before[index]):
            found[index] = bone
    return found


def _away(bone: bpy.types.Bone, rest: F64) -> float:
    return float(np.abs(np.array(bone.matrix_local) - rest).max())


def _deformer_group(object: bpy.types.Object) -> bpy.types.NodeTree:
    modifier = find_modifier(object, DEFORM)
    if modifier is None:
        raise RigError(f"'{object.name}' is not rigged any more; build the rig again")
    return modifier.node_group  # pyright: ignore[reportReturnType]
