"""From settings to what is to be resampled."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import bpy
import numpy as np
from numpy.typing import NDArray

from ...core.errors import MissingDependencyError, RigError
from ..deformer import deformer_armature
from ..libraries import missing_library
from .poses import action_frames, frame_poses, limit_poses, present_pose
from .task import Mode, Request, read_whole

F64 = NDArray[np.floating]


@dataclass(frozen=True)
class Choice:
    """What the user chose.

    mode : the pose that stands, frames of the action, each bone's range of motion, or every splat once
    epsilon, budget : as in `task.Request`
    frames : first, last, step; None takes the whole action
    angle : range to both sides, radians, of bones that have neither limits nor a motion
    """

    mode: Mode
    epsilon: float = 0.0
    budget: float = 3.0
    frames: tuple[int, int, int] | None = None
    angle: float = np.pi / 4


def check_resampling(object: bpy.types.Object) -> None:
    """Raise where nothing can be resampled.

    Raises
    ------
    RigError : nothing poses the splats; MissingDependencyError : there is no scipy
    """
    if deformer_armature(object) is None:
        raise RigError(
            f"'{object.name}' is not rigged, so no pose bends its splats; build a rig or bind it first"
        )
    if (reason := missing_library("scipy", "Resampling")) is not None:
        raise MissingDependencyError(reason)


def request_steps(
    context: bpy.types.Context, object: bpy.types.Object, choice: Choice
) -> Generator[tuple[str, float], None, Request]:
    """Read splats, weights and poses between redraws; the scene is as before afterwards.

    Raises
    ------
    RigError : the object cannot be resampled, or shows no pose
    """
    check_resampling(object)
    context.view_layer.update()
    splats = read_whole(object)
    transforms = yield from _poses(context, object, choice)
    return Request(splats, transforms, choice.epsilon, choice.budget)


def _poses(
    context: bpy.types.Context, object: bpy.types.Object, choice: Choice
) -> Generator[tuple[str, float], None, F64 | None]:
    if choice.mode == "UNIFORM":
        return None
    if choice.mode == "POSE":
        return present_pose(context, object)
    if choice.mode == "LIMITS":
        return (yield from limit_poses(context, object, choice.angle))
    armature = deformer_armature(object)
    assert armature is not None
    start, end, step = choice.frames or (*action_frames(armature), 1)
    return (yield from frame_poses(context, object, start, end, step))
