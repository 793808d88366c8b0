"""Posed splats as clouds: what is exported."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.cloud import GaussianCloud
from ..core.deform.deform import deform_cloud
from ..core.deform.transforms import bone_transforms_from_pose, object_space_transforms, transform_cloud
from ..core.errors import RigError
from ..core.progress import Progress, no_progress
from ..core.skinning.skin import Skin
from .armature import SKIN_BONE, bone_matrices, indexed_bones
from .attributes import splats
from .bind import bind_is_stale
from .capture_object import source_matrix
from .deform_nodes import get_bind
from .modifiers import DEFORM, find_modifier, get_input
from .point_cloud import is_splat_data, point_cloud_to_cloud
from .skin_attributes import read_skin

F64 = NDArray[np.floating]
UNMOVED = 2e-6  # difference from the identity that an untouched matrix has in single precision


@dataclass(frozen=True)
class Pose:
    """How a rigged object stands in one frame: with its rest state enough to deform it away from Blender.

    transforms : (B, 3, 4) of the skin bones, rest to posed, in the object's space
    elastic, rotate_sh : the deformer's inputs
    world : (4, 4) to world space, the axis conversion of the import undone
    """

    transforms: F64
    elastic: float
    rotate_sh: bool
    world: F64


@dataclass(frozen=True)
class RestSplats:
    """What does not change from frame to frame: N splats at rest and their skin."""

    cloud: GaussianCloud
    skin: Skin

    def posed(self, pose: Pose, space: str, progress: Progress = no_progress) -> GaussianCloud:
        """Return the splats in a pose; touches no Blender data. See `posed_cloud` for ``space``."""
        cloud = deform_cloud(
            self.cloud,
            self.skin,
            pose.transforms,
            elastic=pose.elastic,
            rotate_sh=pose.rotate_sh,
            progress=progress,
        )
        return cloud if space == "OBJECT" else _in_world(cloud, pose.world)


def posed_cloud(
    depsgraph: bpy.types.Depsgraph, object: bpy.types.Object, space: str = "WORLD"
) -> GaussianCloud:
    """Return the splats of the object as posed at the depsgraph's frame.

    A rigged object is deformed by ``core.deform`` (spherical harmonics turned); any other shows its
    evaluated splats: a capture its current frame, an empty cloud where that is empty.

    Parameters
    ----------
    space : "WORLD" applies the object's matrix and undoes the axis conversion of the import, so that an
        object left where it was put comes out in the axes of its source, bit by bit; "OBJECT" does neither

    Raises
    ------
    RigError : no splats, the bind is stale, or the object is disabled in viewports.
    """
    if object.type != "POINTCLOUD" or not is_splat_data(splats(object)):
        raise RigError(f"'{object.name}' holds no Gaussian splats; choose a splat or capture object")
    if find_modifier(object, DEFORM):
        return rest_splats(object).posed(read_pose(depsgraph, object), space)
    _require_fitting(object)
    _require_evaluated(depsgraph, object)
    cloud = _shown(object, object.evaluated_get(depsgraph))
    return cloud if space == "OBJECT" else _in_world(cloud, _source_to_world(depsgraph, object))


def rest_splats(object: bpy.types.Object) -> RestSplats:
    """Read the rest state of a rigged object (copies).

    Raises
    ------
    RigError : the bind is stale.
    """
    _require_fitting(object)
    return RestSplats(point_cloud_to_cloud(splats(object)), read_skin(splats(object)))


def read_pose(depsgraph: bpy.types.Depsgraph, object: bpy.types.Object) -> Pose:
    """Read how a rigged object stands at the depsgraph's frame.

    Raises
    ------
    RigError : Blender shows no pose: the armature is in Edit Mode, or hidden as the object is.
    """
    armature = get_input(find_modifier(object, DEFORM), "Armature")
    if armature.mode == "EDIT":
        raise RigError(f"'{armature.name}' is in Edit Mode, which shows its rest pose; leave that mode first")
    _require_evaluated(depsgraph, object)
    _require_evaluated(depsgraph, armature)
    modifier = find_modifier(object.evaluated_get(depsgraph), DEFORM)
    return Pose(
        skin_transforms(depsgraph, object),
        get_input(modifier, "Elastic"),
        get_input(modifier, "Rotate Colours"),
        _source_to_world(depsgraph, object),
    )


def _require_fitting(object: bpy.types.Object) -> None:
    """Raise RigError where a native Apply or an edit left splats that fit neither frames nor bind."""
    problem = bind_is_stale(object)
    if problem:
        raise RigError(problem)


def _require_evaluated(depsgraph: bpy.types.Depsgraph, object: bpy.types.Object) -> None:
    """Raise RigError where Blender leaves a hidden object at an earlier frame."""
    if not object.evaluated_get(depsgraph).is_evaluated:
        raise RigError(f"'{object.name}' is disabled in viewports, where its motion stands still; enable it")


def _source_to_world(depsgraph: bpy.types.Depsgraph, object: bpy.types.Object) -> F64:
    world = np.array(object.evaluated_get(depsgraph).matrix_world, np.float64)
    return np.linalg.inv(source_matrix(object)) @ world


def _in_world(cloud: GaussianCloud, world: F64) -> GaussianCloud:
    untouched = np.abs(world - np.eye(4)).max() <= UNMOVED
    return cloud if untouched else transform_cloud(cloud, world)


def _shown(object: bpy.types.Object, evaluated: bpy.types.Object) -> GaussianCloud:
    data = splats(evaluated)
    if is_splat_data(data):
        return point_cloud_to_cloud(data)
    rest = point_cloud_to_cloud(splats(object))  # an empty geometry carries no attributes
    return rest.take(np.zeros(len(rest), bool))


def skin_transforms(depsgraph: bpy.types.Depsgraph, object: bpy.types.Object) -> F64:
    """Return the posed skin bones' transforms (B, 3, 4), rest to posed, in the object's space."""
    modifier = find_modifier(object, DEFORM)
    armature = get_input(modifier, "Armature")
    bind = get_bind(modifier.node_group)
    posed = armature.evaluated_get(depsgraph)
    bones = indexed_bones(armature, SKIN_BONE)
    pose = np.array([posed.pose.bones[bone.name].matrix for bone in bones], np.float64)
    motions = bone_transforms_from_pose(pose, bone_matrices(bones))
    world = np.array(object.evaluated_get(depsgraph).matrix_world, np.float64)
    if abs(np.linalg.det(world[:3, :3])) < 1e-18:
        raise RigError(f"'{object.name}' is scaled to nothing; give it a scale other than 0")
    return object_space_transforms(motions, world, np.array(posed.matrix_world), bind, np.eye(4))


def bake_sequence(
    context: bpy.types.Context,
    object: bpy.types.Object,
    frame_start: int,
    frame_end: int,
    space: str = "WORLD",
    progress: Progress = no_progress,
) -> Iterator[tuple[int, GaussianCloud]]:
    """Yield (scene frame, cloud) for every frame of the range; the scene's frame is restored at the end."""
    scene = context.scene
    before, subframe = scene.frame_current, scene.frame_subframe
    count = frame_end - frame_start + 1
    try:
        for i, frame in enumerate(range(frame_start, frame_end + 1)):
            progress("Baking frames", i / count)
            scene.frame_set(frame)
            yield frame, posed_cloud(context.evaluated_depsgraph_get(), object, space)
    finally:
        scene.frame_set(before, subframe=subframe)


def pose_steps(
    context: bpy.types.Context, object: bpy.types.Object, frame_start: int, frame_end: int, step: int = 1
) -> Generator[tuple[str, float], None, dict[int, Pose]]:
    """Read the poses of every ``step``-th frame of a range, and of its last.

    Yields ``(stage, fraction)`` before each so that windows can redraw.

    The deformer is off meanwhile, as only the bones matter, unless nothing but the deformer lets Blender
    evaluate a hidden armature. Nothing else may change the scene until this
    returns or is closed, which puts back the scene's frame.
    """
    scene, modifier = context.scene, find_modifier(object, DEFORM)
    before, subframe, shown = scene.frame_current, scene.frame_subframe, modifier.show_viewport
    armature, poses = get_input(modifier, "Armature"), {}
    try:
        modifier.show_viewport = armature is not None and not armature.visible_get()
        frames = [*range(frame_start, frame_end, step), frame_end]
        for frame in frames:
            yield "Reading poses", len(poses) / len(frames)
            scene.frame_set(frame)
            poses[frame] = read_pose(context.evaluated_depsgraph_get(), object)
    finally:
        modifier.show_viewport = shown
        scene.frame_set(before, subframe=subframe)
    return poses
