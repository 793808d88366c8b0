"""A pose the sample never shows, keyed on whatever skeleton was found in it.

An extracted skeleton is the asset's own and has no fixed names, so limbs are found by where they lie at rest.
"""

from __future__ import annotations

import bpy
import numpy as np
from mathutils import Matrix, Vector

# Direction in which the limb's tip lies furthest, then turns along the limb: (world axis, degrees).
LIMBS = (
    ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), -85),
    ((-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), 60),
    ((2.0, 0.0, -1.0), (0.0, 1.0, 0.0), -35),
)


def key_new_pose(armature: bpy.types.Object, first: int, last: int) -> None:
    """Key rest at the first frame and a raised-arms, leg-out pose at the last."""
    bones = [armature.pose.bones[bone.name] for bone in armature.data.collections["Skeleton"].bones]
    _key(bones, first)
    for direction, axis, degrees in LIMBS:
        limb = _limb(armature, bones, Vector(direction))
        # The first joint of a limb turns most, the next ones follow.
        for bone, share in zip(limb, (0.7, 0.3), strict=False):
            _turn(armature, bone, Vector(axis), np.radians(degrees) * share)
    _key(bones, last)


def _limb(
    armature: bpy.types.Object, bones: list[bpy.types.PoseBone], direction: Vector
) -> list[bpy.types.PoseBone]:
    """Return the bones of the limb that reaches furthest in a world direction, from the body outwards."""
    skeleton = set(bones)
    children = {bone: [child for child in bone.children if child in skeleton] for bone in bones}
    reach = armature.matrix_world.to_3x3().transposed() @ direction
    limb = [
        max((bone for bone in bones if not children[bone]), key=lambda bone: bone.bone.tail_local @ reach)
    ]
    while limb[-1].parent and len(children[limb[-1].parent]) < 2:
        limb.append(limb[-1].parent)
    return limb[::-1]


def _turn(armature: bpy.types.Object, bone: bpy.types.PoseBone, axis: Vector, angle: float) -> None:
    """Turn a posed bone about its head by ``angle`` around a world axis."""
    local = armature.matrix_world.to_3x3().inverted() @ axis
    pivot = Matrix.Translation(bone.head)
    bone.matrix = pivot @ Matrix.Rotation(angle, 4, local) @ pivot.inverted() @ bone.matrix
    bpy.context.view_layer.update()


def _key(bones: list[bpy.types.PoseBone], frame: int) -> None:
    for bone in bones:
        bone.keyframe_insert("rotation_quaternion", frame=frame)
        if bone.parent is None:
            bone.keyframe_insert("location", frame=frame)
