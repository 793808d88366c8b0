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


def planned_bones(armature: bpy.types.Object) -> list[bpy.types.Bone]:
    """Return the bones that :func:`number_bones` will give the numbers from 0; changes nothing.

    The skin bones of a rig that learned its capture's motion stay the only ones.

    Raises
    ------
    RigError : there are no deform bones, or the armature is linked and lacks numbers
    """
    data, numbered = cast(bpy.types.Armature, armature.data), indexed_bones(armature, SKIN_BONE)
    missing = [bone for bone in data.bones if bone.use_deform and SKIN_BONE not in bone]
    if _is_learned(armature):
        return numbered
    if numbers_are_foreign(data):
        if numbered and not missing:
            return numbered  # bound to in its own file
        raise RigError(
            f"The bones of '{armature.name}' are linked from another file and cannot be numbered; bind "
            "splats to it in that file first, or make it and its data local (Object > Relations > Make Local)"
        )
    objects = bound_objects(armature)
    if objects:
        bones = _in_order(data, objects)
        taken = {bone.name for bone in bones}
        bones += [bone for bone in missing if bone.name not in taken]
    else:
        bones = [bone for bone in data.bones if bone.use_deform]
    if not bones:
        raise RigError(f"'{armature.name}' has no deform bones; switch Deform on in the properties of bones")
    return bones


def number_bones(armature: bpy.types.Object) -> list[bpy.types.Bone]:
    """Give numbers to the deform bones that have none, let what is bound follow, and return all in order.

    Raises
    ------
    RigError : as :func:`planned_bones`
    """
    follow_numbers(armature)  # what was edited before: new numbers take no account of it
    names = [bone.name for bone in planned_bones(armature)]
    known = _longest([bone_names(_group(object)) for object in bound_objects(armature)])
    # Where none of the bones is left that are followed, new ones are not to be taken for them.
    write_numbers(armature, names, first=0 if indexed_bones(armature, SKIN_BONE) else len(known))
    follow_numbers(armature)
    return indexed_bones(armature, SKIN_BONE)


def follow_numbers(armature: bpy.types.Object) -> None:
    """Let what is bound follow bones that were numbered or edited, but for rigs with learned motion."""
    if bound_objects(armature) and not _is_learned(armature):
        follow_bones(armature)


def numbers_are_foreign(data: bpy.types.Armature) -> bool:
    """Whether the bones' numbers are those of another file: written here, they would be lost on saving."""
    return data.library is not None or data.override_library is not None


def _is_learned(armature: bpy.types.Object) -> bool:
    """Whether the numbers are those of a motion that was learned, and stay."""
    return has_motion(armature) and bool(indexed_bones(armature, SKIN_BONE))


def write_numbers(armature: bpy.types.Object, names: Sequence[str], first: int = 0) -> None:
    """Number these bones from ``first``, and no others; what is bound has to follow then."""
    data = cast(bpy.types.Armature, armature.data)
    if not numbers_are_foreign(data):  # else they have them
        _number(data, names, first)


def bone_numbers(armature: bpy.types.Object) -> dict[str, int]:
    """Return the numbers that bones have, by name."""
    data = cast(bpy.types.Armature, armature.data)
    return {bone.name: int(bone[SKIN_BONE]) for bone in data.bones if SKIN_BONE in bone}


def restore_numbers(armature: bpy.types.Object, numbers: dict[str, int]) -> None:
    """Give bones the numbers they had."""
    data = cast(bpy.types.Armature, armature.data)
    if numbers_are_foreign(data):
        return
    for bone in data.bones:
        if bone.name in numbers:
            bone[SKIN_BONE] = numbers[bone.name]
        elif SKIN_BONE in bone:
            del bone[SKIN_BONE]


def follow_bones(armature: bpy.types.Object) -> bool:
    """Let numbers, weights, layers and deformers follow bones that were numbered, renamed, deleted or copied.

    Bones that were deleted and made anew under their names, as when Rigify generates a rig again, go on.
    Where none is left nothing follows: they may be about to be made.

    Returns
    -------
    whether anything had to follow
    """
    data, objects = cast(bpy.types.Armature, armature.data), bound_objects(armature)
    if numbers_are_foreign(data):
        return False
    known = [bone_names(_group(object)) for object in objects]
    kept = _numbered(data, _longest(known))
    if not kept:
        return False
    moved = {old: new for new, old in enumerate(sorted(kept))}
    names = [kept[old].name for old in sorted(kept)]
    _number(data, names)
    stale = [o for o, before in zip(objects, known, strict=True) if _is_stale(before, names, moved)]
    done: set[int] = set()
    for object in stale:
        renew(object, armature, moved, names, weights=splat_uid(object) not in done)
        done.add(splat_uid(object))
    return bool(stale)


def release_others(armature: bpy.types.Object, but: bpy.types.Object) -> None:
    """After bones that were all made anew were numbered for one object: let the splats of others go.

    Their weights and layers are of bones that are gone, whose numbers the new ones have now.
    """
    names, done = [bone.name for bone in indexed_bones(armature, SKIN_BONE)], {splat_uid(but)}
    for object in bound_objects(armature):
        if object != but:
            renew(object, armature, {}, names, weights=splat_uid(object) not in done)
            done.add(splat_uid(object))


def _in_order(data: bpy.types.Armature, objects: Sequence[bpy.types.Object]) -> list[bpy.types.Bone]:
    """Return the bones that have numbers, without copies."""
    kept = _numbered(data, _longest([bone_names(_group(object)) for object in objects]))
    return [kept[number] for number in sorted(kept)]


def _longest(known: Sequence[Sequence[str]]) -> Sequence[str]:
    return max(known, key=len, default=[])


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
    """Return the bone of each number; of copies, which carry the same, the one of the known name.

    A number whose bone is gone is that of a bone without one that has the known name.
    """
    found: dict[int, bpy.types.Bone] = {}
    for bone in data.bones:
        number = int(bone.get(SKIN_BONE, -1))
        if number < 0:
            continue
        original = number < len(known) and known[number] == bone.name
        if number not in found or original:
            found[number] = bone
    for number, name in enumerate(known):
        again = data.bones.get(name)
        if number not in found and again is not None and SKIN_BONE not in again:
            found[number] = again
    return found


def _number(data: bpy.types.Armature, names: Sequence[str], first: int = 0) -> None:
    """Write the numbers, where they are not as they should be."""
    numbers = {name: number for number, name in enumerate(names, first)}
    for bone in data.bones:
        number = numbers.get(bone.name)
        if number is None and SKIN_BONE in bone:
            del bone[SKIN_BONE]
        elif number is not None and bone.get(SKIN_BONE) != number:
            bone[SKIN_BONE] = number
