"""Where new captures go: selected, framed in every 3D view, the scene's time set to theirs."""

from __future__ import annotations

import math

import bpy

from ..core.capture import Capture
from ..core.errors import FormatError
from ..gaussianimate_addon.capture_frames import frames_object
from ..gaussianimate_addon.capture_object import is_capture_object, scene_frame


def select_only(context: bpy.types.Context, object: bpy.types.Object) -> None:
    """Make an object the active and only selected one, in Object Mode, if its collection is not excluded."""
    if object.name not in context.view_layer.objects:
        return
    if context.object is not None and context.object.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    for other in context.selected_objects:
        other.select_set(False)
    object.select_set(True)
    context.view_layer.objects.active = object


def set_frame_rate(scene: bpy.types.Scene, capture: Capture) -> None:
    """Take over the capture's frame rate where no other capture has set one."""
    if (
        capture.fps
        and capture.frame_count > 1
        and not any(is_capture_object(object) for object in scene.objects)
    ):
        scene.render.fps = max(math.ceil(capture.fps - 1e-3), 1)
        scene.render.fps_base = scene.render.fps / capture.fps


def set_frame_range(scene: bpy.types.Scene, object: bpy.types.Object, frame_count: int) -> None:
    """Let the scene end with its longest capture, and show the first frame; a still changes nothing."""
    if frame_count < 2:
        return
    others = [other for other in scene.objects if other != object and _plays(other)]
    last = math.ceil(scene_frame(object, frame_count - 1))
    scene.frame_end = max(last, scene.frame_end) if others else max(last, scene.frame_start)
    scene.frame_set(scene.frame_start)


def _plays(object: bpy.types.Object) -> bool:
    """Return whether the object is a capture of several frames."""
    if not is_capture_object(object):
        return False
    return len(frames_object(object).data.points) > len(object.data.points)


def frame_in_views(context: bpy.types.Context) -> None:
    """Frame the selection in every 3D view of the window."""
    window = context.window
    if window is None or bpy.app.background:
        return
    for area in window.screen.areas:
        region = next((r for r in area.regions if r.type == "WINDOW"), None)
        if area.type == "VIEW_3D" and region is not None:
            with context.temp_override(window=window, area=area, region=region):
                bpy.ops.view3d.view_selected()


def absolute(path: str) -> str:
    """Return a path with Blender's ``//``, the folder of the .blend, replaced.

    Raises
    ------
    FormatError : the .blend has no folder yet
    """
    if path.startswith("//") and not bpy.data.filepath:
        raise FormatError(
            path, "// stands for the folder of the .blend; save it first, or choose a full path"
        )
    return bpy.path.abspath(path)
