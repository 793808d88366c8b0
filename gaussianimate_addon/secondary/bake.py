"""Secondary motion of a frame range: its poses read from the scene, and the answer as keys of skin bones."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import bpy
import numpy as np
from numpy.typing import NDArray

from ...core.errors import RigError
from ...core.motion.auto import AutoPredictor
from ...core.motion.database import Residuals, residuals_of
from ...core.motion.match import MatchOptions
from ...core.motion.predict import predict
from ...core.progress import Progress
from ...core.rotations import continuous_quaternions
from ..action import bone_path, scene_fps
from ..frame_range import check_range
from ..modifiers import DEFORM, find_modifier, get_input
from ..motion_store import load_motion, motion_digest
from .history import Fastest, channel_bag, is_keyed_alone, keyed_poses
from .live import SESSION
from .rig_bones import Poses, RigBones, rig_bones
from .skin_keys import SkinKeys

F64 = NDArray[np.float64]
METHODS = ("AUTO", "MATCH", "KERNEL", "FULL")
FASTEST = 200  # scene frames in the time of one captured


@dataclass(frozen=True)
class Query:
    """What a worker needs to bake.

    poses : of the joints at `frames` (Q,), at `fps`; wanted : rows that become keys
    bones : where the answer goes; method : one of `METHODS`
    """

    predictor: AutoPredictor
    bones: RigBones
    poses: Poses
    frames: NDArray[np.intp]
    wanted: slice
    fps: float
    method: str


def query_steps(
    context: bpy.types.Context, armature: bpy.types.Object, frame_start: int, frame_end: int, method: str
) -> Generator[tuple[str, float], None, Query]:
    """Read the poses of a frame range and of the moments around it that the answer looks at.

    Yields progress; nothing else may change the scene until it returns or is closed, which puts back the
    scene's frame.

    Raises
    ------
    RigError : there is no learned motion, the skeleton was edited, the range is empty, or nothing poses the
        armature
    """
    check_range(frame_start, frame_end)
    predictor = load_motion(armature).predictor
    bones = rig_bones(armature, predictor.database, motion_digest(armature))
    fps = scene_fps(context.scene)
    if fps > FASTEST * predictor.database.fps:
        raise RigError(
            f"The scene runs at {fps:.6g} frames a second, the capture at {predictor.database.fps:.6g}; "
            "lower the frame rate of the scene to bake"
        )
    before, after = _margins(predictor, fps)
    first, last = frame_start - before, frame_end + after
    keyed = is_keyed_alone(armature, bones)
    if keyed:  # beyond its keys an animation only stands still
        start, end = _key_range(armature, bones)
        first = math.floor(min(frame_start, max(first, start)))
        last = math.ceil(max(frame_end, min(last, end)))
    frames, poses = np.arange(first, last + 1), None
    if keyed:
        posed = armature.evaluated_get(context.evaluated_depsgraph_get())
        poses = keyed_poses(armature, posed, bones, frames.astype(np.float64), None)
    if poses is None:
        poses = yield from _stepped(context, armature, bones, frames)
    wanted = slice(frame_start - first, frame_end - first + 1)
    return Query(predictor, bones, poses, frames, wanted, fps, method)


def answer(query: Query, progress: Progress) -> SkinKeys:
    """Predict the skin bones of a query (no Blender needed)."""
    residuals = _residuals(query, progress)
    locations, rotations = query.bones.channels(residuals[query.wanted])
    turns = np.asarray(continuous_quaternions(rotations), np.float64)
    return SkinKeys(query.bones, query.frames[query.wanted], locations, turns)


def _margins(predictor: AutoPredictor, fps: float) -> tuple[int, int]:
    """Frames before and after a range that its answers look at."""
    kernel = predictor.kernel
    reach = MatchOptions().patch_length // 2 * fps / predictor.database.fps
    history = 0.0 if kernel is None else kernel.layout.history * fps
    return math.ceil(max(reach, history)), math.ceil(reach)


def _key_range(armature: bpy.types.Object, bones: RigBones) -> tuple[float, float]:
    """First and last key on the joints: endless where their curves go on beyond, nowhere without curves."""
    bag = channel_bag(armature)
    names = [armature.pose.bones[row].name for row in bones.joint_rows.tolist()]
    paths = tuple(bone_path(name, "") for name in names)
    curves = [] if bag is None else [curve for curve in bag.fcurves if curve.data_path.startswith(paths)]
    if not curves:
        return math.inf, -math.inf
    if any(len(curve.modifiers) or curve.extrapolation != "CONSTANT" for curve in curves):
        return -math.inf, math.inf
    ranges = np.array([curve.range() for curve in curves])
    return float(ranges[:, 0].min()), float(ranges[:, 1].max())


def _stepped(
    context: bpy.types.Context, armature: bpy.types.Object, bones: RigBones, frames: NDArray[np.intp]
) -> Generator[tuple[str, float], None, Poses]:
    scene = context.scene
    _check_is_posed(context, armature)
    before, subframe = scene.frame_current, scene.frame_subframe
    poses: list[Poses] = []
    with _splats_at_rest(armature):
        try:
            SESSION.paused = True
            for i, frame in enumerate(frames.tolist()):
                yield "Reading poses", i / len(frames)
                scene.frame_set(frame)
                graph = context.evaluated_depsgraph_get()
                poses.append(bones.pose(armature.evaluated_get(graph)))
        finally:
            SESSION.paused = False
            scene.frame_set(before, subframe=subframe)
    return Poses(
        np.concatenate([pose.rotations for pose in poses]),
        np.concatenate([pose.root_translations for pose in poses]),
    )


def _check_is_posed(context: bpy.types.Context, armature: bpy.types.Object) -> None:
    if cast(bpy.types.Armature, armature.data).pose_position == "REST" or armature.mode == "EDIT":
        raise RigError(
            f"'{armature.name}' stands in its rest position; leave Edit Mode and choose Pose Position to bake"
        )
    blocks = context.evaluated_depsgraph_get().ids
    if armature.session_uid not in {block.original.session_uid for block in blocks}:
        raise RigError(
            f"'{armature.name}' is disabled in viewports, so nothing poses it; enable it or its collection "
            "in the Outliner to bake"
        )


@contextmanager
def _splats_at_rest(armature: bpy.types.Object) -> Iterator[None]:
    """Switch off, in viewports, the deformers of the armature's splats: only bones matter."""
    shown = []
    if armature.visible_get():  # a hidden one is evaluated for the sake of what it deforms only
        for object in bpy.data.objects:
            modifier = find_modifier(object, DEFORM) if object.type == "POINTCLOUD" else None
            if (
                modifier is not None
                and modifier.show_viewport
                and get_input(modifier, "Armature") == armature
            ):
                shown.append(object.session_uid)
                modifier.show_viewport = False
    try:
        yield
    finally:
        for object in bpy.data.objects:
            modifier = find_modifier(object, DEFORM) if object.session_uid in shown else None
            if modifier is not None:
                modifier.show_viewport = True


def _residuals(query: Query, progress: Progress) -> Residuals:
    predictor, poses = query.predictor, query.poses
    turns, places = poses.rotations, poses.root_translations
    cuts = Fastest.of(predictor.database).cuts(poses, predictor.database.fps / query.fps)
    clips = np.cumsum(cuts, dtype=np.int32)
    if query.method == "AUTO":
        return predictor.predict(turns, places, query.fps, clips, progress=progress)
    mode = cast(Any, query.method.lower())
    database = predictor.database
    moved = predict(
        database, turns, places, mode, predictor.kernel, fps=query.fps, clips=clips, progress=progress
    )
    return residuals_of(database, turns, places, moved)
