"""The poses just before the present one, from the animation itself: they do not depend on how one came here.

Bones turned by keys alone are looked up in the armature's F-curves. Where joints are moved by anything else
(constraints, drivers, NLA strips, bones in between), poses are remembered while frames follow each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import bpy
import numpy as np
from mathutils import Euler, Quaternion
from numpy.typing import NDArray

from ...core.motion.database import MotionDatabase
from ...core.rotations import normalize_quaternions
from ..action import bone_path
from ..armature import JOINT
from .rig_bones import Poses, RigBones

F64 = NDArray[np.float64]
FASTER, AT_LEAST = 1.25, np.radians(5)  # than the fastest captured step, what no motion is
SAME = 1e-4  # most by which a channel may differ from its curve
ROTATIONS = {"QUATERNION": ("rotation_quaternion", 4), "AXIS_ANGLE": ("rotation_axis_angle", 4)}
EULER = ("rotation_euler", 3)


def channel_bag(armature: bpy.types.Object) -> bpy.types.ActionChannelbag | None:
    """Return the F-curves of the action the armature plays, None where there are none."""
    animation = armature.animation_data
    if animation is None or animation.action is None or animation.action_slot is None:
        return None
    for layer in animation.action.layers:
        for strip in layer.strips:
            bag = cast(Any, strip).channelbag(animation.action_slot)
            if bag is not None:
                return bag
    return None


def is_keyed_alone(armature: bpy.types.Object, bones: RigBones) -> bool:
    """Return whether nothing but keys and hands moves the joints, each straight under its parent."""
    animation = armature.animation_data
    if animation is not None and animation.use_nla and any(not t.mute for t in animation.nla_tracks):
        return False
    if animation is not None and any("pose.bones" in driver.data_path for driver in animation.drivers):
        return False
    pose_bones = armature.pose.bones
    if any(not constraint.mute for bone in pose_bones for constraint in bone.constraints):
        return False
    parents = bones.database.parents[bones.joints].tolist()
    for row, parent in zip(bones.joint_rows.tolist(), parents, strict=True):
        above = pose_bones[row].bone.parent
        found = -1 if above is None else above.get(JOINT, -2)
        if found != parent or not pose_bones[row].bone.use_inherit_rotation:
            return False
    return True


def keyed_poses(
    armature: bpy.types.Object, posed: bpy.types.Object, bones: RigBones, frames: F64, now: float | None
) -> Poses | None:
    """Poses (H, J) of the joints at scene frames (H,), by their bones' F-curves.

    Channels without a curve are as `posed`, the evaluated armature, has them.

    Parameters
    ----------
    now : the present frame, where the pose must be that of the curves; None where it need not

    Returns
    -------
    None where no joint has a curve, or one stands otherwise now than its curves say: it is being posed.
    """
    bag = channel_bag(armature)
    if bag is None:
        return None
    found = {(curve.data_path, curve.array_index): curve for curve in bag.fcurves if not curve.mute}
    sampler = _Sampler(found, frames.tolist(), now)
    pose_bones = posed.pose.bones
    turns = []
    for row in bones.joint_rows.tolist():
        bone = pose_bones[row]
        mode = bone.rotation_mode
        channel, size = ROTATIONS.get(mode, EULER)
        values = sampler.sample(bone_path(bone.name, channel), getattr(bone, channel)[:size])
        if values is None:
            return None
        turns.append(values if mode == "QUATERNION" else _quaternions(values, mode))
    root = pose_bones[int(bones.joint_rows[0])]
    places = sampler.sample(bone_path(root.name, "location"), root.location[:])
    if places is None or not sampler.found:
        return None
    rotations = normalize_quaternions(np.array(turns, np.float64).swapaxes(0, 1))
    return bones.from_channels(np.asarray(rotations, np.float64), np.array(places, np.float64))


Values = list[tuple[float, ...]]


@dataclass
class _Sampler:
    """Looks channels up at frames; `found` tells whether any had a curve."""

    curves: dict[tuple[str, int], bpy.types.FCurve]
    frames: list[float]
    now: float | None
    found: bool = False

    def sample(self, path: str, stands: tuple[float, ...]) -> Values | None:
        """Values of a channel that stands at `stands`, at each frame; None: its curves say otherwise."""
        columns = []
        for index, value in enumerate(stands):
            curve = self.curves.get((path, index))
            if curve is None:
                columns.append([value] * len(self.frames))
                continue
            evaluate = curve.evaluate
            if self.now is not None and abs(evaluate(self.now) - value) > SAME:
                return None
            self.found = True
            columns.append([evaluate(frame) for frame in self.frames])
        return list(zip(*columns, strict=True))


def _quaternions(values: Values, mode: str) -> Values:
    """Quaternions of a bone's axis and angle, or Euler angles."""
    if mode == "AXIS_ANGLE":
        return [Quaternion(value[1:], value[0])[:] for value in values]
    return [Euler(value, cast(Any, mode)).to_quaternion()[:] for value in values]


@dataclass(frozen=True)
class Fastest:
    """Steps between captured frames that no motion takes: what is faster is a cut to another one.

    turns : (J,) radians; root : metres
    """

    turns: F64
    root: float

    @staticmethod
    def of(database: MotionDatabase) -> Fastest:
        """Somewhat faster than anything in the capture."""
        within = np.flatnonzero(np.diff(database.clips) == 0)
        poses = Poses(database.rotations, database.root_translations)
        turns, ways = _steps(poses)
        size = float(np.linalg.norm(np.ptp(database.joint_positions, axis=0)))
        least = np.zeros((1, database.joint_count))
        return Fastest(
            FASTER * np.concatenate([turns[within], least]).max(axis=0) + AT_LEAST,
            FASTER * ways[within].max(initial=0.0) + AT_LEAST * size,
        )

    def cuts(self, poses: Poses, step: float = 1.0) -> NDArray[np.bool_]:
        """(H,) where another motion begins; `step`: time between poses, in captured frames."""
        turns, ways = _steps(poses)
        found = (turns > self.turns * max(step, 1)).any(axis=1) | (ways > self.root * max(step, 1))
        return np.concatenate([[False], found])


def _steps(poses: Poses) -> tuple[F64, F64]:
    """Angles (H - 1, J) and ways (H - 1,) between successive poses."""
    alike = np.abs((poses.rotations[1:] * poses.rotations[:-1]).sum(axis=-1))
    ways = np.linalg.norm(np.diff(poses.root_translations, axis=0), axis=1)
    return 2 * np.arccos(np.minimum(alike, 1)), ways


@dataclass
class Memory:
    """Poses of frames that followed each other, the latest last.

    frames : scene frames, rising by at most one; poses : (J, 4) and (3,) of each
    """

    frames: list[float] = field(default_factory=list)
    poses: list[tuple[F64, F64]] = field(default_factory=list)

    def add(self, frame: float, pose: Poses, longest: float) -> None:
        """Note the pose (1, J) of a frame just played; a jump forgets those before."""
        if self.frames and not 0 < frame - self.frames[-1] < 1.5:
            self.frames.clear()
            self.poses.clear()
        self.frames.append(frame)
        self.poses.append((pose.rotations[0], pose.root_translations[0]))
        while len(self.frames) > 2 and self.frames[1] <= frame - longest:
            del self.frames[0], self.poses[0]

    def before(self, frames: F64, pose: Poses) -> Poses | None:
        """Poses at frames (H,) up to the latest, where that is still how `pose` (1, J) stands."""
        if not self.frames or abs(frames[-1] - self.frames[-1]) > 1e-3:
            return None
        if not np.allclose(self.poses[-1][0], pose.rotations[0], atol=SAME):
            return None
        return interpolated(
            np.array(self.frames),
            Poses(np.array([p[0] for p in self.poses]), np.array([p[1] for p in self.poses])),
            frames,
        )


def interpolated(known: F64, poses: Poses, frames: F64) -> Poses:
    """Poses at frames (H,) from those at `known` (K,), rising; held outside."""
    after = np.clip(np.searchsorted(known, frames, side="right"), 1, max(len(known) - 1, 1))
    before = after - 1
    after = np.minimum(after, len(known) - 1)
    gap = np.where(after > before, known[after] - known[before], 1)
    share = np.clip((frames - known[before]) / gap, 0, 1)
    first, second = poses.rotations[before], poses.rotations[after]
    second = np.where((first * second).sum(axis=-1, keepdims=True) < 0, -second, second)
    turns = normalize_quaternions(first + share[:, None, None] * (second - first))
    places = poses.root_translations
    return Poses(
        np.asarray(turns, np.float64), places[before] + share[:, None] * (places[after] - places[before])
    )
