"""Fixtures of the Blender-side tests: an empty scene without any add-on, and what the drawer reads of one."""

import bpy
import pytest


@pytest.fixture
def scene():
    """An empty file at 24 frames a second; nothing of ours is registered."""
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    return bpy.context.scene


@pytest.fixture
def drawn(empty_scene, device, monkeypatch):
    """Return a function that updates what is drawn and says what it read and built for that."""
    from drawn_scenes import DRAWER

    from gaussianimate.gaussianimate_addon.drawer import scene
    from gaussianimate.gaussianimate_addon.drawer.display import drawn_objects

    log = []

    def record(name):
        function = getattr(scene, name)
        monkeypatch.setattr(scene, name, lambda *a: (log.append(name), function(*a))[1])

    record("read_source")
    record("build_atlas")
    DRAWER.reset()

    def done():
        bpy.context.view_layer.update()
        DRAWER.splats.update(drawn_objects, bpy.context.view_layer.depsgraph, "exact")
        names = [name.partition("_")[0] for name in log]
        log.clear()
        return names

    yield done
    DRAWER.reset()
