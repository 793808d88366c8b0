"""Source armatures for retargeting: bones from joints, keyed with their captured motion."""

from __future__ import annotations

import bpy
import numpy as np
from mathutils import Matrix, Vector

from gaussianimate.core.rigging.kabsch import kabsch

Y_UP = Matrix(((1, 0, 0, 0), (0, 0, -1, 0), (0, 1, 0, 0), (0, 0, 0, 1)))


def make_armature(name, names, parents, heads, tails=None, roll=0.0):
    """Add an armature with bones at joints; bones end at their first child, rolled however one likes."""
    data = bpy.data.armatures.new(name)
    armature = bpy.data.objects.new(name, data)
    bpy.context.scene.collection.objects.link(armature)
    before = bpy.context.view_layer.objects.active
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    size = np.ptp(heads, axis=0).max()
    bones = []
    for j, bone_name in enumerate(names):
        bone = data.edit_bones.new(bone_name)
        children = np.flatnonzero(np.asarray(parents) == j)
        head = Vector(heads[j])
        tail = Vector(tails[j]) if tails is not None else head + Vector((0, 0, 0.03 * size))
        if tails is None and len(children):
            tail = Vector(heads[children[0]])
        bone.head = head
        bone.tail = tail if (tail - head).length > 1e-3 * size else head + Vector((0, 0, 0.02 * size))
        bone.roll = roll
        bone.parent = bones[parents[j]] if parents[j] >= 0 else None
        bones.append(bone)
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = before
    for bone in armature.pose.bones:
        bone.rotation_mode = "QUATERNION"
    return armature


def key_motion(armature, names, mats, start=1, step=1):
    """Key bones with joint motions (F, J, 3, 4) from rest, turns only but for bones without parent."""
    order = [armature.pose.bones[name] for name in names]
    turns = kabsch(np.swapaxes(mats[..., :3].astype(float), -1, -2))
    heads = np.array([bone.bone.head_local for bone in order])
    moved = np.einsum("fjab,jb->fja", mats[..., :3], heads) + mats[..., 3]
    for f in range(0, len(mats), step):
        for j, bone in enumerate(order):
            rest = bone.bone.matrix_local
            turn = Matrix(turns[f, j])
            above = bone.parent
            if above is not None:
                turn = Matrix(turns[f, names.index(above.name)]).transposed() @ turn
            basis = rest.to_3x3().transposed() @ turn @ rest.to_3x3()
            bone.rotation_quaternion = basis.to_quaternion()
            bone.keyframe_insert("rotation_quaternion", frame=start + f // step)
            if above is None:
                bone.location = rest.to_3x3().transposed() @ Vector(moved[f, j] - heads[j])
                bone.keyframe_insert("location", frame=start + f // step)
    return armature
