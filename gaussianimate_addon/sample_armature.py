"""An animated armature as the skeleton of a capture: a garment on the motion capture of the body in it."""

from __future__ import annotations

from collections.abc import Generator
from typing import cast

import bpy
import numpy as np
from mathutils import Matrix
from numpy.typing import NDArray

from ..core.errors import CaptureError
from ..core.given_skeleton import GivenSkeleton
from ..core.rotations import affine_inverse, affine_multiply
from .armature import JOINT, bone_matrices
from .capture_frames import load_frames
from .capture_object import scene_frame

F64 = NDArray[np.float64]


def find_armature(name: str) -> bpy.types.Object:
    """Return the armature object of that name.

    Raises
    ------
    CaptureError : there is none
    """
    if not name:
        raise CaptureError("No armature is chosen as the skeleton; choose one, or another skeleton.")
    armature = bpy.data.objects.get(name)
    if armature is None or armature.type != "ARMATURE":
        raise CaptureError(f"There is no armature called '{name}'; name one, or say auto or extracted.")
    return armature


def skeleton_bones(armature: bpy.types.Object) -> list[bpy.types.Bone]:
    """Return the bones that are joints: those of a skeleton made here, else those that deform, else all."""
    bones = list(cast(bpy.types.Armature, armature.data).bones)
    made_here = [bone for bone in bones if JOINT in bone]
    return made_here or [bone for bone in bones if bone.use_deform] or bones


def sample_armature_steps(
    context: bpy.types.Context, armature: bpy.types.Object, object: bpy.types.Object
) -> Generator[tuple[str, float], None, GivenSkeleton]:
    """Sample an armature at the scene times of a capture's frames; yields progress between frames.

    Joints are the heads of `skeleton_bones`, in the space of the capture object, wherever both stand. Nothing
    else may change the scene until the generator returns or is closed.

    Raises
    ------
    CaptureError : the armature has no bones, or one of the two objects is scaled to nothing
    """
    scene, bones = context.scene, skeleton_bones(armature)
    if not bones:
        raise CaptureError(f"The armature '{armature.name}' has no bones, so it is no skeleton.")
    count, before, subframe = len(load_frames(object).positions), scene.frame_current, scene.frame_subframe
    mats = np.empty((count, len(bones), 3, 4))
    names, rest = [bone.name for bone in bones], bone_matrices(bones)
    parents = _parents(bones)
    placed = np.empty((0, 4, 4))
    try:
        for i in range(count):
            yield "Sampling the armature", i / count
            time = scene_frame(object, i)
            scene.frame_set(int(np.floor(time)), subframe=time % 1)
            place, pose = _pose(context, armature, object, names)
            if not i:  # the rest pose stands where the armature does at first
                placed = place @ rest
            mats[i] = affine_multiply(place @ pose, affine_inverse(placed))
    finally:
        scene.frame_set(before, subframe=subframe)
    return GivenSkeleton.make(names, parents, placed[:, :3, 3], mats)


def _pose(
    context: bpy.types.Context, armature: bpy.types.Object, object: bpy.types.Object, names: list[str]
) -> tuple[F64, F64]:
    """Return armature space to capture space (4, 4), and the pose (B, 4, 4) in armature space."""
    graph = context.evaluated_depsgraph_get()
    posed, splats = armature.evaluated_get(graph), object.evaluated_get(graph)
    for each in (posed, splats):
        if abs(each.matrix_world.determinant()) < 1e-18:
            raise CaptureError(f"'{each.name}' is scaled to nothing; give it a scale other than 0.")
    place: Matrix = splats.matrix_world.inverted() @ posed.matrix_world
    return np.array(place, np.float64), np.array(
        [posed.pose.bones[name].matrix for name in names], np.float64
    )


def _parents(bones: list[bpy.types.Bone]) -> list[int]:
    """Return for each bone the nearest of the bones above it, -1 where there is none."""
    places = {bone.name: index for index, bone in enumerate(bones)}
    above = (
        [places[parent.name] for parent in bone.parent_recursive if parent.name in places] for bone in bones
    )
    return [found[0] if found else -1 for found in above]
