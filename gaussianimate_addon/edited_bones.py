"""From the bones as they were edited to the corrected skeleton, in the axes of the stored rig."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.deform.deform import diagonal
from ..core.errors import RigError
from ..core.rigging.edited_skeleton import EditedSkeleton
from ..core.rigging.rig import Rig
from .affine import apply_affine
from .bone_shapes import main_children, skeleton_shapes
from .motion_store import kept_rests, kept_tree
from .skeleton_bones import JointBone

F64 = NDArray[np.float64]


def edited_skeleton(
    rig: Rig, seen: list[JointBone], armature: bpy.types.Object, to_rig: F64
) -> tuple[EditedSkeleton, tuple[str, ...]]:
    """The corrected skeleton of bones as they stand, with ends where chains end, and the bones' names (J).

    Parameters
    ----------
    to_rig : (4, 4) from the armature's axes to the rig's

    Raises
    ------
    RigError : the bones are no skeleton
    """
    _check_pieces(armature, seen)
    learned, _ = kept_rests(armature)
    origins = _origins(seen, learned, np.linalg.inv(to_rig))
    place = {bone.name: k for k, bone in enumerate(seen)}
    names = [bone.name for bone in seen]
    parents = [place.get(bone.parent, -1) for bone in seen]
    heads = [apply_affine(to_rig, bone.head[None])[0] for bone in seen]
    ends = _Ends(rig, seen, origins, parents, kept_tree(armature), learned, to_rig)
    for name, parent, position, origin in ends.found():
        names.append(_free_name(name, names))
        parents.append(parent)
        heads.append(position)
        origins.append(origin)
    is_end = np.arange(len(names)) >= len(seen)
    edited = EditedSkeleton.make(rig, names, parents, np.array(heads), origins, is_end)
    bones = tuple(name if name in place else "" for name in edited.names)
    return edited, bones


def _check_pieces(armature: bpy.types.Object, seen: list[JointBone]) -> None:
    roots = [bone.name for bone in seen if not bone.parent]
    if not seen:
        raise RigError(f"'{armature.name}' has no joints left; undo that, or build the rig again")
    if len(roots) > 1:
        shown = ", ".join(f"'{name}'" for name in roots[:4]) + (" ..." if len(roots) > 4 else "")
        raise RigError(
            f"The skeleton of '{armature.name}' falls into {len(roots)} pieces, as {shown} hang on no joint; "
            "parent all but one in Edit Mode (Ctrl+P), or move controls of your own out of the collection "
            "'Skeleton'"
        )


def _origins(seen: list[JointBone], learned: dict[int, F64], to_armature: F64) -> list[int]:
    """Which joint each bone is: of copies the one that stands nearest to it, the others are new."""
    origins = [-1] * len(seen)
    for joint, rest in learned.items():
        claims = [k for k, bone in enumerate(seen) if bone.index == joint]
        if claims:
            head = apply_affine(to_armature, rest[None, :3, 3])[0]
            # Halves of a subdivided bone start at the head, copies of a moved one lie apart.
            nearest = min(claims, key=lambda k: (round(np.linalg.norm(seen[k].head - head), 9), k))
            origins[nearest] = joint
    return origins


@dataclass
class _Ends:
    """The ends of chains: joints that have no bone, tails of bones without children."""

    rig: Rig
    seen: list[JointBone]
    origins: list[int]
    parents: list[int]
    tree: dict[int, tuple[int, float]]
    learned: dict[int, F64]
    to_rig: F64

    def found(self) -> Iterable[tuple[str, int, F64, int]]:
        """Yield (name, parent among the bones, position, origin) of every end."""
        rig, now = self.rig, {origin: k for k, origin in enumerate(self.origins) if origin >= 0}
        childless = set(range(len(self.seen))) - set(self.parents)
        main, shapes = main_children(rig), skeleton_shapes(rig)
        boneless = [j for j in range(rig.joint_count) if j not in self.learned]
        ended = set()
        for joint in boneless:
            above = int(rig.joint_parents[joint])
            if above not in now:
                continue
            k, position = now[above], rig.joint_positions[joint]
            if main[above] == joint:  # it was the tail of the bone
                if k not in childless:
                    continue
                tail = apply_affine(self.to_rig, self.seen[k].tail[None])[0]
                ended.add(k)
                if not self._same(tail, shapes[above].tail):
                    position = tail
            yield rig.joint_names[joint], k, position, joint
        for k in sorted(childless - ended):
            if not self._stays_bare(k):
                tail = apply_affine(self.to_rig, self.seen[k].tail[None])[0]
                yield f"{self.seen[k].name}.end", k, tail, -1

    def _same(self, one: F64, other: F64) -> bool:
        return bool(np.abs(one - other).max() <= 1e-5 * diagonal(self.rig.rest))

    def _stays_bare(self, k: int) -> bool:
        """Whether a bone was a joint without children, and may stay one: all joints are still given ones."""
        rig, joint = self.rig, self.origins[k]
        if joint < 0 or (rig.joint_parents == joint).any():
            return False
        given = rig.joint_bind is not None and all(
            o >= 0 and rig.joint_names[o] == bone.name
            for o, bone in zip(self.origins, self.seen, strict=True)
        )
        return given or bool((rig.bone_joints == joint).any())


def _free_name(name: str, taken: list[str]) -> str:
    free, number = name, 0
    while free in taken:
        number += 1
        free = f"{name}.{number:03d}"
    return free
