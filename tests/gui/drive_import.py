"""Import through the file browser: a folder, one file of a sequence; and the add-on goes away meanwhile."""

from __future__ import annotations

import shutil
import sys
from importlib import import_module
from pathlib import Path

import bpy
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import driver
from driver import view, wait_until

driver.install()
jobs = import_module(f"{driver.PACKAGE}.gaussianimate_addon.job")
cloud_type = import_module(f"{driver.PACKAGE}.core.cloud").GaussianCloud
write_sequence = import_module(f"{driver.PACKAGE}.core.formats.ply_writer").write_sequence
FOLDER = driver.OUT / "ball"


def write_frames() -> None:
    """A ball of splats that moves along X."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(2000, 3)).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    count = len(points)
    upright = np.tile(np.array([1, 0, 0, 0], np.float32), (count, 1))
    size, opaque = np.full((count, 3), 0.03, np.float32), np.ones(count, np.float32)
    color = (points[:, None] * 1.5).astype(np.float32)
    clouds = (
        cloud_type(points + np.array([0.1 * f, 0, 0], np.float32), upright, size, opaque, color)
        for f in range(6)
    )
    shutil.rmtree(FOLDER, ignore_errors=True)
    write_sequence(clouds, FOLDER, "ball", 1, 6)


def idle():
    return jobs.running() is None


def browse(name: str):
    """Choose a file of the folder, or with "" the folder itself, in the file browser."""
    with bpy.context.temp_override(**view()):
        bpy.ops.gaussianimate.import_capture("INVOKE_DEFAULT")
    yield 1.5
    window, area = next(
        (window, area)
        for window in bpy.context.window_manager.windows
        for area in window.screen.areas
        if area.type == "FILE_BROWSER"
    )
    area.spaces.active.params.directory = str(FOLDER).encode()
    yield 1.0
    area.spaces.active.params.filename = name
    driver.picture(f"browse_{name or 'folder'}")
    with bpy.context.temp_override(window=window, area=area):
        bpy.ops.file.execute()
    yield from wait_until(lambda: bpy.data.pointclouds and idle(), 30, "the import")
    yield 0.5


def script():
    write_frames()
    for name in ("", "ball_0003.ply"):
        bpy.ops.ed.undo_push(message="before")
        yield from browse(name)
        splats = bpy.context.view_layer.objects.active
        assert splats is not None and splats.type == "POINTCLOUD", "nothing was imported"
        assert len(splats.data.points) == 2000 and bpy.context.scene.frame_end == 6
        with bpy.context.temp_override(**view()):
            bpy.ops.ed.undo()
        assert not bpy.data.pointclouds, "one undo step takes the import back"

    # The add-on is disabled while one of its operators runs.
    with bpy.context.temp_override(**view()):
        bpy.ops.gaussianimate.import_capture("INVOKE_DEFAULT", filepath=str(FOLDER))
    yield from wait_until(lambda: bpy.data.pointclouds and idle(), 30, "the import")
    with bpy.context.temp_override(**view()):
        bpy.ops.gaussianimate.build_rig("INVOKE_DEFAULT")
    yield 0.05  # begun, and not yet done: the whole of it takes less than half a second
    assert not idle()
    bpy.ops.preferences.addon_disable(module=driver.PACKAGE)
    yield 1.0
    assert idle() and not hasattr(bpy.types, "GAUSSIANIMATE_OT_build_rig")
    bpy.ops.preferences.addon_enable(module=driver.PACKAGE)
    yield 0.5
    with bpy.context.temp_override(**view()):
        assert bpy.ops.gaussianimate.build_rig.poll()


driver.run(script)
