"""Secondary motion as keys on the skin bones: what plays and renders where this add-on is not installed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ...core.errors import RigError
from ..action import bone_path
from ..motion_store import motion_digest
from ..motion_switch import POSE, is_replaying
from .history import channel_bag
from .rig_bones import RigBones

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class SkinKeys:
    """Location (F, S, 3) and rotation (F, S, 4) of skin bones at whole frames (F,), rising by 1."""

    bones: RigBones
    frames: NDArray[np.intp]
    locations: F64
    rotations: F64


def write_keys(armature: bpy.types.Object, keys: SkinKeys) -> None:
    """Key the skin bones in the action the armature plays; other keys in the range are replaced.

    Raises
    ------
    RigError : bones or motion were changed meanwhile, or the armature plays its capture, which stays as it is
    """
    if is_replaying(armature) or not keys.bones.fits(armature, motion_digest(armature)):
        raise RigError(
            f"The rig of '{armature.name}' was changed or plays its capture since the bake began, so the "
            "result was dropped; bake again"
        )
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


def _own_bag(armature: bpy.types.Object) -> bpy.types.ActionChannelbag:
    """The F-curves of the armature's action; an action and a slot are made where there are none."""
    _own_action(armature)
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


def _own_action(armature: bpy.types.Object) -> None:
    """Give an armature that plays an action of another file a copy of it: keys made there are not saved."""
    animation = armature.animation_data
    action = None if animation is None else animation.action
    if animation is None or action is None or action.library is None:
        return
    handle = animation.action_slot_handle
    own = action.copy()
    own.use_fake_user = True
    animation.action = own
    animation.action_slot = next((slot for slot in own.slots if slot.handle == handle), None)
    if armature.get(POSE) == action:
        armature[POSE] = own


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
