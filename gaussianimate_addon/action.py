"""The capture's own motion as an action on the armature."""

from __future__ import annotations

import bpy

from ..core.rigging.rig import Rig


def replay_action(
    armature: bpy.types.Object, rig: Rig, scene: bpy.types.Scene, frame_start: float | None = None
) -> bpy.types.Action:
    """Key skeleton and skin bones on whole scene frames so that the armature replays the capture.

    Parameters
    ----------
    frame_start : scene frame of capture frame 0, default ``scene.frame_start``
    """
    raise NotImplementedError
