"""Weights drawn on a closed body, in Pose Mode, at rest; the list of layers; a gesture's view shown again."""

from __future__ import annotations

import sys
from pathlib import Path

import bpy
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import drawn
import driver
import stage
from drawn import kinds, layers, tool, weights
from mouse import mouse
from stage import GREEN, SIDE, Shot, look

driver.install()
POINTS = ((-0.4, 0.1, 0.3), (0.3, -0.4, 0.1), (0, 0, -0.5))


def script(output):
    stage.clean_scene()
    drawn.bound(shell(), "body", (((0, 0, -0.5), (0, 0, 0)), ((0, 0, 0), (0, 0, 0.5))))
    view = stage.views()[0]
    look(view[2], at=(0, 0, 0), distance=3.0)
    yield from driver.show_tab()
    yield 1.0
    hand = mouse(view)
    yield from front(view, hand)
    yield from through(hand)
    yield from ellipse(hand)
    yield from pose_mode(hand)
    yield from only_at_rest(hand)
    drawn.select(body())
    yield from listed(hand)
    yield from view_again(view, hand)


def body():
    return bpy.data.objects["body"]  # undo makes objects anew


def layer_list():
    return stage.ours("gaussianimate_addon.weights.layer_list").layer_list(body())


def shell(count=6000):
    """A closed ball with nothing inside."""
    on = np.random.default_rng(0).normal(size=(count, 3))
    return stage.make_cloud(
        0.5 * on / np.linalg.norm(on, axis=1, keepdims=True), np.tile(GREEN, (count, 1)), 0.02
    )


def front(view, hand):
    """A brush stroke takes what is seen; the far side stays, in the mask already."""
    tool("stroke", radius=40, smoothness=30.0, through=False)
    yield from hand.press([(-0.25, -0.5, 0), (0.25, -0.5, 0)])
    _, at = weights("left", "body")
    seen, hidden = near_stroke(at), at[:, 1] > 0.1
    assert seen.sum() > 50 and (drawn.mask()[hidden] == 0).all() and drawn.mask()[seen].min() > 0.9
    yield from stage.until(
        "weights_front", lambda shot: shot.check(view, (0, -0.5, 0.04), (0.95, 0.1, 0.05), 0.3)
    )
    yield from hand.release()
    assert layers("body")[-1].front is not None
    found, _ = weights("left", "body")
    assert found[seen].min() > 0.9 and found[hidden].max() == 0


def near_stroke(at):
    return (np.abs(at[:, 0]) < 0.2) & (np.abs(at[:, 2]) < 0.05) & (at[:, 1] < 0)


def through(hand):
    """With Through the same stroke takes the far side too."""
    bpy.context.scene.gaussianimate_gesture.through = True
    yield from hand.drag([(-0.25, -0.5, 0), (0.25, -0.5, 0)])
    assert layers("body")[-1].front is None
    found, at = weights("left", "body")
    behind = (np.abs(at[:, 0]) < 0.15) & (np.abs(at[:, 2]) < 0.04) & (at[:, 1] > 0)
    assert behind.sum() > 20 and found[behind].min() > 0.9
    yield from hand.key("Z", "ctrl")
    yield 0.5
    assert len(layers("body")) == 1 and weights("left", "body")[0][behind].max() == 0


def ellipse(hand):
    """An ellipse in the box of the drag, sharpened by [ and the wheel."""
    tool("ellipse", smoothness=23.0, through=True)
    before, _ = weights("left", "body")
    yield from hand.press([(-0.4, 0, 0.6), (0.4, 0, 0.1)])
    for key in ("LEFT_BRACKET", "WHEELDOWNMOUSE"):
        yield from hand.key(key)
    Shot("weights_ellipse")
    yield from hand.release()
    layer = layers("body")[-1]
    assert layer.shape.kind == "ellipse" and abs(layer.feather.width - 23 / 1.15**2) < 0.01
    found, at = weights("left", "body")
    seen, (rx, ry) = layer.viewpoint.project(at), layer.shape.radii
    size = ((seen.x - layer.shape.centre[0]) / rx) ** 2 + ((seen.y - layer.shape.centre[1]) / ry) ** 2
    assert (size < 0.6).sum() > 200 and found[size < 0.6].min() > 0.95
    np.testing.assert_array_equal(found[size > 1.6], before[size > 1.6])


def pose_mode(hand):
    """In Pose Mode the tools draw for the active bone."""
    armature = bpy.data.objects["hand made"]
    drawn.select(armature)
    bpy.ops.object.mode_set(mode="POSE")
    drawn.make_active(armature, "right")
    tool("rectangle", "pose", smoothness=0.0)
    yield 0.5
    yield from hand.drag([(-0.7, 0, -0.15), (0.7, 0, -0.7)])
    assert bpy.context.mode == "POSE"
    layer = layers("body")[-1]
    assert (layer.bone, layer.shape.kind, layer.feather.width) == ("right", "rectangle", 0)
    found, at = weights("right", "body")
    assert found[at[:, 2] < -0.25].min() == 1 and found[at[:, 2] > -0.1].max() == 0


def only_at_rest(hand):
    """On a posed armature nothing is drawn; Rest Position lets it, and the pose comes back after."""
    armature = bpy.data.objects["hand made"]
    bone = armature.pose.bones["right"]
    bone.rotation_mode, bone.rotation_euler = "XYZ", (0, 0, 0.6)
    bpy.ops.ed.undo_push(message="Posed")
    yield 0.5
    before = kinds("body")
    yield from hand.drag([(-0.7, 0, 0.7), (0.7, 0, 0.4)])
    assert kinds("body") == before and drawn.mask() is None
    Shot("weights_posed")
    yield from hand.key("ESC")  # closes the sentence that says why
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.gaussianimate.toggle_rest()
    yield 0.5
    yield from hand.drag([(-0.7, 0, 0.7), (0.7, 0, 0.4)])
    assert kinds("body") == [*before, "rectangle"]
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.gaussianimate.toggle_rest()
    assert armature.data.pose_position == "POSE" and abs(bone.rotation_euler.z - 0.6) < 1e-6
    bone.rotation_euler = (0, 0, 0)
    bpy.ops.object.mode_set(mode="OBJECT")
    yield 0.5


def listed(hand):
    """The panel lists what was drawn for the active bone; muting a line lets its weights go."""
    shown = layer_list()
    assert [line.title for line in shown.lines] == ["Brush", "Ellipse", "Rectangle", "Rectangle"]
    assert shown.active == 3, "the one drawn last"
    hand.move((0, 0, 0))
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.wm.call_panel(name="GAUSSIANIMATE_PT_weights", keep_open=True)
    yield 1.0
    Shot("weights_list")
    yield from hand.key("ESC")
    hand.move((0.9, 0, 0.6))
    before = weights("right", "body")[0]
    shown.lines[2].shown = False
    muted, at = weights("right", "body")
    assert muted[at[:, 2] < -0.25].max() == 0 and layers("body")[2].muted
    shown.lines[2].shown = True
    np.testing.assert_array_equal(weights("right", "body")[0], before)


def view_again(view, hand):
    """From anywhere back to the view of a gesture: points of the scene are seen at the pixels they were."""
    expected = [hand.place(point) for point in POINTS]
    look(view[2], SIDE, at=(3, 1, 0), distance=9.0, perspective="ORTHO")
    yield 0.5
    assert max(np.abs(np.subtract(hand.place(POINTS[0]), expected[0]))) > 50
    layer_list().active = 1
    with bpy.context.temp_override(**driver.view()):
        assert bpy.ops.gaussianimate.view_selection_layer() == {"FINISHED"}
    yield 0.5
    assert view[2].view_perspective == "PERSP"
    np.testing.assert_allclose([hand.place(point) for point in POINTS], expected, atol=1)
    Shot("weights_view_again")


stage.run("weights_tools", script)
