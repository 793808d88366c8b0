"""The joints of an armature as they stand, in Edit Mode too, and whether they are those that were learned.

A joint is a bone with the custom property `JOINT`, a new bone in the collection "Skeleton", or one in no
collection that hangs on others or that joints hang on. Other bones (controls, targets) are the user's own and
left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import bpy
import numpy as np
from numpy.typing import NDArray

from .affine import fit_similarity
from .armature import JOINT, SKELETON, SKIN_BONE
from .motion_store import has_motion, kept_rests, kept_tree

F64 = NDArray[np.float64]
TOLERANCE = 1e-5  # of the size


@dataclass(frozen=True)
class JointBone:
    """The bone of a joint at rest.

    name : of the bone; index : joint of the stored rig it says to be, -1 where it says none
    parent : name of the nearest joint's bone it hangs on, "" where there is none
    direct : whether that is its parent bone
    matrix : (4, 4) in armature space; length : of the bone
    """

    name: str
    index: int
    parent: str
    direct: bool
    matrix: F64
    length: float

    @property
    def head(self) -> F64:
        """(3,) in armature space."""
        return self.matrix[:3, 3]

    @property
    def tail(self) -> F64:
        """(3,) in armature space."""
        return self.matrix[:3, 3] + self.length * self.matrix[:3, 1]


def joint_bones(armature: bpy.types.Object) -> list[JointBone]:
    """Return the bones of all joints, as they stand in Edit Mode where the armature is in it."""
    data = cast(bpy.types.Armature, armature.data)
    bones: Iterable[bpy.types.EditBone | bpy.types.Bone] = data.edit_bones if data.is_editmode else data.bones
    found = []
    for bone in bones:
        if not _is_joint(bone):
            continue
        above = next((other for other in bone.parent_recursive if _is_joint(other)), None)
        matrix = bone.matrix if isinstance(bone, bpy.types.EditBone) else bone.matrix_local
        found.append(
            JointBone(
                bone.name,
                int(bone.get(JOINT, -1)),
                above.name if above else "",
                above is not None and bone.parent == above,
                np.array(matrix, np.float64),
                bone.length,
            )
        )
    return found


def _is_joint(bone: bpy.types.EditBone | bpy.types.Bone) -> bool:
    if JOINT in bone:
        return True
    if SKIN_BONE in bone:
        return False
    if bone.collections:
        return SKELETON in bone.collections
    return bone.parent is not None or any(JOINT in child for child in bone.children)


def skeleton_is_edited(armature: bpy.types.Object) -> str | None:
    """Return one sentence where the joints are not those whose motion was learned, else None.

    An Apply of the armature's transform and new names edit nothing. Cheap enough for every redraw.
    """
    if not has_motion(armature):
        return None
    bones, (learned, _), tree = joint_bones(armature), kept_rests(armature), kept_tree(armature)
    known: dict[int, JointBone] = {}
    for bone in bones:
        if bone.index in learned:
            known.setdefault(bone.index, bone)
    places = {bone.name: bone.index for bone in bones}
    hung = sum(
        above != places.get(known[j].parent, -1) and (above in known or above < 0)
        for j, (above, _) in tree.items()
        if j in known
    )
    counts = {
        "added": len(bones) - len(known),
        "removed": len(learned) - len(known),
        "moved": _moved(known, learned, {j: length for j, (_, length) in tree.items()}),
        "given other parents": hung,
    }
    said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    if not said:
        return None
    return f"Joints of '{armature.name}' were edited ({said}); refit the skeleton to move with them"


def _moved(known: dict[int, JointBone], learned: dict[int, F64], lengths: dict[int, float]) -> int:
    """How many joints stand elsewhere, an even scale, turn and shift of all of them aside."""
    if not known:
        return 0
    before = np.array([learned[j] for j in known])
    after = np.array([bone.matrix for bone in known.values()])
    long = np.array([lengths[j] for j in known])
    ratio = np.array([bone.length for bone in known.values()]) / np.maximum(long, 1e-12)
    size = 1e-12 + np.ptp(before[:, :3, 3], axis=0).max() + long.max()
    off = np.abs(after - before)
    placed = off[:, :3, 3].max(axis=1) < TOLERANCE * size
    still = placed & (off[:, :3, :3].max(axis=(1, 2)) < 1e-3) & (np.abs(ratio - 1) < 1e-3)
    applied = None if still.all() else fit_similarity(before, after)
    if applied is not None and np.abs(ratio / np.cbrt(np.linalg.det(applied[:3, :3])) - 1).max() < 1e-3:
        return 0
    return int((~placed).sum() or (~still).sum())
