"""Layers drawn anew in a real window: the view they came from, holes, typed numbers, the display after."""

from __future__ import annotations

import sys
from pathlib import Path

import bpy
import numpy as np
from bpy_extras.view3d_utils import location_3d_to_region_2d
from mathutils import Euler, Vector

sys.path.insert(0, str(Path(__file__).parent))
import driver
import stage
from drawn import hand_made, select
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
    yield from driver.show_tab()
    yield 1.0

    yield from lasso_with_a_hole()
    yield from drawn_anew()
    yield from left_as_it_was()
    yield from numbers_only()
    yield from brush_of_a_typed_radius()
    yield from in_a_quad_view()


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


def send(kind, value, point=None, **modifiers):
    """An event, over a point of the scene or where the mouse was."""
    _, region, data = stage.views()[-1]
    if point is not None:
        spot = location_3d_to_region_2d(region, data, Vector(point))
        send.at = int(region.x + spot.x), int(region.y + spot.y)
    window = bpy.context.window_manager.windows[0]
    window.event_simulate(kind, value, x=send.at[0], y=send.at[1], **modifiers)


def drag(points, **modifiers):
    """Press at the first point and go to the others (use with ``yield from``)."""
    send("MOUSEMOVE", "NOTHING", points[0])
    yield 0.2
    send("LEFTMOUSE", "PRESS", points[0])
    yield 0.3
    for a, b in zip(points[:-1], points[1:], strict=True):
        for t in np.linspace(0, 1, 4)[1:]:
            send("MOUSEMOVE", "NOTHING", Vector(a).lerp(Vector(b), float(t)))
            yield 0.05
    yield 0.3


def keys(*names):
    for name in names:
        for value in ("PRESS", "RELEASE"):
            send(name, value)
        yield 0.15


def release(**modifiers):
    send("LEFTMOUSE", "RELEASE", **modifiers)
    yield 0.6


def box(low, high, tall=0.3):
    return [(low, 0, -tall), (high, 0, -tall), (high, 0, tall), (low, 0, tall)]


def tool(kind):
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.wm.tool_set_by_id(name=f"gaussianimate.{kind}_object")
    yield 0.4


def redraw():
    with bpy.context.temp_override(**driver.view()):
        assert bpy.ops.gaussianimate.redraw_selection_layer("INVOKE_DEFAULT") == {"RUNNING_MODAL"}
    yield 0.5
    assert is_drawing()


def lasso_with_a_hole():
    yield from tool("lasso")
    yield from drag(box(0.2, 1.8))
    assert display() == "DRAWER" and is_drawing()
    yield from release(alt=True)
    assert is_drawing() and not layers(), "it waits"
    send("MOUSEMOVE", "NOTHING", (1.5, 0, 0.5))
    yield 0.2
    yield from drag(box(0.8, 1.2, 0.2))
    driver.picture("redraw-hole")
    yield from release()
    assert not is_drawing() and len(layers()) == 1
    assert [len(ring) for ring in layers()[0].shape.outlines] == [4, 4]
    assert display() == "NATIVE", "as it was"
    holds((0.2, 0.8), (1.2, 1.8))
    yield from drag(box(0.3, 0.5))
    yield from release(alt=True)
    yield from keys("RET")
    assert len(layers()) == 2, "Enter ends it, too"
    yield from undo(1)


def undo(steps):
    for _ in range(steps):
        with bpy.context.temp_override(**driver.view()):
            bpy.ops.ed.undo()
        yield 0.4


def drawn_anew():
    """From another view, back to the layer's; a new shape is one undo step."""
    layer = layers()[0]
    _, _, data = stage.views()[0]
    before = np.array(data.view_matrix)
    look(data, TOP)
    data.view_distance *= 2.5
    yield 0.3
    yield from redraw()
    np.testing.assert_allclose(np.array(data.view_matrix), before, atol=1e-4)
    driver.picture("redraw-reopened")
    yield from drag(box(1.0, 1.5))
    yield from keys("THREE", "PERIOD", "FIVE")
    driver.picture("redraw-typed")
    yield from release()
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


def left_as_it_was():
    """Esc, before and while drawing; a click alone goes on waiting."""
    before, (_, _, data) = layers(), stage.views()[0]
    look(data, Euler((1.1, 0, 0.4)))
    yield 0.3
    seen = np.array(data.view_matrix)
    for drawing in (False, True):
        yield from redraw()
        assert np.abs(np.array(data.view_matrix) - seen).max() > 0.1
        if drawing:
            yield from drag(box(0.2, 0.4))
        else:
            send("LEFTMOUSE", "PRESS", (1, 0, 0.1))
            yield from release()
            assert is_drawing()
        yield from keys("ESC")
        assert not is_drawing() and layers() == before and display() == "NATIVE"
        np.testing.assert_allclose(np.array(data.view_matrix), seen, atol=1e-4)
    assert stage.drawer().mask is None


def numbers_only():
    """Enter keeps the shape; what is shown of weights keeps our drawer."""
    layer = layers()[0]
    yield from redraw()
    yield from keys("TAB", "PERIOD", "FIVE", "NINE", "BACK_SPACE", "RET")
    made = layers()[0]
    assert not is_drawing() and made.strength == 0.5 and made.shape == layer.shape
    assert made.feather == layer.feather
    shown = stage.ours("gaussianimate_addon.properties").display_settings(bpy.context.scene)
    shown.show = "WEIGHT"
    yield from redraw()
    yield from keys("RET")
    assert display() == "DRAWER"
    driver.picture("redraw-weights")
    shown.show = "COLOUR"
    stage.ours("gaussianimate_addon.drawer.display").set_display(bar(), "NATIVE")
    yield 0.3


def brush_of_a_typed_radius():
    yield from tool("stroke")
    yield from drag([(0.3, 0, 0), (0.6, 0, 0)])
    yield from keys("TAB", "TAB", "TWO", "FIVE")
    driver.picture("redraw-radius")
    yield from release()
    drawn = layers()[-1].shape
    assert set(drawn.radii) == {25} and settings().radius == 25
    shown = stage.ours("gaussianimate_addon.weights.layer_list").layer_list(bar())
    shown.active = len(layers()) - 1
    yield from redraw()
    for _ in range(2):
        send("WHEELUPMOUSE", "PRESS", alt=True)
        yield 0.2
    yield from keys("RET")
    made = layers()[-1].shape
    assert made.points == drawn.points, "the path it had"
    np.testing.assert_allclose(made.radii, 25 * 1.15**2, rtol=1e-5)
    yield from undo(2)


def in_a_quad_view():
    """The view that turns is the user's own, of the four."""
    layer = layers()[0]
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.screen.region_quadview()
    yield 1.0
    area, region, data = stage.views()[-1]
    assert area.spaces.active.region_quadviews and data == area.spaces.active.region_3d
    look(data, TOP)
    yield from redraw()
    seen = stage.ours("gaussianimate_addon.weights.gestures").region_viewpoint(bar(), region, data)
    pixels = stage.ours("gaussianimate_addon.weights.pixel_map").pixel_map(seen, layer.viewpoint)
    points = np.array([[0.3, 0, 0.1], [1.7, 0, -0.1]])
    shown, drawn = seen.project(points), layer.viewpoint.project(points)
    np.testing.assert_allclose(
        pixels.to_layer(np.stack([shown.x, shown.y], axis=1)), np.stack([drawn.x, drawn.y], axis=1), atol=0.2
    )
    yield from drag(box(0.5, 1.0))
    driver.picture("redraw-quad")
    yield from release()
    weight, x = held()
    inside = (x > 0.54) & (x < 0.96)
    np.testing.assert_allclose(weight[inside], 0.5, atol=0.01)
    assert weight[(x < 0.46) | (x > 1.04)].max() < 0.01


stage.run("redraw", script)
