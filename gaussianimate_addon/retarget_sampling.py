"""A source armature as retargeting sees it: its rest pose, and its animation sampled frame by frame."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.errors import RigError
from ..core.retarget.skeleton import RestSkeleton
from ..core.rigging.kabsch import kabsch
from ..core.rotations import affine_inverse, affine_multiply
from .armature import bone_matrices
from .sample_armature import skeleton_bones
from .secondary.history import channel_bag

F64 = NDArray[np.float64]


def rest_skeleton(
    bones: Sequence[bpy.types.Bone], axes: NDArray[np.floating], world: NDArray[np.floating]
) -> RestSkeleton:
    """Return bones at rest.

    Parameters
    ----------
    bones : parents before children
    axes : (4, 4) or (3, 4), from the armature's space to the space the skeleton is wanted in
    world : (3, 3) rotation from there into the scene
    """
    heads = np.array([bone.head_local for bone in bones], np.float64)
    tails = np.array([bone.tail_local for bone in bones], np.float64)
    places = (points @ axes[:3, :3].T + axes[:3, 3] for points in (heads, tails))
    return RestSkeleton.make([bone.name for bone in bones], _parents(bones), *places, world=world)


def _parents(bones: Sequence[bpy.types.Bone]) -> list[int]:
    """Return for each bone the nearest of the bones above it, -1 where there is none.

    Rigify's deforming bones hang on others that do not deform: where one of those has a deforming twin of the
    same name (ORG-spine and DEF-spine), the twin counts as above.
    """
    places = {bone.name: index for index, bone in enumerate(bones)}
    parents = []
    for index, bone in enumerate(bones):
        names = (
            twin for above in bone.parent_recursive for twin in (above.name, f"DEF-{_plain(above.name)}")
        )
        found = (places[name] for name in names if name in places and places[name] < index)
        parents.append(next(found, -1))
    return parents


def _plain(name: str) -> str:
    return name.partition("-")[2] if name[:4] in ("ORG-", "MCH-") else name


def source_bones(source: bpy.types.Object) -> list[bpy.types.Bone]:
    """Return the bones worth mapping: joints of a rig made here, else those that deform, else all.

    Those that deform where others with the same name do not (Rigify) come after their parents' twins.
    """
    return by_depth(skeleton_bones(source))


def by_depth(bones: list[bpy.types.Bone]) -> list[bpy.types.Bone]:
    """Return bones with parents before children, else in the order they have."""
    return sorted(bones, key=lambda bone: len(bone.parent_recursive))


def object_rotation(object: bpy.types.Object) -> F64:
    """Return the rotation (3, 3) nearest to an object's matrix in the scene.

    Raises
    ------
    RigError : the object is scaled to nothing
    """
    matrix = np.array(object.matrix_world, np.float64)[:3, :3]
    if abs(np.linalg.det(matrix)) < 1e-18:
        raise RigError(f"'{object.name}' is scaled to nothing; give it a scale other than 0.")
    return kabsch(matrix.T)


def object_scale(object: bpy.types.Object) -> float:
    """Return the mean scale of an object in the scene."""
    return float(abs(np.linalg.det(np.array(object.matrix_world, np.float64)[:3, :3]))) ** (1 / 3)


def source_skeleton(source: bpy.types.Object, bones: Sequence[bpy.types.Bone]) -> RestSkeleton:
    """Return the source at rest: metres, in the axes in which the object stands now."""
    rotation, matrix = object_rotation(source), np.array(source.matrix_world, np.float64)
    return rest_skeleton(bones, rotation.T @ matrix[:3], rotation)


def target_skeleton(target: bpy.types.Object, bones: Sequence[bpy.types.Bone]) -> RestSkeleton:
    """Return the target at rest, in its own space, where its bones are keyed."""
    return rest_skeleton(bones, np.eye(4), object_rotation(target))


def animated_range(source: bpy.types.Object, scene: bpy.types.Scene) -> tuple[int, int]:
    """Return first and last frame of a source's animation; the scene's where only constraints or drivers do.

    Raises
    ------
    RigError : nothing animates it, or it stands in its rest position
    """
    if cast(bpy.types.Armature, source.data).pose_position == "REST" or source.mode == "EDIT":
        raise RigError(
            f"'{source.name}' stands in its rest position; leave its Edit Mode and choose Pose Position."
        )
    data = source.animation_data
    action = data.action if data else None
    strips = [s for track in data.nla_tracks if not track.mute for s in track.strips] if data else []
    bag = channel_bag(source)
    if action is not None and bag is not None and len(bag.fcurves):
        start, end = action.frame_range
    elif strips:
        start, end = min(s.frame_start for s in strips), max(s.frame_end for s in strips)
    elif (data and len(data.drivers)) or source.constraints or any(b.constraints for b in source.pose.bones):
        start, end = scene.frame_start, scene.frame_end
    else:
        what = "action" if action is None or action.is_empty else f"slot with keys in '{action.name}'"
        raise RigError(f"'{source.name}' has no {what}; give it one, or choose another source.")
    return int(np.floor(start + 1e-4)), int(np.ceil(end - 1e-4))


def animation_name(source: bpy.types.Object) -> str:
    """Return what to call a source's motion: its action, else the source itself."""
    action = source.animation_data.action if source.animation_data else None
    return action.name if action is not None else source.name


def sample_motion_steps(
    context: bpy.types.Context, source: bpy.types.Object, names: Collection[str], start: int, end: int
) -> Generator[tuple[str, float], None, tuple[RestSkeleton, F64]]:
    """Sample bones of an animated armature on every frame from start to end; yields progress between frames.

    Returns their rest pose, where the object stands at the first frame, and their motions (F, B, 3, 4) from
    rest to posed, in metres and in the axes in which the object stands there.

    Raises
    ------
    RigError : the object is scaled to nothing, or a bone has no finite place
    """
    bones = by_depth([bone for bone in cast(bpy.types.Armature, source.data).bones if bone.name in names])
    sampled, rest = [bone.name for bone in bones], bone_matrices(bones)
    motions = np.empty((end - start + 1, len(sampled), 3, 4))
    inward, placed, skeleton = np.empty(0), np.empty(0), None
    with _scene_of_its_own(context, source) as scene:
        for index, frame in enumerate(range(start, end + 1)):
            yield "Sampling the source", index / len(motions)
            scene.frame_set(frame)
            posed = source.evaluated_get(_graph(scene))
            matrix = np.array(posed.matrix_world, np.float64)
            if skeleton is None:
                rotation = object_rotation(posed)
                inward = affine_inverse(np.column_stack([rotation, matrix[:3, 3]]))
                axes = affine_multiply(inward, matrix)
                skeleton = rest_skeleton(bones, axes, rotation)
                placed = affine_inverse(affine_multiply(axes, rest))
            pose = np.array([posed.pose.bones[name].matrix for name in sampled], np.float64)
            if not (np.isfinite(pose).all() and np.isfinite(matrix).all()):
                raise RigError(f"'{source.name}' has no finite pose in frame {frame}; mend its keys there.")
            motions[index] = affine_multiply(affine_multiply(affine_multiply(inward, matrix), pose), placed)
    assert skeleton is not None
    return skeleton, motions


def _graph(scene: bpy.types.Scene) -> bpy.types.Depsgraph:
    return cast(bpy.types.Depsgraph, scene.view_layers[0].depsgraph)


@contextmanager
def _scene_of_its_own(context: bpy.types.Context, source: bpy.types.Object) -> Iterator[bpy.types.Scene]:
    """Lend a scene that holds the source and what it depends on, so that no splats are posed at every frame.

    The user's own scene stays at its frame.
    """
    scene = bpy.data.scenes.new(f"{source.name} sampled")
    uid = scene.session_uid
    render, known = scene.render, context.scene.render
    for name in ("fps", "fps_base", "frame_map_old", "frame_map_new"):
        setattr(render, name, getattr(known, name))
    scene.collection.objects.link(source)
    number, disabled = source.session_uid, source.hide_viewport
    source.hide_viewport = False  # else nothing poses it
    try:
        yield scene
    finally:  # a file loaded meanwhile took the scene with it
        for each in bpy.data.objects:
            if each.session_uid == number:
                each.hide_viewport = disabled
        left = next((each for each in bpy.data.scenes if each.session_uid == uid), None)
        if left is not None:
            bpy.data.scenes.remove(left)
