"""Layers drawn anew in a real window, by the button of the panel: the view they came from, holes, typed
numbers, the display after."""

from __future__ import annotations

import sys
from pathlib import Path

import bpy
import numpy as np
from mathutils import Euler

sys.path.insert(0, str(Path(__file__).parent))
import driver
import sidebar
import stage
from drawn import hand_made, select
from mouse import mouse
from stage import FRONT, TOP, look

driver.install()


def script(output):
    stage.clean_scene()
    splats = stage.splat_object(stage.bar_cloud(), "bar", "NATIVE")
    armature = hand_made([((0, 0, 0), (2, 0, 0))], ["held"])
    look(stage.views()[0][2], FRONT)
    select(splats)
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.gaussianimate.bind(armature="hand made", method="EMPTY")
    armature.data.bones.active = armature.data.bones["held"]
    settings().through, settings().smoothness = True, 4.0
    bpy.ops.ed.undo_push(message="Bound")
    sidebar.open_panels("weights")
    yield from driver.show_tab()
    yield 1.0
    hand = mouse(stage.views()[0])
    yield from lasso_with_a_hole(hand)
    yield from drawn_anew(hand)
    yield from left_as_it_was(hand)
    yield from numbers_only(hand)
    yield from brush_of_a_typed_radius(hand)
    yield from in_a_quad_view(hand)


def bar():
    return bpy.data.objects["bar"]


def settings():
    return bpy.context.scene.gaussianimate_gesture


def layers():
    return stage.ours("gaussianimate_addon.weights.layers").read_layers(bar()).layers


def display():
    return stage.ours("gaussianimate_addon.properties").object_notes(bar()).display


def is_drawing():
    return stage.ours("operators.selection_gesture").DrawsSelection._seen is not None


def held():
    """Return the bone's weights, and where the splats are along the bar."""
    skin = stage.ours("gaussianimate_addon.skin_attributes").read_skin(bar().data)
    x = np.empty(3 * len(bar().data.points), np.float32)
    bar().data.attributes["position"].data.foreach_get("vector", x)
    return (skin.weights * (skin.indices == 0)).sum(axis=1), x[::3]


def holds(*spans):
    """Whether the bone holds the splats of these spans along the bar and no others (but for the fades)."""
    weight, x = held()
    inside, near = np.zeros(len(x), bool), np.zeros(len(x), bool)
    for low, high in spans:
        inside |= (x > low) & (x < high)
        near |= np.minimum(abs(x - low), abs(x - high)) < 0.04
    np.testing.assert_allclose(weight[~near], inside[~near], atol=0.01)


def keys(hand, *names):
    for name in names:
        yield from hand.key(name)


def box(low, high, tall=0.3):
    return [(low, 0, -tall), (high, 0, -tall), (high, 0, tall), (low, 0, tall)]


def tool(kind):
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.wm.tool_set_by_id(name=f"gaussianimate.{kind}_object")
    yield 0.4


def redraw(hand):
    """Press Redraw in the panel, beside Its View."""
    yield from sidebar.click(hand, "gaussianimate.redraw_selection_layer", across=0.75)
    assert is_drawing()


def keep_open(hand):
    """Let go with Alt: another outline is to come."""
    hand.hold("alt")
    yield 0.2
    yield from hand.release()


def lasso_with_a_hole(hand):
    yield from tool("lasso")
    yield from hand.press(box(0.2, 1.8))
    assert display() == "DRAWER" and is_drawing()
    yield from keep_open(hand)
    assert is_drawing() and not layers(), "it waits"
    hand.move((1.5, 0, 0.5))
    yield 0.2
    yield from hand.press(box(0.8, 1.2, 0.2))
    driver.picture("redraw-hole")
    yield from hand.release()
    assert not is_drawing() and len(layers()) == 1
    assert [len(ring) for ring in layers()[0].shape.outlines] == [4, 4]
    assert display() == "NATIVE", "as it was"
    holds((0.2, 0.8), (1.2, 1.8))
    yield from hand.press(box(0.3, 0.5))
    yield from keep_open(hand)
    yield from keys(hand, "RET")
    assert len(layers()) == 2, "Enter ends it, too"
    yield from undo(1)


def undo(steps):
    for _ in range(steps):
        with bpy.context.temp_override(**driver.view()):
            bpy.ops.ed.undo()
        yield 0.4


def drawn_anew(hand):
    """From another view, back to the layer's; a new shape is one undo step."""
    layer = layers()[0]
    _, _, data = stage.views()[0]
    before = np.array(data.view_matrix)
    look(data, TOP)
    data.view_distance *= 2.5
    yield 0.3
    yield from redraw(hand)
    np.testing.assert_allclose(np.array(data.view_matrix), before, atol=1e-4)
    driver.picture("redraw-reopened")
    yield from hand.press(box(1.0, 1.5))
    yield from keys(hand, "THREE", "PERIOD", "FIVE")
    driver.picture("redraw-typed")
    yield from hand.release()
    made = layers()[0]
    assert len(layers()) == 1 and not is_drawing() and display() == "NATIVE"
    assert (made.bone, made.viewpoint, made.operation) == (layer.bone, layer.viewpoint, layer.operation)
    assert made.feather.width == 3.5 and len(made.shape.outlines) == 1
    holds((1.0, 1.5))
    yield from undo(1)
    assert layers() == (layer,)
    holds((0.2, 0.8), (1.2, 1.8))
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.ed.redo()
    yield 0.4
    assert layers() == (made,)


def left_as_it_was(hand):
    """Esc, before and while drawing; a click alone goes on waiting."""
    before, (_, _, data) = layers(), stage.views()[0]
    look(data, Euler((1.1, 0, 0.4)))
    yield 0.3
    seen = np.array(data.view_matrix)
    for drawing in (False, True):
        yield from redraw(hand)
        assert np.abs(np.array(data.view_matrix) - seen).max() > 0.1
        if drawing:
            yield from hand.press(box(0.2, 0.4))
        else:
            hand.move((1, 0, 0.1))
            yield 0.2
            hand.down()
            yield 0.2
            yield from hand.release()
            assert is_drawing()
        yield from keys(hand, "ESC")
        if drawing:
            yield from hand.release()
        assert not is_drawing() and layers() == before and display() == "NATIVE"
        np.testing.assert_allclose(np.array(data.view_matrix), seen, atol=1e-4)
    assert stage.drawer().mask is None


def numbers_only(hand):
    """Enter keeps the shape; what is shown of weights keeps our drawer."""
    layer = layers()[0]
    yield from redraw(hand)
    yield from keys(hand, "TAB", "PERIOD", "FIVE", "NINE", "BACK_SPACE", "RET")
    made = layers()[0]
    assert not is_drawing() and made.strength == 0.5 and made.shape == layer.shape
    assert made.feather == layer.feather
    shown = stage.ours("gaussianimate_addon.properties").display_settings(bpy.context.scene)
    shown.show = "WEIGHT"
    yield from redraw(hand)
    yield from keys(hand, "RET")
    assert display() == "DRAWER"
    driver.picture("redraw-weights")
    shown.show = "COLOUR"
    stage.ours("gaussianimate_addon.drawer.display").set_display(bar(), "NATIVE")
    yield 0.3


def brush_of_a_typed_radius(hand):
    yield from tool("stroke")
    yield from hand.press([(0.3, 0, 0), (0.6, 0, 0)])
    yield from keys(hand, "TAB", "TAB", "TWO", "FIVE")
    driver.picture("redraw-radius")
    yield from hand.release()
    drawn = layers()[-1].shape
    assert set(drawn.radii) == {25} and settings().radius == 25
    shown = stage.ours("gaussianimate_addon.weights.layer_list").layer_list(bar())
    shown.active = len(layers()) - 1
    yield from redraw(hand)
    for _ in range(2):
        yield from hand.key("WHEELUPMOUSE", "alt")
    yield from keys(hand, "RET")
    made = layers()[-1].shape
    assert made.points == drawn.points, "the path it had"
    np.testing.assert_allclose(made.radii, 25 * 1.15**2, rtol=1e-5)
    yield from undo(2)


def in_a_quad_view(hand):
    """The view that turns is the user's own, of the four."""
    layer = layers()[0]
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.screen.region_quadview()
    yield 1.0
    area, region, data = stage.views()[-1]
    assert area.spaces.active.region_quadviews and data == area.spaces.active.region_3d
    hand.region, hand.data = region, data
    look(data, TOP)
    yield from redraw(hand)
    seen = stage.ours("gaussianimate_addon.weights.gestures").region_viewpoint(bar(), region, data)
    pixels = stage.ours("gaussianimate_addon.weights.pixel_map").pixel_map(seen, layer.viewpoint)
    points = np.array([[0.3, 0, 0.1], [1.7, 0, -0.1]])
    shown, drawn = seen.project(points), layer.viewpoint.project(points)
    np.testing.assert_allclose(
        pixels.to_layer(np.stack([shown.x, shown.y], axis=1)), np.stack([drawn.x, drawn.y], axis=1), atol=0.2
    )
    yield from hand.press(box(0.5, 1.0))
    driver.picture("redraw-quad")
    yield from hand.release()
    weight, x = held()
    inside = (x > 0.54) & (x < 0.96)
    np.testing.assert_allclose(weight[inside], 0.5, atol=0.01)
    assert weight[(x < 0.46) | (x > 1.04)].max() < 0.01


stage.run("redraw", script)
