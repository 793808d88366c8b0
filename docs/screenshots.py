"""Makes the README's screenshots in a Blender window, from the capture that `make demo` leaves.

SCRIPTS=docs/screenshots.py tests/gui/run.sh COMMAND_THAT_STARTS_BLENDER     (pictures in build/gui)
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import bpy

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "gui"), str(ROOT / "examples")]
import driver  # noqa: E402
from driver import view, wait_until  # noqa: E402
from new_pose import key_new_pose  # noqa: E402

driver.install()
jobs = import_module(f"{driver.PACKAGE}.gaussianimate_addon.job")
CAPTURE = ROOT / "demo" / "capture"


def idle() -> bool:
    return jobs.running() is None


def call(operator, *arguments, **settings):
    with bpy.context.temp_override(**view()):
        return operator(*arguments, **settings)


def script():
    for name in [object.name for object in bpy.data.objects]:
        bpy.data.objects.remove(bpy.data.objects[name])
    bpy.context.preferences.view.ui_scale = 1.2
    yield from driver.show_tab()
    space = view()["area"].spaces[0]
    space.shading.type = "MATERIAL"
    yield 20.0  # compiles its shaders
    space.overlay.show_floor = space.overlay.show_cursor = False
    files = [{"name": path.name} for path in sorted(CAPTURE.glob("*.ply"))]
    call(bpy.ops.gaussianimate.import_capture, "INVOKE_DEFAULT", directory=f"{CAPTURE}/", files=files, up="Y")
    yield from wait_until(idle, 120, "the import")
    yield 1.0
    call(bpy.ops.view3d.view_axis, type="FRONT")
    call(bpy.ops.view3d.view_orbit, angle=0.35, type="ORBITLEFT")
    call(bpy.ops.view3d.view_selected)
    bpy.context.scene.frame_set(60)
    yield 25.0  # the first splats compile shaders anew
    driver.picture("walk_1_import")
    call(bpy.ops.gaussianimate.build_rig, "INVOKE_DEFAULT")
    yield 12.0
    driver.picture("walk_2_building")
    yield from wait_until(idle, 400, "the rig")
    yield 6.0
    view()["area"].tag_redraw()
    yield 4.0
    driver.picture("walk_2_rig")
    call(bpy.ops.gaussianimate.set_motion, motion="POSE")
    armature = bpy.context.view_layer.objects.active
    start = bpy.context.scene.frame_start
    key_new_pose(armature, start, start + 12)
    bpy.context.scene.frame_set(start + 12)
    yield 8.0
    driver.picture("walk_3_pose")
    region = next(region for region in view()["area"].regions if region.type == "UI")
    for _ in range(12):
        view()["window"].event_simulate(
            "WHEELDOWNMOUSE", "PRESS", x=region.x + region.width // 2, y=region.y + region.height // 2
        )
        yield 0.1
    yield 2.0
    driver.picture("walk_4_bake")


driver.run(script, limit=900)
