"""Where new captures go: selected, framed in every 3D view, the scene's time set to theirs."""

from __future__ import annotations

import math

import bpy

from ..core.capture import Capture
from ..gaussianimate_addon.capture_object import is_capture_object, scene_frame


def select_only(context: bpy.types.Context, object: bpy.types.Object) -> None:
    """Make an object the active and only selected one, in Object Mode."""
    if context.object is not None and context.object.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    for other in context.selected_objects:
        other.select_set(False)
    object.select_set(True)
    context.view_layer.objects.active = object


def set_frame_rate(scene: bpy.types.Scene, capture: Capture) -> None:
    """Take over the capture's frame rate where no other capture has set one."""
    if capture.fps and not any(is_capture_object(object) for object in scene.objects):
        scene.render.fps = max(math.ceil(capture.fps - 1e-3), 1)
        scene.render.fps_base = scene.render.fps / capture.fps


def set_frame_range(scene: bpy.types.Scene, object: bpy.types.Object, frame_count: int) -> None:
    """Let the scene end with its longest capture, and show the first frame."""
    others = [o for o in scene.objects if o != object and is_capture_object(o)]
    last = math.ceil(scene_frame(object, frame_count - 1))
    scene.frame_end = max(last, scene.frame_end) if others else max(last, scene.frame_start)
    scene.frame_set(scene.frame_start)


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
