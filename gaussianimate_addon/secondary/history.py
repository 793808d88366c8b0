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

from ...core.rotations import normalize_quaternions
from ..armature import JOINT
from .rig_bones import Poses, RigBones

F64 = NDArray[np.float64]
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


def bone_path(name: str, channel: str) -> str:
    """Return the data path of a pose bone's channel."""
    return f'pose.bones["{bpy.utils.escape_identifier(name)}"].{channel}'


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
    keyed = False
    turns = np.empty((len(frames), len(bones.joints), 4))
    pose_bones = posed.pose.bones
    for column, row in enumerate(bones.joint_rows.tolist()):
        bone = pose_bones[row]
        channel, size = ROTATIONS.get(bone.rotation_mode, EULER)
        found = _sample(bag, bone_path(bone.name, channel), getattr(bone, channel), size, frames, now)
        if found is None:
            return None
        values, animated = found
        keyed |= animated
        turns[:, column] = _quaternions(values, bone.rotation_mode)
    root = pose_bones[int(bones.joint_rows[0])]
    found = _sample(bag, bone_path(root.name, "location"), root.location, 3, frames, now)
    if found is None or not (keyed or found[1]):
        return None
    return bones.from_channels(turns, found[0])


def _sample(
    bag: bpy.types.ActionChannelbag, path: str, stands: Any, size: int, frames: F64, now: float | None
) -> tuple[F64, bool] | None:
    """Values (H, size) of a channel that stands at `stands`, and whether it has curves; None: it stands
    elsewhere than they say."""
    values = np.tile(np.array(stands, np.float64), (len(frames), 1))
    animated = False
    for index in range(size):
        curve = bag.fcurves.find(path, index=index)
        if curve is None or curve.mute:
            continue
        if now is not None and abs(curve.evaluate(now) - stands[index]) > SAME:
            return None
        animated = True
        values[:, index] = [curve.evaluate(frame) for frame in frames]
    return values, animated


def _quaternions(values: F64, mode: str) -> F64:
    """Unit quaternions (H, 4) of a bone's rotation channels (H, 3 or 4)."""
    if mode == "QUATERNION":
        return np.asarray(normalize_quaternions(values), np.float64)
    if mode == "AXIS_ANGLE":
        turns = [Quaternion(value[1:], value[0]) for value in values.tolist()]
    else:
        turns = [Euler(value, cast(Any, mode)).to_quaternion() for value in values.tolist()]
    return np.array(turns, np.float64).reshape(-1, 4)


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
