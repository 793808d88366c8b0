"""The poses that a resampling answers for, read from the scene as it is evaluated."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, cast

import bpy
import numpy as np
from mathutils import Matrix
from numpy.typing import NDArray

from ...core.errors import RigError
from ..bake import UNMOVED, pose_steps, read_pose
from ..deformer import deformer_armature
from ..frame_range import check_range
from ..modifiers import DEFORM, find_modifier
from .checks import check_poses
from .limits import Turn, turns_of

F64 = NDArray[np.floating]
Steps = Generator[tuple[str, float], None, F64]
_CHANNELS = {
    "location": 3,
    "rotation_quaternion": 4,
    "rotation_euler": 3,
    "rotation_axis_angle": 4,
    "scale": 3,
}


def posing_armature(object: bpy.types.Object) -> bpy.types.Object:
    """Return the armature that poses an object's splats.

    Raises
    ------
    RigError : there is none, or it shows no poses
    """
    armature = deformer_armature(object)
    if armature is None:
        raise RigError(f"'{object.name}' is not rigged; build a rig or bind it first")
    if cast(bpy.types.Armature, armature.data).pose_position == "REST":
        raise RigError(f"'{armature.name}' shows its Rest Position; set it to Pose Position first")
    return armature


def present_pose(context: bpy.types.Context, object: bpy.types.Object) -> F64:
    """Return the transforms (1, B, 3, 4) of the pose that stands."""
    posing_armature(object)
    transforms = read_pose(context.evaluated_depsgraph_get(), object).transforms[None]
    check_poses(object, transforms)
    return transforms


def frame_poses(
    context: bpy.types.Context, object: bpy.types.Object, start: int, end: int, step: int
) -> Steps:
    """Read the transforms (F, B, 3, 4) of frames, between redraws; the frame and the pose are put back."""
    check_range(start, end)
    armature = posing_armature(object)
    with pose_kept(armature):
        poses = yield from pose_steps(context, object, start, end, step)
    transforms = np.stack([pose.transforms for pose in poses.values()])
    check_poses(object, transforms, list(poses))
    return transforms


def action_frames(armature: bpy.types.Object) -> tuple[int, int]:
    """Return the first and last frame of the action that an armature plays.

    Raises
    ------
    RigError : it plays none
    """
    action = armature.animation_data.action if armature.animation_data else None
    if action is None:
        raise RigError(f"'{armature.name}' plays no action; key a motion, or give the frames")
    first, last = action.frame_range
    return int(np.floor(first)), int(np.ceil(last))


def limit_poses(context: bpy.types.Context, object: bpy.types.Object, angle: float) -> Steps:
    """Read the transforms (F, B, 3, 4) of each bone at the ends of its ranges, all others at rest.

    Parameters
    ----------
    angle : range to both sides, radians, where neither limits nor a motion tell one

    Raises
    ------
    RigError : no bone can turn
    """
    armature = posing_armature(object)
    turns = turns_of(armature, angle)
    if not turns:
        raise RigError(f"No bone of '{armature.name}' that carries splats can turn; loosen its limits")
    modifier: Any = find_modifier(object, DEFORM)
    shown, poses = modifier.show_viewport, []
    with pose_kept(armature):
        try:
            modifier.show_viewport = not armature.visible_get()
            for bone in armature.pose.bones:
                bone.matrix_basis = Matrix.Identity(4)
            for turn in turns:
                yield "Reading poses", len(poses) / len(turns)
                poses.append(_turned(context, object, armature, turn))
        finally:
            modifier.show_viewport = shown
    transforms = np.stack(poses)
    check_poses(object, transforms)
    return settled(transforms)


def _turned(
    context: bpy.types.Context, object: bpy.types.Object, armature: bpy.types.Object, turn: Turn
) -> F64:
    bone = armature.pose.bones[turn.bone]
    bone.matrix_basis = Matrix.Rotation(turn.angle, 4, turn.axis)
    context.view_layer.update()
    transforms = read_pose(context.evaluated_depsgraph_get(), object).transforms
    bone.matrix_basis = Matrix.Identity(4)
    return transforms


def settled(poses: F64) -> F64:
    """Return poses (F, B, 3, 4) in which bones that move as one but for rounding move exactly alike.

    Splats of such bones are not bent, which resampling then sees at once.
    """
    still, found = np.broadcast_to(np.eye(3, 4), (len(poses), 1, 3, 4)), []
    for pose in np.concatenate([still, poses], axis=1):
        left = np.arange(len(pose))
        while len(left):
            first = pose[left[0]].copy()
            alike = np.abs(pose[left] - first).max(axis=(1, 2)) <= UNMOVED
            alike[0] = True  # whatever it holds
            pose[left[alike]] = first
            left = left[~alike]
        found.append(pose[1:])
    return np.stack(found)


@contextmanager
def pose_kept(armature: bpy.types.Object) -> Iterator[None]:
    """Put the pose back as it was, keyed or not, whatever is done to it meanwhile."""
    bones: Any = armature.pose.bones
    kept = {name: np.empty(width * len(bones), np.float32) for name, width in _CHANNELS.items()}
    for name, values in kept.items():
        bones.foreach_get(name, values)
    try:
        yield
    finally:
        for name, values in kept.items():
            bones.foreach_set(name, values)
        armature.update_tag()
        bpy.context.view_layer.update()
