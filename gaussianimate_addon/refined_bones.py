"""The bones of an armature after a rig was refined: what stays keeps its rest pose and all that is its own.

New joints and skin bones are added as in a new armature. A bone that stays is never turned, so that poses and
keys mean what they meant; where a joint now follows half-way along it, it ends there.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import cast

import bpy
import numpy as np
from mathutils import Vector
from numpy.typing import NDArray

from ..core.rigging.moving_joints import moving_joints
from ..core.rigging.rig import Rig
from .affine import apply_affine
from .armature import JOINT, SKELETON, SKIN_BONE, SKIN_BONES, edit_mode
from .bone_shapes import main_children, skeleton_shapes, skin_shapes
from .motion_store import kept_rests
from .skin_space import skin_bones

F64 = NDArray[np.float64]
_NUMBERED = re.compile(r"skin_(\d+)")
NEAR = 1e-6  # of the size: heads and tails that meet


@dataclass(frozen=True)
class RefinedBones:
    """How bones follow from a rig to the one after it.

    before, after : the rigs
    joint_origins : (J,) joint of ``before`` that each is, -1 where new; bone_origins : (B,) of outer bones
    space : (4, 4) similarity from the rigs' axes to the armature's
    """

    before: Rig
    after: Rig
    joint_origins: NDArray[np.int32]
    bone_origins: NDArray[np.int32]
    space: F64

    def update(self, context: bpy.types.Context, armature: bpy.types.Object) -> list[str]:
        """Edit the bones; returns the names of the joints' bones."""
        data = cast(bpy.types.Armature, armature.data)
        joints = {int(bone[JOINT]): bone.name for bone in data.bones if JOINT in bone}
        skin = {b: bone.name for b, bone in skin_bones(armature, kept_rests(armature)[1]).items()}
        with edit_mode(context, armature):
            found = self._update_joints(data, joints)
            self._update_skin(data, skin, found)
            return [bone.name for bone in found.values()]

    def _update_joints(
        self, data: bpy.types.Armature, names: dict[int, str]
    ) -> dict[int, bpy.types.EditBone]:
        rig, bones = self.after, data.edit_bones
        moving = np.flatnonzero(moving_joints(rig)).tolist()
        kept = {j: bones[names[o]] for j in moving if (o := int(self.joint_origins[j])) in names}
        connected = [bone for bone in kept.values() if bone.use_connect]
        for bone in kept.values():
            for child in bone.children:
                child.use_connect = False
        for bone in kept.values():
            bone.use_connect = False
        found = {j: kept[j] if j in kept else self._new_joint(data, j) for j in moving}
        for j, bone in kept.items():
            self._fit_kept(j, bone)
        for j, bone in found.items():
            above = int(rig.joint_parents[j])
            if above >= 0 and (j not in kept or self._joint_above(bone) != found[above]):
                bone.parent = found[above]
            bone[JOINT] = j
        stay = {bone.name for bone in found.values()}
        _remove(data, [name for name in names.values() if name not in stay])
        self._connect([*connected, *(bone for j, bone in found.items() if j not in kept)])
        return found

    def _new_joint(self, data: bpy.types.Armature, joint: int) -> bpy.types.EditBone:
        shape = skeleton_shapes(self.after)[joint]
        bone = data.edit_bones.new(self.after.joint_names[joint])
        bone.head = self._place(self.after.joint_positions[joint])
        bone.tail = self._place(shape.tail)
        bone.align_roll(Vector((self.space[:3, :3] @ shape.z_axis).tolist()))
        collection = data.collections_all.get(SKELETON) or data.collections.new(SKELETON)
        collection.assign(bone)
        return bone

    def _fit_kept(self, joint: int, bone: bpy.types.EditBone) -> None:
        """Move a bone's head where its joint found another place; let it end at the joint that follows."""
        before, after = self.before, self.after
        origin = int(self.joint_origins[joint])
        shift = self._place(after.joint_positions[joint]) - self._place(before.joint_positions[origin])
        if shift.length > NEAR * self._size:
            bone.head, bone.tail = bone.head + shift, bone.tail + shift
        main, was = int(main_children(after)[joint]), int(main_children(before)[origin])
        if main < 0 or (was >= 0 and self._same_place(main, was) and shift.length <= NEAR * self._size):
            return
        length = (self._place(after.joint_positions[main]) - bone.head).length
        if length > 1e-3 * self._size:
            bone.length = length

    def _same_place(self, joint: int, earlier: int) -> bool:
        apart = self.after.joint_positions[joint] - self.before.joint_positions[earlier]
        return bool(np.linalg.norm(apart) <= NEAR * self._size)

    def _connect(self, bones: list[bpy.types.EditBone]) -> None:
        for bone in bones:
            if bone.parent is not None and (bone.head - bone.parent.tail).length <= 10 * NEAR * self._size:
                bone.use_connect = True

    def _update_skin(
        self, data: bpy.types.Armature, names: dict[int, str], joints: dict[int, bpy.types.EditBone]
    ) -> None:
        rig, bones = self.after, data.edit_bones
        collection = data.collections_all.get(SKIN_BONES) or data.collections.new(SKIN_BONES)
        shapes, stay = skin_shapes(rig), set()
        numbers = [int(found[1]) for bone in bones if (found := _NUMBERED.match(bone.name))]
        free = itertools.count(max(numbers, default=0) + 1)
        for b, origin in enumerate(self.bone_origins.tolist()):
            carrier = joints[int(rig.bone_joints[b])]
            if origin in names:
                bone = bones[names[origin]]
                if self._joint_above(bone) != carrier:
                    bone.use_connect, bone.parent = False, carrier
            else:
                bone = bones.new(f"skin_{next(free):03d}")
                bone.head, bone.tail = (self._place(end) for end in shapes[b])
                bone.parent = carrier
                collection.assign(bone)
            bone[SKIN_BONE] = b
            stay.add(bone.name)
        _remove(data, [name for name in names.values() if name not in stay])

    @staticmethod
    def _joint_above(bone: bpy.types.EditBone) -> bpy.types.EditBone | None:
        return next((above for above in bone.parent_recursive if JOINT in above), None)

    def _place(self, point: F64) -> Vector:
        return Vector(apply_affine(self.space, np.asarray(point, np.float64)[None])[0].tolist())

    @property
    def _size(self) -> float:
        return float(np.linalg.norm(np.ptp(self.after.rest, axis=0))) or 1.0


def _remove(data: bpy.types.Armature, names: list[str]) -> None:
    """Remove bones; what hangs on them hangs on their parents."""
    for name in names:
        bone = data.edit_bones[name]
        for child in list(bone.children):
            child.use_connect = False
            child.parent = bone.parent
        data.edit_bones.remove(bone)
