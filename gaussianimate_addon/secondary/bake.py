"""Secondary motion as keys on the skin bones: what plays and renders where this add-on is not installed."""

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
from ..action import scene_fps
from ..modifiers import DEFORM, find_modifier, get_input
from ..motion_store import load_motion, motion_digest
from ..motion_switch import POSE
from .history import Fastest, bone_path, channel_bag, is_keyed_alone, keyed_poses
from .live import LIVE
from .rig_bones import Poses, RigBones, rig_bones

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


@dataclass(frozen=True)
class SkinKeys:
    """Location (F, S, 3) and rotation (F, S, 4) of skin bones at whole frames (F,), rising by 1."""

    bones: RigBones
    frames: NDArray[np.intp]
    locations: F64
    rotations: F64


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
    if frame_end < frame_start:
        raise RigError(f"the frame range {frame_start} to {frame_end} is empty; let it end after it starts")
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


def write_keys(armature: bpy.types.Object, keys: SkinKeys) -> None:
    """Key the skin bones in the action the armature plays; other keys in the range are replaced."""
    bag = _own_bag(armature)
    for column, row in enumerate(keys.bones.skin_rows.tolist()):
        bone = armature.pose.bones[row]
        bone.rotation_mode = "QUATERNION"
        for channel, values in (("location", keys.locations), ("rotation_quaternion", keys.rotations)):
            path = bone_path(bone.name, channel)
            for index in range(values.shape[-1]):
                curve = bag.fcurves.find(path, index=index)
                if curve is None:
                    curve = bag.fcurves.new(path, index=index, group_name=bone.name)
                _replace(curve, keys.frames, values[:, column, index])


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
            LIVE.paused = True
            for i, frame in enumerate(frames.tolist()):
                yield "Reading poses", i / len(frames)
                scene.frame_set(frame)
                graph = context.evaluated_depsgraph_get()
                poses.append(bones.pose(armature.evaluated_get(graph)))
        finally:
            LIVE.paused = False
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


def _own_bag(armature: bpy.types.Object) -> bpy.types.ActionChannelbag:
    """The F-curves of the armature's action; an action and a slot are made where there are none."""
    bag = channel_bag(armature)
    if bag is not None:
        return bag
    animation = armature.animation_data or armature.animation_data_create()
    action = animation.action or armature.get(POSE) or bpy.data.actions.new(f"{armature.name} pose")
    if animation.action is None:
        action.use_fake_user = True
        animation.action = armature[POSE] = action
    if animation.action_slot is None:
        suitable = animation.action_suitable_slots
        animation.action_slot = suitable[0] if suitable else action.slots.new("OBJECT", armature.name)
    layer = action.layers[0] if action.layers else action.layers.new("Layer")
    strip: Any = layer.strips[0] if layer.strips else layer.strips.new(type="KEYFRAME")
    return strip.channelbag(animation.action_slot, ensure=True)


def _replace(curve: bpy.types.FCurve, frames: NDArray[np.intp], values: F64) -> None:
    """Let linear keys at frames (F,) replace those within their range; keys outside stay as they are."""
    points: Any = curve.keyframe_points
    kept = {name: _numbers(points, name, size) for name, size in _FIELDS.items()}
    times = kept["co"].reshape(-1, 2)[:, 0]
    outside = (times < frames[0] - 0.5) | (times > frames[-1] + 0.5)
    new = np.column_stack([frames, values]).astype(np.float32)
    order = np.argsort(np.concatenate([times[outside], frames]), kind="stable")
    points.clear()
    points.add(len(order))
    for name, size in _FIELDS.items():
        old = kept[name].reshape(-1, size)[outside]
        made = new if size == 2 else np.full((len(frames), 1), _NEW[name], old.dtype)
        points.foreach_set(name, np.concatenate([old, made])[order].ravel().astype(kept[name].dtype))
    curve.update()


def _numbers(points: Any, name: str, size: int) -> NDArray:
    values = np.empty(size * len(points), np.float32 if size == 2 else np.int32)
    points.foreach_get(name, values)
    return values


def _enum(name: str, value: str) -> int:
    items: Any = bpy.types.Keyframe.bl_rna.properties[name]
    return items.enum_items[value].value


_FIELDS = {
    "co": 2,
    "handle_left": 2,
    "handle_right": 2,
    "interpolation": 1,
    "easing": 1,
    "handle_left_type": 1,
    "handle_right_type": 1,
}
_NEW = {
    "interpolation": _enum("interpolation", "LINEAR"),
    "easing": _enum("easing", "AUTO"),
    "handle_left_type": _enum("handle_left_type", "VECTOR"),
    "handle_right_type": _enum("handle_right_type", "VECTOR"),
}
