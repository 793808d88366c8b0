"""Panels beside gestures: Display stays calm, a number that cannot be taken says why, gradients by button."""

from __future__ import annotations

import sys
from pathlib import Path

import bpy
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import drawn
import driver
import sidebar
import stage
from drawn import layers, tool
from mouse import mouse
from stage import FRONT, look

driver.install()
COUNT = 3000
HEAD = 160  # pixels, down to the end of the Display panel


def script(output):
    stage.clean_scene()
    drawn.bound(stage.bar_cloud(COUNT), "bar")
    view = stage.views()[0]
    look(view[2], FRONT)
    sidebar.open_panels("display", "weights")
    yield from driver.show_tab()
    yield 1.0
    hand = mouse(view)
    yield from calm_while_drawing(hand)
    yield from refused(hand)
    yield from estimated(hand)


def bar():
    return bpy.data.objects["bar"]


def attributes():
    return stage.ours("gaussianimate_addon.attributes")


def skin(kind="skin"):
    return stage.ours("gaussianimate_addon.skin_attributes").read_skin(bar().data, kind)


def panels(name):
    """Return the pixels of the sidebar."""
    region = sidebar.sidebar()
    pixels = stage.screen_pixels(name)
    return pixels[region.y : region.y + region.height, region.x : region.x + region.width - sidebar.TABS]


def calm_while_drawing(hand):
    """Splats that Blender draws are drawn by us meanwhile, which the Display panel does not show."""
    tool("rectangle", smoothness=10.0, through=True)
    hand.move((0.2, 0, 0.3))
    yield 0.5
    before = panels("panel_before")[-HEAD:]
    yield from hand.press([(0.2, 0, 0.3), (0.8, 0, -0.3)])
    assert bar().gaussianimate.display == "DRAWER" and drawn.mask() is not None
    np.testing.assert_array_equal(panels("panel_drawing")[-HEAD:], before)
    yield from hand.release()
    assert bar().gaussianimate.display == "NATIVE" and len(layers()) == 1


def refused(hand):
    """Over weights that another tool has damaged, until they are whole."""
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.gaussianimate.bind(armature="hand made", method="ENVELOPE")
    whole = skin("base")
    attributes().write_attribute(bar().data, "base:index_0", "INT", np.full(COUNT, 99))
    yield from sidebar.enter(hand, ".strength", "25")
    assert layers()[0].strength == 1, "as it was"
    assert "name bones" in stage.ours("gaussianimate_addon.weights.layer_list").refused(bar())
    driver.picture("panel_refused")
    stage.ours("gaussianimate_addon.skin_attributes").write_skin(bar().data, whole, "base")
    yield from sidebar.enter(hand, ".strength", "25")
    assert layers()[0].strength == 0.25
    driver.picture("panel_taken")


def estimated(hand):
    """Weights that were smoothed elsewhere get their gradients, layers stay; one undo step."""
    x = attributes().read_attribute(bar().data, "position")[:, 0].astype(float)
    rise = np.clip((x - 1) / 0.8 + 0.5, 0, 1)
    for k, values in enumerate((1 - rise, rise, 0 * x, 0 * x)):
        attributes().write_attribute(bar().data, f"base:index_{k}", "INT", np.full(COUNT, k == 1))
        attributes().write_attribute(bar().data, f"base:weight_{k}", "FLOAT", values)
    bpy.ops.ed.undo_push(message="Smoothed elsewhere")
    before = skin("base").gradients
    yield from sidebar.click(hand, "gaussianimate.mirror_layers", below=1)
    driver.picture("panel_estimate")
    for key in ("DOWN_ARROW", "RET"):
        yield from hand.key(key)
    yield from driver.wait_until(
        lambda: stage.ours("gaussianimate_addon.job").running() is None, 30, "the estimate"
    )
    yield 0.5
    found, steep = skin("base"), (rise > 0.3) & (rise < 0.7)
    slopes = np.where(found.indices == 1, found.gradients[..., 0], 0).sum(axis=1)[steep]
    assert abs(np.median(slopes) - 1 / 0.8) < 0.05, np.median(slopes)
    assert len(layers()) == 1
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.ed.undo()
    yield 0.5
    np.testing.assert_array_equal(skin("base").gradients, before)


stage.run("weights_panel", script)
