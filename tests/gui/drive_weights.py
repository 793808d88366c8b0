"""Weights drawn with the mouse: rectangle, lasso and brush in their tools, keys, undo, redo, save, reload."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import bpy
import numpy as np
from bpy_extras.view3d_utils import location_3d_to_region_2d
from mathutils import Vector

sys.path.insert(0, str(Path(__file__).parent))
import driver
import stage
from stage import RED, Shot, look

driver.install()
BONES = ("left", "right")


def script(output):
    stage.clean_scene()
    splats = stage.splat_object(stage.bar_cloud(), "bar", "NATIVE")
    armature = hand_made()
    view = stage.views()[0]
    look(view[2])
    select(splats)
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.gaussianimate.bind(armature="hand made", method="EMPTY")
    armature.data.bones.active = armature.data.bones["left"]
    bpy.ops.ed.undo_push(message="Bound")
    yield from driver.show_tab()
    for panel in ("left", "right"):
        assert panel in armature.data.bones
    yield 1.0

    yield from rectangle(view)
    yield from keys(view)
    armature.data.bones.active = armature.data.bones["right"]
    yield from lasso(view)
    yield from brush(view)
    yield from cancelled(view)
    yield from undo_redo()
    yield from files()


def hand_made():
    data = bpy.data.armatures.new("hand made")
    armature = bpy.data.objects.new("hand made", data)
    bpy.context.scene.collection.objects.link(armature)
    select(armature)
    bpy.ops.object.mode_set(mode="EDIT")
    for k, name in enumerate(BONES):
        bone = data.edit_bones.new(name)
        bone.head, bone.tail = (k, 0, 0), (k + 1, 0, 0)
    bpy.ops.object.mode_set(mode="OBJECT")
    return armature


def select(object):
    bpy.context.view_layer.update()
    for other in bpy.context.view_layer.objects.selected:
        other.select_set(False)
    object.select_set(True)
    bpy.context.view_layer.objects.active = object


def bar():
    return bpy.data.objects["bar"]


def layers():
    return stage.ours("gaussianimate_addon.weights.layers").read_layers(bar()).layers


def weights(name):
    """Return the weights of a bone and where the splats are along the bar."""
    skin = stage.ours("gaussianimate_addon.skin_attributes").read_skin(bar().data)
    found = (skin.weights * (skin.indices == BONES.index(name))).sum(axis=1)
    x = np.empty(3 * len(found), np.float32)
    bar().data.attributes["position"].data.foreach_get("vector", x)
    return found, x[::3]


class Mouse:
    """The mouse over points of the scene, in the region of a view."""

    def __init__(self, view):
        self.window, (_, self.region, self.data) = bpy.context.window_manager.windows[0], view
        self.at = (0, 0)

    def send(self, kind, value, point=None, **modifiers):
        if point is not None:
            spot = location_3d_to_region_2d(self.region, self.data, Vector(point))
            self.at = int(self.region.x + spot.x), int(self.region.y + spot.y)
        self.window.event_simulate(kind, value, x=self.at[0], y=self.at[1], **modifiers)

    def press(self, points, **modifiers):
        """Press at the first point and go to the others; use with ``yield from``."""
        self.send("MOUSEMOVE", "NOTHING", points[0])
        yield 0.2
        self.send("LEFTMOUSE", "PRESS", points[0], **modifiers)
        yield 0.3
        for a, b in zip(points[:-1], points[1:], strict=True):
            for t in np.linspace(0, 1, 7)[1:]:
                point = Vector(a).lerp(Vector(b), float(t))
                self.send("MOUSEMOVE", "NOTHING", point, **modifiers)
                yield 0.05
        yield 0.4

    def release(self):
        self.send("LEFTMOUSE", "RELEASE")
        yield 0.6

    def key(self, kind, **modifiers):
        for value in ("PRESS", "RELEASE"):
            self.send(kind, value, **modifiers)
        yield 0.2


def tool(shape):
    with bpy.context.temp_override(**driver.view()):
        assert bpy.ops.wm.tool_set_by_id(name=f"gaussianimate.{shape}_object") == {"FINISHED"}


def rectangle(view):
    """The left half; the mask shows before the release, and nothing is stored before it."""
    tool("rectangle")
    settings = bpy.context.scene.gaussianimate_gesture
    settings.smoothness, settings.through = 40.0, True
    mouse = Mouse(view)
    yield from mouse.press([(-0.3, 0, 0.4), (1, 0, -0.4)])
    assert not layers(), "nothing before the release"
    mask = stage.drawer().mask
    assert mask is not None and mask.values.max() == 1
    shot = Shot("weights_rectangle")
    shot.check(view, (0.4, 0, 0.06), (0.9, 0.1, 0.05), 0.25)  # heat: red where it is selected
    color = shot.color(view, (1.6, 0, 0.06))
    assert color[2] < 0.75 * stage.BLUE[2], f"what is not selected is dimmed, not {color}"
    yield from mouse.release()
    assert [layer.shape.kind for layer in layers()] == ["rectangle"] and stage.drawer().mask is None
    found, x = weights("left")
    assert found[x < 0.7].min() > 0.99 and found[x > 1.3].max() < 0.01, "the left half"
    assert np.abs(found[np.abs(x - 1) < 0.02] - 0.5).max() < 0.15, "half at the edge"
    Shot("weights_drawn").check(view, stage.BASE, RED)


def keys(view):
    """Wheel, brackets and digits change the smoothness, Shift wheel the strength, Ctrl subtracts."""
    mouse = Mouse(view)
    yield from mouse.press([(-0.3, 0, 0.4), (0.4, 0, -0.4)], ctrl=True)
    yield from mouse.key("WHEELUPMOUSE", ctrl=True)
    yield from mouse.key("WHEELDOWNMOUSE", shift=True, ctrl=True)
    yield from mouse.release()
    layer = layers()[-1]
    assert layer.operation == "subtract", layer.operation
    assert abs(layer.feather.width - 46) < 0.01 and abs(layer.strength - 0.95) < 1e-6, layer
    found, x = weights("left")
    assert found[x < 0.2].max() < 0.06 and found[(x > 0.6) & (x < 0.7)].min() > 0.99
    yield from mouse.press([(1.4, 0, 0.4), (1.6, 0, -0.4)])
    yield from mouse.key("TWO")
    yield from mouse.key("ZERO")
    yield from mouse.key("RIGHT_BRACKET")
    yield from mouse.release()
    assert abs(layers()[-1].feather.width - 23) < 0.01, layers()[-1].feather


def lasso(view):
    tool("lasso")
    mouse = Mouse(view)
    yield from mouse.press([(1.3, 0, 0.4), (2.3, 0, 0.4), (2.3, 0, -0.4), (1.3, 0, -0.4)])
    Shot("weights_lasso")
    yield from mouse.release()
    assert layers()[-1].shape.kind == "lasso" and layers()[-1].bone == "right"
    found, x = weights("right")
    assert found[x > 1.7].min() > 0.9 and found[x < 1.1].max() < 0.01


def brush(view):
    tool("stroke")
    bpy.context.scene.gaussianimate_gesture.radius = 30
    mouse = Mouse(view)
    before, _ = weights("right")
    yield from mouse.press([(0.2, 0, 0), (0.9, 0, 0)])
    Shot("weights_brush")
    yield from mouse.release()
    stroke = layers()[-1].shape
    assert stroke.kind == "stroke" and set(stroke.radii) == {30.0} and len(stroke.points) < 8
    after, x = weights("right")
    assert (after - before)[(x > 0.25) & (x < 0.85)].mean() > 0.2


def cancelled(view):
    """Esc and the right button leave everything as it was."""
    mouse, count = Mouse(view), len(layers())
    for button in ("ESC", "RIGHTMOUSE"):
        yield from mouse.press([(0.2, 0, 0), (0.9, 0, 0)])
        assert stage.drawer().mask is not None
        mouse.send(button, "PRESS")
        mouse.send(button, "RELEASE")
        yield 0.3
        mouse.send("LEFTMOUSE", "RELEASE")
        yield 0.3
        assert len(layers()) == count and stage.drawer().mask is None


def undo_redo():
    """One gesture is one step."""
    kinds = [layer.shape.kind for layer in layers()]
    assert kinds == ["rectangle", "rectangle", "rectangle", "lasso", "stroke"]
    after = weights("right")[0]
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.ed.undo()
    yield 0.5
    assert [layer.shape.kind for layer in layers()] == kinds[:-1]
    assert np.abs(weights("right")[0] - after).max() > 0.2
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.ed.undo()
        bpy.ops.ed.undo()
    yield 0.5
    assert [layer.shape.kind for layer in layers()] == kinds[:2], "one step a gesture"
    with bpy.context.temp_override(**driver.view()):
        for _ in range(3):
            bpy.ops.ed.redo()
    yield 0.5
    assert [layer.shape.kind for layer in layers()] == kinds
    np.testing.assert_array_equal(weights("right")[0], after)


def files():
    after = weights("right")[0]
    path = str(Path(tempfile.mkdtemp()) / "drawn.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    yield 1.0
    assert len(layers()) == 5
    np.testing.assert_array_equal(weights("right")[0], after)


stage.run("weights", script)
