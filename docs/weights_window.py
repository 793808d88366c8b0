"""Makes docs/images/weights_window.png: a gesture being drawn in a Blender window.

.venv/bin/python examples/static_scan.py                    (leaves the scan)
SCRIPTS=docs/weights_window.py tests/gui/run.sh COMMAND_THAT_STARTS_BLENDER
(The picture is left in build/gui, and was scaled to 1200 x 675.)
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import bpy
from mathutils import Euler

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "gui"), str(ROOT / "examples")]
import driver  # noqa: E402
import static_scan  # noqa: E402
from driver import view  # noqa: E402
from mouse import Mouse  # noqa: E402

driver.install()
BONE = "upper_arm.L"
STROKE = ((0.17, -0.1, 0.6), (0.22, -0.1, 0.6), (0.28, -0.1, 0.53), (0.34, -0.12, 0.43))


def module(name: str):
    """Return a module of the installed extension."""
    return import_module(f"{driver.PACKAGE}.{name}")


def only_weights_open() -> None:
    """Let all panels start closed but that of the weights."""
    panels = [cls for cls in module("panels")._classes() if hasattr(cls, "bl_parent_id")]
    for cls in panels:
        bpy.utils.unregister_class(cls)
        cls.bl_options = set() if cls.bl_label == "Weights" else {"DEFAULT_CLOSED"}
        bpy.utils.register_class(cls)


def script():
    for name in [object.name for object in bpy.data.objects]:
        bpy.data.objects.remove(bpy.data.objects[name])
    bpy.context.preferences.view.ui_scale = 1.2
    only_weights_open()
    yield from driver.show_tab()
    space = view()["area"].spaces[0]
    space.overlay.show_floor = space.overlay.show_cursor = space.overlay.show_axis_x = False
    space.overlay.show_axis_y = space.overlay.show_extras = False
    with bpy.context.temp_override(**view()):
        splats, armature = static_scan.rig(static_scan.OUT / "scan.ply")
    bpy.data.objects["Front"].hide_set(True)
    lists, layers = (module(f"gaussianimate_addon.weights.{name}") for name in ("layer_list", "layers"))
    drawn = layers.read_layers(splats).layers
    lists.choose_line(splats, max(i for i, layer in enumerate(drawn) if layer.bone == BONE))
    static_scan.select(armature)
    armature.data.display_type = "STICK"
    bpy.ops.object.mode_set(mode="POSE")
    bone = armature.data.bones.active = armature.data.bones[BONE]
    armature.pose.bones[bone.name].select = True
    seen = space.region_3d
    seen.view_perspective, seen.view_location, seen.view_distance = "PERSP", (0.06, 0, 0.47), 1.9
    seen.view_rotation = Euler((1.45, 0, 0.45)).to_quaternion()
    seen.update()
    with bpy.context.temp_override(**view()):
        bpy.ops.wm.tool_set_by_id(name="gaussianimate.stroke_pose")
    settings = bpy.context.scene.gaussianimate_gesture
    settings.smoothness, settings.radius = 60, 42
    yield 2.0
    hand = Mouse((view()["area"], view()["region"], seen))
    yield from hand.press(STROKE)
    yield 3.0
    driver.picture("weights_window")
    yield from hand.key("ESC")


driver.run(script)
