"""Numbers of deform bones: how weights name the bones of an armature that the user built.

A rig built from a capture numbers its skin bones (`SKIN_BONE`). Any other armature gets the same numbers on
its deform bones once splats are bound to it, so that deformer, drawer and bakes need not know the
difference. Numbers go from 0 without gaps and are common to all splats bound to the armature.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import bpy

from ...core.errors import RigError
from ..armature import SKIN_BONE, indexed_bones
from ..deform_nodes import bone_names
from ..deformer import deformer, deformer_armature
from ..motion_store import has_motion
from ..point_cloud import is_splat_data
from ..subject import linked_reason
from .followers import renew


def bound_objects(armature: bpy.types.Object) -> list[bpy.types.Object]:
    """Return the file's own splat objects that the armature deforms."""
    return [
        object
        for object in bpy.data.objects
        if object.type == "POINTCLOUD"
        and object.library is None
        and is_splat_data(object.data)
        and deformer_armature(object) == armature
    ]


def number_bones(armature: bpy.types.Object) -> list[bpy.types.Bone]:
    """Give numbers to the deform bones that have none, and return all that have one, in order.

    The skin bones of a rig that learned its capture's motion stay the only ones.

    Raises
    ------
    RigError : there are no deform bones, or the armature is linked
    """
    if reason := linked_reason(armature, armature.data):
        raise RigError(reason)
    data = cast(bpy.types.Armature, armature.data)
    if not (has_motion(armature) and indexed_bones(armature, SKIN_BONE)):
        if not bound_objects(armature):
            for bone in indexed_bones(armature, SKIN_BONE):
                del bone[SKIN_BONE]
        follow_bones(armature, [b.name for b in data.bones if b.use_deform and SKIN_BONE not in b])
    bones = indexed_bones(armature, SKIN_BONE)
    if not bones:
        raise RigError(f"'{armature.name}' has no deform bones; switch Deform on in the properties of bones")
    return bones


def follow_bones(armature: bpy.types.Object, added: Sequence[str] = ()) -> bool:
    """Let numbers, weights, layers and deformers follow bones that were renamed, deleted or duplicated.

    Parameters
    ----------
    added : names of bones that get the next numbers

    Returns
    -------
    whether anything had to follow
    """
    data, objects = cast(bpy.types.Armature, armature.data), bound_objects(armature)
    known = [bone_names(_group(object)) for object in objects]
    kept = _numbered(data, max(known, key=len, default=[]))
    moved = {old: new for new, old in enumerate(sorted(kept))}
    bones = [kept[old] for old in sorted(kept)] + [data.bones[name] for name in added]
    names = [bone.name for bone in bones]
    _number(data, names)
    stale = [o for o, before in zip(objects, known, strict=True) if _is_stale(before, names, moved)]
    done: set[int] = set()
    for object in stale:
        renew(object, armature, moved, names, weights=splat_uid(object) not in done)
        done.add(splat_uid(object))
    return bool(stale)


def splat_uid(object: bpy.types.Object) -> int:
    """Return the session number of an object's splats."""
    return cast(bpy.types.ID, object.data).session_uid


def _group(object: bpy.types.Object) -> bpy.types.NodeTree:
    modifier = deformer(object)
    assert modifier is not None and modifier.node_group is not None
    return modifier.node_group


def _is_stale(before: Sequence[str], names: Sequence[str], moved: dict[int, int]) -> bool:
    return list(before) != list(names) or any(moved.get(i) != i for i in range(len(before)))


def _numbered(data: bpy.types.Armature, known: Sequence[str]) -> dict[int, bpy.types.Bone]:
    """Return the bone of each number; of copies, which carry the same, the one of the known name."""
    found: dict[int, bpy.types.Bone] = {}
    for bone in data.bones:
        number = int(bone.get(SKIN_BONE, -1))
        if number < 0:
            continue
        original = number < len(known) and known[number] == bone.name
        if number not in found or original:
            found[number] = bone
    return found


def _number(data: bpy.types.Armature, names: Sequence[str]) -> None:
    """Write the numbers, where they are not as they should be."""
    numbers = {name: number for number, name in enumerate(names)}
    for bone in data.bones:
        number = numbers.get(bone.name)
        if number is None and SKIN_BONE in bone:
            del bone[SKIN_BONE]
        elif number is not None and bone.get(SKIN_BONE) != number:
            bone[SKIN_BONE] = number
