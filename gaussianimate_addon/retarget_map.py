"""Which bone of a source armature moves which joint: kept on the armature object, edited in the sidebar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.errors import RigError
from .armature import JOINT, SKELETON, SKIN_BONE

BY_HAND = 2.0  # confidence of a source bone the user chose
SAME_PLACE = 1e-5  # of a bone's length: a bone that was renamed lies where it lay


def _is_armature(_: bpy.types.PropertyGroup, object: bpy.types.Object) -> bool:
    return object.type == "ARMATURE"


def _source_chosen(settings: GaussianimateRetarget, context: bpy.types.Context) -> None:
    """A map for other bones is of no use to a new source; that for bones of the same names is kept."""
    source = settings.source
    if source is None or source.type != "ARMATURE" or not _fits(settings, source):
        settings.bones.clear()


def _chosen(pair: GaussianimateBonePair, context: bpy.types.Context) -> None:
    pair.confidence = BY_HAND
    settings = retarget_settings(cast(bpy.types.Object, pair.id_data))
    if settings.source is not None and pair.source in _bones(settings.source):
        _remember_place(pair, _bones(settings.source)[pair.source])


class GaussianimateBonePair(bpy.types.PropertyGroup):
    """One line of the map. ``name`` is the joint's bone; source bones are found again by where they lie."""

    if TYPE_CHECKING:
        joint: int
        source: str
        confidence: float
        source_head: Sequence[float]
        source_tail: Sequence[float]
    else:
        joint: bpy.props.IntProperty(description="Index of the joint, which renaming keeps", default=-1)
        source: bpy.props.StringProperty(
            name="Source Bone", description="Bone whose motion this bone gets; empty for none", update=_chosen
        )
        confidence: bpy.props.FloatProperty(description="How sure the suggestion is, 0..1; 2 set by hand")
        source_head: bpy.props.FloatVectorProperty(size=3)
        source_tail: bpy.props.FloatVectorProperty(size=3)


class GaussianimateRetarget(bpy.types.PropertyGroup):
    """What an armature takes its motion from, and how."""

    if TYPE_CHECKING:
        source: bpy.types.Object | None
        bones: bpy.types.bpy_prop_collection_idprop[GaussianimateBonePair]
        active: int
        align_rest: bool
        scale_root: bool
        in_place: bool
    else:
        source: bpy.props.PointerProperty(
            name="Source",
            description="Armature whose action is taken",
            type=bpy.types.Object,
            poll=_is_armature,
            update=_source_chosen,
        )
        bones: bpy.props.CollectionProperty(type=GaussianimateBonePair)
        active: bpy.props.IntProperty()
        align_rest: bpy.props.BoolProperty(
            name="Align Rest Poses",
            description="Limbs point as the source's do though rest poses differ, as T-pose and A-pose do",
            default=True,
        )
        scale_root: bpy.props.BoolProperty(
            name="Scale Steps",
            description="Steps as long as the legs allow; off: as the source's",
            default=True,
        )
        in_place: bpy.props.BoolProperty(name="In Place", description="Walk and run on the spot")


def retarget_settings(armature: bpy.types.ID) -> GaussianimateRetarget:
    """Return an armature object's source, options and bone map."""
    return cast("GaussianimateRetarget", armature.gaussianimate_retarget)  # pyright: ignore[reportAttributeAccessIssue]


def target_bones(armature: bpy.types.Object) -> list[bpy.types.Bone]:
    """Return the bones of the skeleton, parents first: joints of the rig, and bones added to them."""
    data = cast(bpy.types.Armature, armature.data)
    collection: Any = data.collections_all.get(SKELETON)
    known = collection is not None and not data.is_editmode  # where collections do not say
    members = {bone.name for bone in collection.bones_recursive} if known else set()
    return [bone for bone in data.bones if JOINT in bone or (bone.name in members and SKIN_BONE not in bone)]


def find_pair(armature: bpy.types.Object, bone: bpy.types.Bone) -> GaussianimateBonePair | None:
    """Return the map's line of a target bone: by its name, or by its joint where it was renamed."""
    pairs = retarget_settings(armature).bones
    named = pairs.get(bone.name)
    if named is not None:
        return named
    return next((pair for pair in pairs if pair.joint >= 0 and pair.joint == bone.get(JOINT, -2)), None)


def write_map(
    armature: bpy.types.Object,
    source: bpy.types.Object,
    sources: Sequence[str | None],
    confidences: Sequence[float],
) -> None:
    """Replace the map: a source bone, or None, for each of `target_bones`."""
    settings = retarget_settings(armature)
    settings.source = source
    settings.bones.clear()
    for bone, name, confidence in zip(target_bones(armature), sources, confidences, strict=True):
        pair = settings.bones.add()
        pair.name, pair.joint = bone.name, bone.get(JOINT, -1)
        pair.source = name or ""
        pair.confidence = confidence


def has_map(armature: bpy.types.Object, source: bpy.types.Object) -> bool:
    """Return whether there is a map for this source, or for one with bones of the same names."""
    settings = retarget_settings(armature)
    return len(settings.bones) > 0 and (settings.source == source or _fits(settings, source))


def _fits(settings: GaussianimateRetarget, source: bpy.types.Object) -> bool:
    names = {pair.source for pair in settings.bones if pair.source}
    return bool(names) and all(name in _bones(source) for name in names)


def read_map(armature: bpy.types.Object, source: bpy.types.Object) -> list[str | None]:
    """Return the source bone, or None, for each of `target_bones`; lines follow bones that were renamed.

    Raises
    ------
    RigError : the map names a bone that the source does not have any more
    """
    found: list[str | None] = []
    for bone in target_bones(armature):
        pair = find_pair(armature, bone)
        if pair is not None and pair.name != bone.name:
            pair.name = bone.name
        found.append(_source_bone(pair, bone, source) if pair is not None and pair.source else None)
    return found


def _source_bone(pair: GaussianimateBonePair, target: bpy.types.Bone, source: bpy.types.Object) -> str:
    if pair.source in _bones(source):
        return pair.source
    renamed = _bone_at(source, pair)
    if renamed is None:
        raise RigError(
            f"The bone '{pair.source}' that moves '{target.name}' is not in '{source.name}'; choose another"
            " one in the bone map, or let the map be suggested again."
        )
    kept = pair.confidence
    pair.source = renamed
    pair.confidence = kept
    return renamed


def _bones(source: bpy.types.Object) -> bpy.types.bpy_prop_collection:
    return cast(bpy.types.Armature, source.data).bones


def _remember_place(pair: GaussianimateBonePair, bone: bpy.types.Bone) -> None:
    pair.source_head, pair.source_tail = bone.head_local[:], bone.tail_local[:]


def _bone_at(source: bpy.types.Object, pair: GaussianimateBonePair) -> str | None:
    """Return the bone that lies where the one of a pair did, None where there is none or more than one."""
    wanted = np.concatenate([pair.source_head[:], pair.source_tail[:]])
    near = SAME_PLACE * max(float(np.linalg.norm(wanted[3:] - wanted[:3])), 1e-6)
    places = {bone.name: np.concatenate([bone.head_local, bone.tail_local]) for bone in _bones(source)}
    found = [name for name, place in places.items() if np.abs(place - wanted).max() < near]
    return found[0] if len(found) == 1 else None


def bone_indices(names: Sequence[str | None], sources: Sequence[str]) -> NDArray[np.intp]:
    """Return the map as indices (T,) into the source bones, -1 for none."""
    places = {name: index for index, name in enumerate(sources)}
    return np.array([-1 if name is None else places[name] for name in names], np.intp)


CLASSES = (GaussianimateBonePair, GaussianimateRetarget)


def register() -> None:
    """Add the map to objects."""
    for cls in CLASSES:
        bpy.utils.register_class(cls)
    bpy.types.Object.gaussianimate_retarget = bpy.props.PointerProperty(type=GaussianimateRetarget)  # pyright: ignore[reportAttributeAccessIssue]


def unregister() -> None:
    """Undo :func:`register`."""
    del bpy.types.Object.gaussianimate_retarget  # pyright: ignore[reportAttributeAccessIssue]
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)
