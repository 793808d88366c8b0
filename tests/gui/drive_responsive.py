"""The window stays alive while a rig is built, and Esc answers in each stage, also while frames are baked."""

from __future__ import annotations

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
CAPTURE = driver.OUT / "arm.npz"
LONGEST = 1.0  # seconds the main thread may be held up by the worker, a redraw not counted
TICK = 0.02

pauses: dict[str, float] = {}  # stage -> longest time between two looks at the clock
watching = False
last = time.monotonic()


def write_capture(path: Path) -> None:
    """A tube of 12,800 vertices that bends at two joints."""
    around, along = np.meshgrid(np.linspace(0, 2 * np.pi, 64, endpoint=False), np.linspace(0, 3, 200))
    x, y, z = along.ravel(), 0.2 * np.cos(around).ravel(), 0.2 * np.sin(around).ravel()
    row, column = np.divmod(np.arange(199 * 64), 64)
    a, b = row * 64 + column, row * 64 + (column + 1) % 64
    faces = np.concatenate([np.stack([a, b, a + 64], 1), np.stack([b, b + 64, a + 64], 1)])
    frames = []
    for phase in np.linspace(0, 2 * np.pi, 20):
        points = np.stack([x, y, z], 1)
        for joint, angle in ((2.0, 0.7 * np.sin(phase)), (1.0, 0.5 * (1 - np.cos(phase)))):
            bend = np.clip((x - joint + 0.05) / 0.1, 0, 1) * angle
            u, v = points[:, 0] - joint, points[:, 2].copy()
            points[:, 0] = joint + np.cos(bend) * u - np.sin(bend) * v
            points[:, 2] = np.sin(bend) * u + np.cos(bend) * v
        frames.append(points)
    np.savez(path, vertices=np.array(frames, np.float32), faces=faces.astype(np.int32), fps=24.0, up="z")


def watch() -> float | None:
    """Note how long the main thread was away since the last look."""
    global last
    now, job = time.monotonic(), jobs.running()
    if job is not None:
        pauses[job.stage] = max(pauses.get(job.stage, 0.0), now - last)
    last = now
    return TICK if watching else None


def call(operator, *arguments, **settings):
    with bpy.context.temp_override(**view()):
        return operator(*arguments, **settings)


def idle():
    return jobs.running() is None


def names():
    return sorted(block.name for kind in (bpy.data.objects, bpy.data.actions) for block in kind)


def build():
    assert call(bpy.ops.gaussianimate.build_rig, "INVOKE_DEFAULT", max_bones=20) == {"RUNNING_MODAL"}


def redraw() -> float:
    started = time.monotonic()
    call(bpy.ops.wm.redraw_timer, type="DRAW_WIN_SWAP", iterations=1)
    return time.monotonic() - started


def script():
    global watching, last
    bpy.ops.object.select_all(action="SELECT")
    bpy.ops.object.delete()
    call(bpy.ops.gaussianimate.import_capture, "INVOKE_DEFAULT", filepath=str(CAPTURE), splat_count=20_000)
    yield from wait_until(idle, 120, "the import")
    yield 1.0

    # Baking an unrigged capture takes the scene, frame by frame; Esc comes between two frames.
    folder = driver.OUT / "unrigged"
    shutil.rmtree(folder, ignore_errors=True)
    call(
        bpy.ops.gaussianimate.bake_ply, "INVOKE_DEFAULT", filepath=f"{folder}/", frame_start=1, frame_end=2000
    )
    yield 1.5
    assert not idle()
    yield from driver.escape(idle)
    written = list(folder.iterdir())
    assert written and all(path.suffix == ".ply" and path.stat().st_size > 1e5 for path in written)

    # To the end, watching the clock of the main thread.
    drawn, before = redraw(), names()
    watching, last = True, time.monotonic()
    bpy.app.timers.register(watch)
    build()
    yield from wait_until(idle, 250, "the rig")
    watching = False
    for stage, pause in pauses.items():
        print(f"{stage}: the window waited {pause:.2f} s at most (a redraw takes {drawn:.2f} s)", flush=True)
    assert names() != before
    worst = max((pause for stage, pause in pauses.items() if stage != "Preparing"), default=0)
    assert worst < LONGEST + 2 * drawn, "the worker keeps the window from answering"
    call(bpy.ops.ed.undo)
    yield 0.5

    # Esc in each stage.
    for stage in [stage for stage in pauses if stage != "Preparing"]:
        before = names()
        build()
        yield from wait_until(lambda: idle() or jobs.running().stage == stage, 250, stage)  # noqa: B023
        if idle():
            continue  # over before we looked
        yield from driver.escape(idle)
        print(f"... in {stage}", flush=True)
        assert names() == before
        yield 0.3


driver.OUT.mkdir(parents=True, exist_ok=True)
write_capture(CAPTURE)
driver.run(script, limit=590)
