"""Resampling in a window: the overlay, Esc in each phase, undo, redo, poses, saving, whole splats again."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import bpy
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import driver
import stage
from driver import wait_until
from stage import BLUE, RED, Shot, look, tip, until

driver.install()
HALF, COUNT, EPSILON = np.pi / 2, 1500, 0.02


def script(output):
    stage.clean_scene()
    needles()
    bpy.context.scene.frame_set(11)
    open_panel()
    select(bar())
    bpy.ops.ed.undo_push(message="Needles")
    look(view()[2])
    view()[0].spaces.active.overlay.show_relationship_lines = False
    yield from driver.show_tab()
    yield 1.0
    Shot("resample_native")

    yield from shown_and_hidden()
    yield from escaped()
    yield from resampled()
    yield from undone()
    yield from posed()
    yield from files()


def needles():
    """A rigged bar whose splats are long."""
    object, _ = stage.rigged_bar(count=COUNT)
    long = np.tile(np.float32([0.2, 0.02, 0.02]), COUNT)
    object.data.attributes["scale"].data.foreach_set("vector", long)
    object.data.update_tag()
    stage.ours("gaussianimate_addon.drawer.display").set_display(object, "NATIVE")


def open_panel():
    """Let the Resample panel be open and those above it closed, as a user may have them."""
    for name in ("import", "rig", "weights", "animate", "retarget", "resample", "bake", "display"):
        panel = getattr(bpy.types, f"GAUSSIANIMATE_PT_{name}")
        bpy.utils.unregister_class(panel)
        panel.bl_options = set() if name == "resample" else {"DEFAULT_CLOSED"}
        bpy.utils.register_class(panel)


def bar():
    return bpy.data.objects["bar"]


def view():
    return stage.views()[0]


def select(object):
    for other in bpy.context.view_layer.objects.selected:
        other.select_set(False)
    object.select_set(True)
    bpy.context.view_layer.objects.active = object


def count():
    return len(bar().data.points)


def idle():
    return stage.ours("gaussianimate_addon.job").running() is None


def overlay():
    return stage.drawer().overlay


def press(name, **settings):
    """Press a button that starts a job, as the panel does."""
    with bpy.context.temp_override(**driver.view()):
        done = getattr(bpy.ops.gaussianimate, name)("INVOKE_DEFAULT", **settings)
    assert done == {"RUNNING_MODAL"}, done


def heat(shot):
    """Split splats are green to red, the others dim."""
    stage.failure()
    hinge, far = shot.color(view(), (1.4, 0, 0.05)), shot.color(view(), (0.3, 0, -0.11))
    assert hinge[1] > 0.3, f"what will be split is green or yellow, not {hinge}"
    assert np.abs(far - np.array(RED) * 0.6).max() < 0.2, f"the others are dim, not {far}"


def shown_and_hidden():
    press("show_bent", epsilon=EPSILON)
    yield from wait_until(idle, 60, "the preview")
    assert overlay() is not None and count() == COUNT
    assert bar().gaussianimate.display == "DRAWER", "what shows them"
    assert "of 1,500 splats" in overlay().text, overlay().text
    yield from until("resample_shown", heat)
    bpy.ops.gaussianimate.hide_bent()
    yield from until("resample_hidden", lambda shot: shot.check(view(), stage.BASE, RED))


def escaped():
    """Esc while poses are read, and while splats are split, leaves all as it was."""
    scene, before = bpy.context.scene, bar().data
    for waited in (0.0, 0.15, 0.5):
        press("resample", mode="ACTION", epsilon=0.0005, budget=20.0)
        yield waited
        assert not idle(), "too quick to be cancelled"
        yield from driver.escape(idle)
        assert bar().data == before and count() == COUNT and scene.frame_current == 11
        assert len(bpy.data.pointclouds) == 1
        yield 0.2
    yield from until("resample_escaped", lambda shot: shot.check(view(), tip(HALF), BLUE))


def resampled():
    press("show_bent", epsilon=EPSILON)
    yield from wait_until(idle, 60, "the preview")
    promised = overlay().text
    press("resample", epsilon=EPSILON)
    yield from wait_until(idle, 60, "resampling")
    assert overlay() is None and count() > COUNT + 100
    assert f"{count():,} after" in promised, promised
    yield from until("resample_done", folded(HALF))


def folded(angle):
    def check(shot):
        stage.failure()
        shot.check(view(), stage.BASE, RED)
        shot.check(view(), tip(angle), BLUE)

    return check


def undone():
    after = count()
    for step, expected in (("undo", COUNT), ("redo", after)):
        with bpy.context.temp_override(**driver.view()):
            getattr(bpy.ops.ed, step)()
        yield 0.5
        assert count() == expected, f"{step}: {count()}"
        yield from until(f"resample_{step}", folded(HALF))


def posed():
    bpy.context.scene.frame_set(6)
    yield from until("resample_posed", folded(HALF / 2))


def files():
    after, path = count(), str(Path(tempfile.mkdtemp()) / "resampled.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    yield 1.0
    assert count() == after and len(bpy.data.pointclouds) == 2
    look(view()[2])
    yield from until("resample_loaded", folded(HALF / 2))
    with bpy.context.temp_override(**driver.view()):
        assert bpy.ops.gaussianimate.restore_splats() == {"FINISHED"}
    assert count() == COUNT and len(bpy.data.pointclouds) == 1
    yield from until("resample_restored", folded(HALF / 2))
    Shot("resample_end")


stage.run("resample", script)
