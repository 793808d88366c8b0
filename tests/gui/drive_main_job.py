"""The main job in a window: import, cancel and build a rig, undo, pose, bake; pictures of each step."""

from __future__ import annotations

import os
import shutil
import sys
import time
from importlib import import_module
from pathlib import Path

import bpy
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import driver
from driver import view, wait_until

driver.install()
jobs = import_module(f"{driver.PACKAGE}.gaussianimate_addon.job")
CAPTURE = Path(os.environ.get("GAUSSIANIMATE_CAPTURE", driver.OUT / "leg.npz"))


def write_capture(path: Path) -> None:
    """A leg of two segments that swings at hip and knee, as a mesh sequence."""
    around, along = np.meshgrid(np.linspace(0, 2 * np.pi, 16, endpoint=False), np.linspace(0, 2, 25))
    rest = np.stack([0.2 * np.cos(around), 2 - along, 0.2 * np.sin(around)], -1).reshape(-1, 3)
    row, column = np.divmod(np.arange(24 * 16), 16)
    a, b = row * 16 + column, row * 16 + (column + 1) % 16
    faces = np.concatenate([np.stack([a, b, a + 16], 1), np.stack([b, b + 16, a + 16], 1)])
    frames = []
    for phase in np.linspace(0, 2 * np.pi, 24):
        knee = np.clip((1.05 - rest[:, 1]) / 0.1, 0, 1) * 0.6 * (1 - np.cos(phase))
        hip = 0.5 * np.sin(phase)
        bent = turned(rest, knee, np.array([0, 1.0, 0]))
        frames.append(turned(bent, np.full(len(rest), hip), np.array([0, 2.0, 0])))
    np.savez(path, vertices=np.array(frames, np.float32), faces=faces.astype(np.int32), fps=24.0, up="y")


def turned(points: np.ndarray, angles: np.ndarray, pivot: np.ndarray) -> np.ndarray:
    """Turn points (N, 3) about the X axis through a pivot, each by its own angle."""
    x, y, z = (points - pivot).T
    cos, sin = np.cos(angles), np.sin(angles)
    return np.stack([x, cos * y - sin * z, sin * y + cos * z], 1) + pivot


def call(operator, *arguments, **settings):
    with bpy.context.temp_override(**view()):
        return operator(*arguments, **settings)


def idle():
    return jobs.running() is None


def scene_state():
    return sorted(o.name for o in bpy.data.objects), sorted(a.name for a in bpy.data.actions)


def script():
    bpy.ops.object.select_all(action="SELECT")
    bpy.ops.object.delete()
    yield from driver.show_tab()
    driver.picture("1_empty")

    # Import as a drop does it, beside the user.
    bpy.ops.ed.undo_push(message="Start")
    call(bpy.ops.gaussianimate.import_capture, "INVOKE_DEFAULT", filepath=str(CAPTURE), splat_count=4000)
    yield from wait_until(idle, 60, "the import")
    yield 0.5
    splats = bpy.context.view_layer.objects.active
    assert splats.type == "POINTCLOUD" and len(splats.data.points) == 4000
    with np.load(CAPTURE) as source:
        frames, fps = len(source["vertices"]), float(source["fps"])
    assert bpy.context.scene.frame_end == frames
    assert abs(bpy.context.scene.render.fps / bpy.context.scene.render.fps_base - fps) < 1e-3
    yield 1.0
    driver.picture("2_imported")
    call(bpy.ops.ed.undo)
    assert not bpy.data.objects, "one undo step takes the import back"
    call(bpy.ops.ed.redo)
    imported = scene_state()

    # Cancel the rig.
    call(bpy.ops.gaussianimate.build_rig, "INVOKE_DEFAULT", max_bones=6)
    yield 1.5
    assert not idle()
    driver.picture("3_building")
    yield from driver.escape(idle)
    yield 0.3
    assert scene_state() == imported

    # Build it.
    started = time.monotonic()
    call(bpy.ops.gaussianimate.build_rig, "INVOKE_DEFAULT", max_bones=6)
    yield from wait_until(idle, 200, "the rig")
    print(f"rig built in {time.monotonic() - started:.1f} s", flush=True)
    yield 1.0
    armature = bpy.context.view_layer.objects.active
    assert armature.type == "ARMATURE"
    bpy.context.scene.frame_set(7)
    yield 1.0
    driver.picture("4_rigged")
    call(bpy.ops.ed.undo)
    yield 0.5
    assert scene_state() == imported, "one undo step takes the rig back"
    call(bpy.ops.ed.redo)
    yield 0.5

    # Pose anew.
    call(bpy.ops.gaussianimate.set_motion, motion="POSE")
    armature = bpy.context.view_layer.objects.active
    assert bpy.context.mode == "POSE"
    skeleton = armature.data.collections["Skeleton"].bones
    bone = armature.pose.bones[next(b.name for b in skeleton if b.parent is not None)]
    bone.rotation_mode = "XYZ"
    bone.rotation_euler = (0.9, 0.0, 0.0)
    bone.keyframe_insert("rotation_euler")
    yield 1.0
    driver.picture("5_posed")

    # Bake two frames.
    folder = driver.OUT / "baked"
    shutil.rmtree(folder, ignore_errors=True)
    call(
        bpy.ops.gaussianimate.bake_ply,
        "INVOKE_DEFAULT",
        filepath=str(folder) + "/",
        frame_start=7,
        frame_end=8,
    )
    yield from wait_until(idle, 60, "the bake")
    assert len(list(folder.glob("*_000[78].ply"))) == 2
    call(bpy.ops.gaussianimate.set_motion, motion="REPLAY")
    yield 0.5
    driver.picture("6_replay")


if not CAPTURE.exists():
    driver.OUT.mkdir(parents=True, exist_ok=True)
    write_capture(CAPTURE)
driver.run(script)
