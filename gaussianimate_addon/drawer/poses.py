"""How skin bones stand, read within a fraction of a millisecond at every draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import bpy
import numpy as np
from numpy.typing import NDArray

from ...core.deform.transforms import bone_transforms_from_pose, object_space_transforms
from ...core.errors import RigError
from ..armature import SKIN_BONE
from ..deform_nodes import bone_names, get_bind
from ..modifiers import DEFORM, find_modifier, get_input

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


@dataclass(frozen=True)
class PoseReader:
    """Where to read an object's pose. Holds no reference into Blender's data.

    armature, armature_uid : name and session number of the armature object
    bones : number of its pose bones
    rows : (B,) rows of the skin bones among them; 0 where a bone is missing
    missing : (B,) bool; these stay at rest, as in the deformer's nodes
    rest : (B, 4, 4) rest matrices of the skin bones, armature space
    stance : (bones, 4, 4) rest matrices of all bones, in the order and form in which Blender hands them out
    bind : (4, 4) object to armature space when bound
    """

    armature: str
    armature_uid: int
    bones: int
    rows: NDArray[np.intp]
    missing: NDArray[np.bool_]
    rest: F64
    stance: F32
    bind: F64

    def fits(self) -> bool:
        """Whether the armature still has the bones, at rest, that it had. Cheap enough for every update."""
        armature = self.find()
        if armature is None or len(armature.pose.bones) != self.bones:
            return False
        return np.array_equal(_stance(armature), self.stance)

    def find(self) -> bpy.types.Object | None:
        """Return the armature, under whatever name it has now; None where it is gone."""
        return find_object(self.armature, self.armature_uid)


def find_object(name: str, uid: int) -> bpy.types.Object | None:
    """Return the object of that session number, which most likely has that name; None where it is gone."""
    found = bpy.data.objects.get(name)
    if found is not None and found.session_uid == uid:
        return found
    return next((object for object in bpy.data.objects if object.session_uid == uid), None)


def pose_reader(object: bpy.types.Object) -> PoseReader | None:
    """Return the reader of a rigged object; None where no armature poses it.

    Raises
    ------
    RigError : the deformer's nodes are not those that were made
    """
    modifier = find_modifier(object, DEFORM)
    if modifier is None:
        return None
    group = cast(Any, modifier).node_group
    try:
        armature, names, bind = get_input(modifier, "Armature"), bone_names(group), get_bind(group)
    except (KeyError, StopIteration, AttributeError):
        raise RigError(f"The deformer of '{object.name}' was changed; build the rig again") from None
    if armature is None or armature.type != "ARMATURE":
        return None
    places = {bone.name: i for i, bone in enumerate(armature.pose.bones)}
    rows = np.array([places.get(name, -1) for name in names], np.intp)
    bones = armature.pose.bones
    rest = [bones[row].bone.matrix_local if row >= 0 else np.eye(4) for row in rows.tolist()]
    return PoseReader(
        armature=armature.name,
        armature_uid=armature.session_uid,
        bones=len(bones),
        rows=np.maximum(rows, 0),
        missing=rows < 0,
        rest=np.array(rest, np.float64).reshape(-1, 4, 4),
        stance=_stance(armature),
        bind=bind,
    )


def _stance(armature: bpy.types.Object) -> F32:
    bones = cast(bpy.types.Armature, armature.data).bones
    matrices = np.empty((len(bones), 4, 4), np.float32)
    bones.foreach_get("matrix_local", matrices.ravel())
    return matrices


def read_transforms(
    depsgraph: bpy.types.Depsgraph, object: bpy.types.Object, reader: PoseReader
) -> F64 | None:
    """Return the skin bones' transforms (B, 3, 4), rest to posed, in the object's space.

    None where there is no pose to follow: the armature is gone or being edited, the object is scaled to
    nothing, or one of them stands nowhere.
    """
    armature = reader.find()
    if armature is None or armature.mode == "EDIT" or not reader.bones:
        return None
    posed: Any = armature.evaluated_get(depsgraph)
    world = np.array(object.evaluated_get(depsgraph).matrix_world, np.float64)
    armature_world = np.array(posed.matrix_world, np.float64)
    if len(posed.pose.bones) != reader.bones or not np.isfinite(armature_world).all():
        return None
    if not np.isfinite(world).all() or abs(np.linalg.det(world[:3, :3])) < 1e-30:
        return None
    matrices = np.empty((reader.bones, 4, 4), np.float32)
    posed.pose.bones.foreach_get("matrix", matrices.ravel())
    pose = matrices[reader.rows].transpose(0, 2, 1)  # Blender stores columns
    motions = bone_transforms_from_pose(pose, reader.rest)
    motions[reader.missing] = np.eye(3, 4)
    return cast(F64, object_space_transforms(motions, world, armature_world, reader.bind, np.eye(4)))


def marked_bones(armature: bpy.types.Object, count: int) -> F32:
    """Return (count,) 1 for the skin bones that the active bone stands for, else 0.

    A skin bone stands for itself, a bone of the skeleton for the skin bones that hang directly from it.
    """
    marks = np.zeros(count, np.float32)
    active = cast(bpy.types.Armature, armature.data).bones.active
    if active is None:
        return marks
    bones = [active] if SKIN_BONE in active else [b for b in active.children if SKIN_BONE in b]
    for bone in bones:
        if bone[SKIN_BONE] < count:
            marks[bone[SKIN_BONE]] = 1
    return marks
