"""Rig -> one native armature: bone collections "Skeleton" and "Skin bones".

A skeleton bone runs from its joint to its main child; an end, which moves nothing, is only the tail of the
bone before it. A bone hinges about its local X axis: the roll comes from
the axis about which the joint turned most in the capture, or else is carried over from the parent. Skin
bones sit in the middle of the points they carry, as children of their joint's bone, so that they follow it
rigidly where they have no keys of their own. Custom properties `JOINT` and `SKIN_BONE` hold the indices in
the rig and survive renaming.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import bpy
import numpy as np
from mathutils import Vector

from ..core.rigging.moving_joints import moving_joints
from ..core.rigging.rig import Rig
from .bone_shapes import skeleton_shapes, skin_shapes

SKELETON, SKIN_BONES = "Skeleton", "Skin bones"
JOINT, SKIN_BONE = "gaussianimate_joint", "gaussianimate_bone"


def rig_to_armature(context: bpy.types.Context, rig: Rig, name: str) -> bpy.types.Object:
    """Add an armature object, linked to the scene at the world origin, in the axes of the capture."""
    data = bpy.data.armatures.new(name)
    object = bpy.data.objects.new(name, data)
    context.scene.collection.objects.link(object)
    skeleton, skin = data.collections.new(SKELETON), data.collections.new(SKIN_BONES)
    with edit_mode(context, object):
        bones = _add_skeleton(data, rig, skeleton)
        _add_skin_bones(data, rig, bones, skin)
    for bone in data.bones:
        bone.color.palette = "THEME09" if JOINT in bone else "THEME04"
        bone.use_deform = SKIN_BONE in bone
    skin.is_visible = False
    data.display_type = "OCTAHEDRAL"
    object.show_in_front = True
    for pose_bone in object.pose.bones:
        pose_bone.rotation_mode = "QUATERNION"
    return object


def _add_skeleton(
    data: bpy.types.Armature, rig: Rig, collection: bpy.types.BoneCollection
) -> dict[int, bpy.types.EditBone]:
    bones: dict[int, bpy.types.EditBone] = {}
    shapes = skeleton_shapes(rig)
    for j in np.flatnonzero(moving_joints(rig)).tolist():
        shape = shapes[j]
        bone = data.edit_bones.new(rig.joint_names[j])
        bone.head, bone.tail = Vector(rig.joint_positions[j].tolist()), Vector(shape.tail.tolist())
        bone.align_roll(Vector(shape.z_axis.tolist()))
        parent = int(rig.joint_parents[j])
        if parent >= 0:
            bone.parent = bones[parent]
            bone.use_connect = shape.connected
        bone[JOINT] = j
        collection.assign(bone)
        bones[j] = bone
    return bones


def _add_skin_bones(
    data: bpy.types.Armature,
    rig: Rig,
    parents: dict[int, bpy.types.EditBone],
    collection: bpy.types.BoneCollection,
) -> None:
    for b, (head, tail) in enumerate(skin_shapes(rig)):
        bone = data.edit_bones.new(f"skin_{b + 1:03d}")
        bone.head, bone.tail = Vector(head.tolist()), Vector(tail.tolist())
        bone.parent = parents[int(rig.bone_joints[b])]
        bone[SKIN_BONE] = b
        collection.assign(bone)


def indexed_bones(armature: bpy.types.Object, key: str) -> list[bpy.types.Bone]:
    """Return the bones that carry an index property (`JOINT` or `SKIN_BONE`), in the rig's order."""
    return sorted(
        (bone for bone in cast(bpy.types.Armature, armature.data).bones if key in bone),
        key=lambda bone: bone[key],
    )


def bone_matrices(bones: list[bpy.types.Bone]) -> np.ndarray:
    """Return rest matrices (B, 4, 4) float64 in armature space."""
    return np.array([bone.matrix_local for bone in bones], dtype=np.float64).reshape(-1, 4, 4)


@contextmanager
def edit_mode(context: bpy.types.Context, armature: bpy.types.Object) -> Iterator[None]:
    """Edit an armature's bones; active object, selection and mode are as before afterwards."""
    layer = context.view_layer
    active, selected = layer.objects.active, [o for o in layer.objects if o.select_get()]
    if active is not None and active.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    for object in selected:
        object.select_set(False)
    layer.objects.active = armature
    armature.select_set(True)
    try:
        bpy.ops.object.mode_set(mode="EDIT")
        yield
    finally:
        bpy.ops.object.mode_set(mode="OBJECT")
        armature.select_set(False)
        for object in selected:
            object.select_set(True)
        layer.objects.active = active
