"""A corrected skeleton in place: the user's bones, actions and constraints stay, what is the rig's follows.

All is done on a copy of the armature's data that takes its place at the end, so that a failure on the way
leaves the rig as it was.
"""

from __future__ import annotations

from typing import cast

import bpy
import numpy as np
from mathutils import Matrix
from numpy.typing import NDArray

from ..core.errors import RigError
from ..core.motion.learned import LearnedMotion
from ..core.rigging.rig import Rig
from .armature import JOINT, SKELETON, SKIN_BONE, SKIN_BONES, edit_mode
from .armature_edits import dress, editable, leave_edit_mode, rekey, replaced_data
from .bind import follow_armature
from .motion_store import has_motion, kept_rests, store_motion
from .refit_lost import lost_keys, lost_targets, stale_bakes
from .refit_read import RefitTask
from .secondary.live import SESSION
from .skeleton_bones import JointBone, joint_bones
from .skin_space import skin_bones
from .subject import active_armature_of

F64 = NDArray[np.float64]
STANDING = 5e-5


def apply_refit(
    context: bpy.types.Context,
    object: bpy.types.Object,
    armature: bpy.types.Object,
    task: RefitTask,
    rig: Rig,
    motion: LearnedMotion,
) -> list[str]:
    """Let the armature and what plays it follow; returns what the user should know, one sentence each.

    Parameters
    ----------
    object : the splats it deforms; task : as read; rig, motion : as solved

    Raises
    ------
    RigError : the bones were edited since they were read, or cannot be edited
    """
    leave_edit_mode(armature)
    if not has_motion(armature) or not _as_seen(task.seen, joint_bones(armature)):
        raise RigError(
            f"The rig of '{armature.name}' was edited while the refit ran, so its result was dropped; refit "
            "again"
        )
    with editable(context, armature), replaced_data(armature):
        notes = _edit_bones(context, armature, task, rig)
        dress(armature, set(task.bones))
        store_motion(armature, motion, task.space)
        notes += _bind_again(armature)
        rekey(context, object, armature, task.space, rig)
    SESSION.forget()  # of copies too, which share the bones
    context.view_layer.update()
    carriers = task.edited.origins[rig.bone_joints]
    moved = {name for b, (name, _) in task.skin.items() if carriers[b] != task.rig.bone_joints[b]}
    return [*notes, *lost_keys(armature), *stale_bakes(armature, moved), *lost_targets(armature)]


def _as_seen(before: tuple[JointBone, ...], now: list[JointBone]) -> bool:
    def told(bones: list[JointBone]) -> list[tuple[str, int, str]]:
        return [(bone.name, bone.index, bone.parent) for bone in bones]

    if told(list(before)) != told(now):
        return False
    places = [[(*bone.head, *bone.tail) for bone in bones] for bones in (before, now)]
    return bool(np.allclose(places[0], places[1], rtol=0, atol=1e-9))


def _edit_bones(
    context: bpy.types.Context, armature: bpy.types.Object, task: RefitTask, rig: Rig
) -> list[str]:
    data = cast(bpy.types.Armature, armature.data)
    _, before = kept_rests(armature)
    found = skin_bones(armature, before)
    there = {b: bone.name for b, bone in found.items()}
    standing = {b for b, bone in found.items() if _stands(bone, task.skin[b][1])}
    notes = []
    with edit_mode(context, armature):
        bones = data.edit_bones
        joint = {task.bones.index(bone.name): bones[bone.name] for bone in task.seen}
        skeleton = _collection(data, SKELETON)
        for j, bone in joint.items():
            bone[JOINT] = j
            skeleton.assign(bone)
            above = int(rig.joint_parents[j])
            if above >= 0 and SKIN_BONE in (bone.parent or {}):
                bone.use_connect, bone.parent = False, joint[above]
                notes.append(f"'{bone.name}' hung on a skin bone; it hangs on '{joint[above].name}' now.")
        own = {name for name in there.values()}
        for bone in bones:
            if SKIN_BONE in bone and bone.name not in own:
                del bone[SKIN_BONE]  # copies of skin bones carry nothing
        skin = _skin_back(data, task, there, standing)
        for b, bone in skin.items():
            bone.use_connect = False
            bone.parent = joint[int(rig.bone_joints[b])]
    if count := len(skin) - len(standing):
        notes.append(
            f"{count} skin bone{'s' if count > 1 else ''} that {'were' if count > 1 else 'was'} moved or "
            "deleted stand where they stood again, as splats follow them."
        )
    return notes


def _stands(bone: bpy.types.Bone, rest: F64) -> bool:
    """Whether a skin bone is where it was; Edit Mode itself turns some by a few millionths."""
    away = np.abs(np.array(bone.matrix_local) - rest).max()
    return bool(away <= STANDING * (1 + np.abs(rest[:3, 3]).max()))


def _skin_back(
    data: bpy.types.Armature, task: RefitTask, there: dict[int, str], standing: set[int]
) -> dict[int, bpy.types.EditBone]:
    """All skin bones, those that are missing made anew and those that were moved put back."""
    bones, collection = data.edit_bones, _collection(data, SKIN_BONES)
    long = [bones[name].length for name in there.values()]
    found = {}
    for b, (name, rest) in task.skin.items():
        bone = bones[there[b]] if b in there else bones.new(name)
        if b not in standing:
            bone.use_connect, bone.parent = False, None
            bone.head, bone.tail = (0, 0, 0), (0, float(np.median(long)), 0)
            bone.matrix = Matrix(rest.tolist())
        bone[SKIN_BONE] = b
        collection.assign(bone)
        found[b] = bone
    return found


def _collection(data: bpy.types.Armature, name: str) -> bpy.types.BoneCollection:
    return data.collections_all.get(name) or data.collections.new(name)


def _bind_again(armature: bpy.types.Object) -> list[str]:
    """Let the deformers of all splats the armature deforms find their skin bones."""
    notes = []
    for object in bpy.data.objects:
        if object.library is not None or active_armature_of(object) != armature:
            continue
        try:
            follow_armature(object)
        except RigError as error:
            notes.append(f"{str(error)[0].upper()}{str(error)[1:]}.")
    return notes
