"""Splats follow bones in the window: frames, bones turned by script and by the mouse; shadings and depth."""

from __future__ import annotations

import sys
from pathlib import Path

import bpy
import numpy as np
from mathutils import Quaternion

sys.path.insert(0, str(Path(__file__).parent))
import driver
import stage
from bpy_extras.view3d_utils import location_3d_to_region_2d
from stage import BLUE, HINGE, RED, Shot, look, tip, until

driver.install()


def script(output):
    stage.clean_scene()
    splats, armature = stage.rigged_bar()
    view = stage.views()[0]
    look(view[2])
    yield 1.5
    shot = Shot("drawer_rest")
    stage.failure()
    shot.check(view, stage.BASE, RED)
    shot.check(view, tip(0), BLUE)
    shot.check(view, tip(np.pi / 2), None)

    yield from frames(view)
    yield from bone_by_script(view, armature)
    yield from bone_by_mouse(view, armature)
    yield from capture(view)


def frames(view):
    """The replay turns the bar by a right angle within ten frames."""
    for frame, angle in ((6, np.pi / 4), (11, np.pi / 2)):
        bpy.context.scene.frame_set(frame)
        yield 0.5
        shot = Shot(f"drawer_frame_{frame}")
        shot.check(view, stage.BASE, RED)
        shot.check(view, tip(angle), BLUE)
        shot.check(view, tip(0), None)
    bpy.context.scene.frame_set(1)
    yield 0.3


def bone_by_script(view, armature):
    with bpy.context.temp_override(**driver.view()):
        bpy.context.view_layer.objects.active = armature
        bpy.ops.gaussianimate.set_motion(motion="POSE")
    bone = armature.pose.bones[HINGE]
    bone.rotation_mode = "QUATERNION"
    rest = armature.data.bones[HINGE].matrix_local.to_quaternion()
    for angle in (-np.pi / 4, np.pi / 3):
        bone.rotation_quaternion = rest.inverted() @ Quaternion((0, 1, 0), angle) @ rest
        yield 0.5
        shot = Shot("drawer_bone_posed")
        shot.check(view, tip(angle), BLUE)
        shot.check(view, tip(0), None)
        shot.check(view, stage.BASE, RED)
    bone.rotation_quaternion = (1, 0, 0, 0)
    yield 0.3


def bone_by_mouse(view, armature):
    """R and a quarter circle of the mouse about the bone: the picture follows before it is confirmed."""
    window, (_, region, data) = bpy.context.window_manager.windows[0], view
    assert bpy.context.mode == "POSE"
    for bone in armature.pose.bones:
        bone.select = bone.name == HINGE
    armature.data.bones.active = armature.data.bones[HINGE]
    bpy.ops.ed.undo_push(message="Before the drag")
    pivot = location_3d_to_region_2d(region, data, armature.matrix_world @ armature.pose.bones[HINGE].head)
    start, end = pivot.x + 200, pivot.y - 200

    def mouse(kind, value, x, y):
        window.event_simulate(kind, value, x=int(region.x + x), y=int(region.y + y))

    mouse("MOUSEMOVE", "NOTHING", start, pivot.y)
    yield 0.2
    mouse("R", "PRESS", start, pivot.y)
    mouse("R", "RELEASE", start, pivot.y)
    yield 0.3
    for turn in np.linspace(0, np.pi / 2, 13)[1:]:
        mouse("MOUSEMOVE", "NOTHING", pivot.x + 200 * np.cos(turn), pivot.y - 200 * np.sin(turn))
        yield 0.05
        if abs(turn - np.pi / 4) < 0.01:
            yield 0.5
            shot = Shot("drawer_drag_half")
            shot.check(view, tip(np.pi / 4), BLUE)
            shot.check(view, tip(0), None)
    yield 0.5
    shot = Shot("drawer_drag")
    shot.check(view, tip(np.pi / 2), BLUE)
    shot.check(view, tip(0), None)
    mouse("LEFTMOUSE", "PRESS", pivot.x, end)
    mouse("LEFTMOUSE", "RELEASE", pivot.x, end)
    yield 0.5
    Shot("drawer_dragged").check(view, tip(np.pi / 2), BLUE)
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.ed.undo()
    yield 0.7
    shot = Shot("drawer_drag_undone")
    shot.check(view, tip(0), BLUE)
    shot.check(view, tip(np.pi / 2), None)


def capture(view):
    """A capture that is not rigged plays: every frame is shown, also while Blender plays the animation."""
    stage.clean_scene()
    places = [(x, 0, 0) for x in (0.2, 1.0, 1.8)]
    moving = stage.played("moving", [(place, RED) for place in places])
    shows = []

    def at(frame):
        def check(shot):
            for i, place in enumerate(places):
                shot.check(view, place, RED if i == frame else None)

        return check

    for frame in (0, 1, 2, 1):
        bpy.context.scene.frame_set(frame + 1)
        yield from until(f"drawer_capture_{frame}", at(frame))
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 3
    bpy.context.scene.render.fps = 2
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.screen.animation_play()
    for _ in range(30):
        yield 0.1
        shot = Shot("drawer_capture_plays")
        shows.append([i for i, place in enumerate(places) if shot.color(view, place)[0] > 0.6])
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.screen.animation_cancel(restore_frame=False)
    assert all(len(shown) == 1 for shown in shows), f"never two frames at once, never none: {shows}"
    assert {shown[0] for shown in shows} == {0, 1, 2}, f"every frame is seen: {shows}"
    assert moving.name in bpy.data.objects


stage.run("drawer", script)
