"""Bones of the skeleton in the colour of their part's coverage, while that is switched on."""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ...core.motion.database import MotionDatabase
from ..armature import JOINT

KEPT = "gaussianimate_colours"  # property of pose bones, which renaming keeps: palette and colours they had
STOPS = np.radians([5.0, 15.0, 25.0, 35.0, 45.0])
COLOURS = np.array(
    [[0.2, 0.75, 0.25], [0.55, 0.75, 0.15], [0.95, 0.7, 0.1], [0.95, 0.4, 0.1], [0.9, 0.1, 0.1]]
)
STEPS = 24  # shades that are told apart: each change costs an update
SHADES = ("normal", "select", "active")


def coverage_colours(distances: NDArray[np.floating]) -> NDArray[np.float64]:
    """Colours (P, 3) of coverages (P,), radians: green captured, amber from 15 degrees, red beyond 35."""
    steps = np.round(distances / STOPS[-1] * STEPS) / STEPS * STOPS[-1]
    return np.stack([np.interp(steps, STOPS, channel) for channel in COLOURS.T], axis=1)


def joint_parts(database: MotionDatabase) -> NDArray[np.intp]:
    """The part (J,) each joint shows: that it leads, else that of the nearest joint above that leads one."""
    leads = {int(joint): part for part, joint in enumerate(database.part_leaders)}
    shown = np.zeros(database.joint_count, np.intp)
    for joint, parent in enumerate(database.parents):
        shown[joint] = leads.get(joint, shown[parent] if parent >= 0 else 0)
    return shown


def colour_bones(
    armature: bpy.types.Object, database: MotionDatabase, distances: NDArray[np.floating]
) -> None:
    """Colour the bones of the skeleton; how they were coloured before is kept."""
    colours = coverage_colours(distances)[joint_parts(database)]
    for bone in armature.pose.bones:
        if JOINT in bone.bone:
            if KEPT not in bone:
                bone[KEPT] = _colours(bone)
            _paint(bone, colours[bone.bone[JOINT]])


def restore_colours(armature: bpy.types.Object) -> None:
    """Give the bones the colours they had."""
    for bone in armature.pose.bones:
        kept: Any = bone.get(KEPT)
        if kept is not None:
            bone.color.palette = kept["palette"]
            for shade in SHADES:
                setattr(bone.color.custom, shade, list(kept[shade]))
            del bone[KEPT]


def _paint(bone: bpy.types.PoseBone, colour: NDArray[np.float64]) -> None:
    custom: Any = bone.color.custom
    if bone.color.palette == "CUSTOM" and np.allclose(custom.normal, colour, atol=1e-3):
        return
    bone.color.palette = "CUSTOM"
    custom.normal = colour
    custom.select = np.minimum(colour * 0.5 + 0.45, 1)
    custom.active = np.minimum(colour * 0.3 + 0.7, 1)


def _colours(bone: bpy.types.PoseBone) -> dict[str, Any]:
    shades = {shade: list(getattr(bone.color.custom, shade)) for shade in SHADES}
    return {"palette": bone.color.palette, **shades}
