"""Meshes hide splats and splats hide meshes, in each shading."""

from __future__ import annotations

import sys
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).parent))
import driver
import stage
from stage import BLUE, FRONT, GREEN, RED, look, until

driver.install()
SPLAT, COVERED = (0, 0, 0), (1, 0, 0)


def script(output):
    stage.clean_scene()
    scene = bpy.context.scene
    scene.view_settings.view_transform = "Standard"
    splats = stage.ball("splats", (SPLAT, RED), (COVERED, BLUE), ((2, 0, 0), GREEN))
    walls = [stage.wall("behind", 0, 1), stage.wall("in front", 1, -1)]
    area, _, data = view = stage.views()[0]
    space = area.spaces.active
    look(data, FRONT, (0.6, 0, 0), 6)
    yield from shadings(space, view, walls)
    yield from only_ours(space, view, splats)


def shadings(space, view, walls):
    for kind in ("SOLID", "WIREFRAME", "MATERIAL", "RENDERED"):
        for overlays in (True, False):
            space.shading.type, space.overlay.show_overlays = kind, overlays
            # X-ray, as wireframes are by default, hides nothing; EEVEE keeps no depth without overlays.
            hides = kind == "SOLID" or (overlays and kind != "WIREFRAME")

            def check(shot, hides=hides):
                shot.check(view, SPLAT, RED)
                shot.check(view, (2, 0, 0), GREEN)
                shot.check(view, COVERED, None if hides else BLUE)
                shot.check(view, (0.3, 0, 0), None)

            yield from until(f"depth_{kind}_{'with' if overlays else 'without'}_overlays", check, 40)
    space.shading.type, space.overlay.show_overlays = "SOLID", True
    for object in walls:
        object.hide_set(True)

    def uncovered(shot):
        shot.check(view, COVERED, BLUE)
        shot.check(view, SPLAT, RED)

    yield from until("depth_walls_hidden", uncovered)


def only_ours(space, view, splats):
    """Blender itself draws nothing of the splats, in no shading, until Native display is chosen."""
    viewport = stage.ours("gaussianimate_addon.drawer.viewport")
    viewport.stop()

    def nothing(shot):
        shot.check(view, SPLAT, None, 0.05)
        shot.check(view, (2, 0, 0), None, 0.05)

    for kind in ("SOLID", "MATERIAL", "RENDERED"):
        space.shading.type = kind
        yield 2.0
        yield from until(f"depth_not_by_blender_{kind}", nothing)
    viewport.start()

    def again(shot):
        shot.check(view, SPLAT, RED)
        shot.check(view, (2, 0, 0), GREEN)

    space.shading.type = "SOLID"
    yield from until("display_drawer", again)
    display = stage.ours("gaussianimate_addon.drawer.display")
    display.set_display(splats, "NATIVE")
    yield 0.5
    assert not stage.drawer().splats.subjects
    stage.Shot("display_native")
    display.set_display(splats, "DRAWER")
    yield from until("display_drawer", again)


stage.run("drawer_depth", script)
