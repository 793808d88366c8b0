"""A job that steps through the scene's frames: Esc, another file and quitting put everything back."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).parent))
import driver

driver.install()
jobs = import_module(f"{driver.PACKAGE}.gaussianimate_addon.job")


def start():
    scene = bpy.context.scene
    scene.frame_end = 20000
    scene.frame_set(3)
    bpy.data.objects["Cube"].modifiers.new("Smooth", "SUBSURF").levels = 3
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.gaussianimate.capture_from_object("INVOKE_DEFAULT")


def idle():
    return jobs.running() is None


def script():
    start()
    yield from driver.wait_until(lambda: jobs.running() and jobs.running().fraction > 0, 20, "sampling")
    assert jobs.running().stage == "Sampling frames" and jobs.running().uses_scene
    driver.picture("sampling")
    yield from driver.escape(idle)
    assert bpy.context.scene.frame_current == 3, "Esc puts the frame back"
    assert not bpy.data.pointclouds

    start()
    yield from driver.wait_until(lambda: jobs.running() and jobs.running().fraction > 0, 20, "sampling")
    bpy.ops.wm.read_homefile(app_template="")
    yield 0.5
    assert idle() and bpy.context.scene.frame_current == 1

    start()
    yield from driver.wait_until(lambda: jobs.running() and jobs.running().fraction > 0, 20, "sampling")
    import faulthandler

    faulthandler.dump_traceback_later(20, exit=True)  # exit code 1
    bpy.ops.wm.quit_blender()
    yield 60.0


driver.run(script)
