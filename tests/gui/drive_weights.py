"""Weights drawn with the mouse: rectangle, lasso and brush in their tools, keys, undo, redo, save, reload."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import bpy
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import drawn
import driver
import stage
from drawn import kinds, layers, tool, weights
from mouse import mouse
from stage import Shot, look

driver.install()
DRAWN = ["rectangle", "rectangle", "rectangle", "lasso", "stroke"]


def script(output):
    stage.clean_scene()
    _, armature = drawn.bound(stage.bar_cloud())
    view = stage.views()[0]
    look(view[2])
    yield from driver.show_tab()
    yield 1.0
    hand = mouse(view)
    yield from rectangle(view, hand)
    yield from keys(hand)
    drawn.make_active(armature, "right")
    yield from lasso(hand)
    yield from brush(hand)
    yield from cancelled(hand)
    yield from undo_redo(hand)
    yield from files(hand)


def rectangle(view, hand):
    """The left half; the mask shows before the release, and nothing is stored before it."""
    tool("rectangle", smoothness=40.0, through=True)
    corners = [(-0.3, 0, 0.4), (1, 0, -0.4)]
    yield from hand.press(corners)
    assert not layers(), "nothing before the release"
    assert drawn.mask() is not None and drawn.mask().max() == 1
    yield from stage.until("weights_rectangle", lambda shot: mask_is_seen(view, shot))
    yield from hand.release()
    assert kinds() == ["rectangle"] and drawn.mask() is None
    (ax, ay), (bx, by) = (hand.place(corner) for corner in corners)
    shape = layers()[0].shape
    np.testing.assert_allclose(shape.centre, ((ax + bx) / 2, (ay + by) / 2), atol=1, err_msg="where it was")
    np.testing.assert_allclose(shape.half, ((bx - ax) / 2, (ay - by) / 2), atol=1)
    found, at = weights("left")
    x = at[:, 0]
    assert found[x < 0.7].min() > 0.99 and found[x > 1.3].max() < 0.01, "the left half"
    assert np.abs(found[np.abs(x - 1) < 0.02] - 0.5).max() < 0.15, "half at the edge"


def mask_is_seen(view, shot):
    """Red where it is selected, dimmed where it is not."""
    shot.check(view, (0.4, 0, 0.06), (0.9, 0.1, 0.05), 0.25)
    color = shot.color(view, (1.6, 0, 0.06))
    assert color[2] < 0.75 * stage.BLUE[2], f"what is not selected is dimmed, not {color}"


def keys(hand):
    """Wheel, brackets and digits change the smoothness, Shift wheel the strength, Ctrl subtracts."""
    yield from hand.press([(-0.3, 0, 0.4), (0.4, 0, -0.4)], "ctrl")
    yield from hand.key("WHEELUPMOUSE")
    yield from hand.key("WHEELDOWNMOUSE", "shift")
    yield from hand.release()
    layer = layers()[-1]
    assert layer.operation == "subtract", layer.operation
    assert abs(layer.feather.width - 46) < 0.01 and abs(layer.strength - 0.95) < 1e-6, layer
    found, at = weights("left")
    x = at[:, 0]
    assert found[x < 0.2].max() < 0.06 and found[(x > 0.6) & (x < 0.7)].min() > 0.99
    yield from hand.press([(1.4, 0, 0.4), (1.6, 0, -0.4)])
    for key in ("TWO", "ZERO", "RIGHT_BRACKET", "RIGHT_BRACKET", "LEFT_BRACKET"):
        yield from hand.key(key)
    yield from hand.release()
    assert abs(layers()[-1].feather.width - 23) < 0.01, layers()[-1].feather


def lasso(hand):
    tool("lasso")
    yield from hand.press([(1.3, 0, 0.4), (2.3, 0, 0.4), (2.3, 0, -0.4), (1.3, 0, -0.4)])
    Shot("weights_lasso")
    yield from hand.release()
    assert kinds()[-1] == "lasso" and layers()[-1].bone == "right"
    found, at = weights("right")
    assert found[at[:, 0] > 1.7].min() > 0.9 and found[at[:, 0] < 1.1].max() < 0.01


def brush(hand):
    tool("stroke", radius=30)
    before, _ = weights("right")
    yield from hand.press([(0.2, 0, 0), (0.9, 0, 0)])
    Shot("weights_brush")
    yield from hand.release()
    stroke = layers()[-1].shape
    assert stroke.kind == "stroke" and set(stroke.radii) == {30.0} and len(stroke.points) < 8
    after, at = weights("right")
    assert (after - before)[(at[:, 0] > 0.25) & (at[:, 0] < 0.85)].mean() > 0.2


def cancelled(hand):
    """Esc and the right button leave everything as it was."""
    for way in (lambda: hand.key("ESC"), lambda: right_click(hand)):
        yield from hand.press([(0.2, 0, 0), (0.9, 0, 0)])
        assert drawn.mask() is not None
        yield from way()
        assert drawn.mask() is None
        yield from hand.release()
        assert kinds() == DRAWN and drawn.mask() is None


def right_click(hand):
    hand.down("RIGHTMOUSE")
    hand.up("RIGHTMOUSE")
    yield 0.3


def undo_redo(hand):
    """One gesture is one step of Ctrl Z."""
    assert kinds() == DRAWN
    after = weights("right")[0]
    yield from undo(hand)
    assert kinds() == DRAWN[:-1]
    assert np.abs(weights("right")[0] - after).max() > 0.2
    yield from undo(hand, 2)
    assert kinds() == DRAWN[:2], "one step a gesture"
    yield from undo(hand, 3, "shift")
    assert kinds() == DRAWN
    np.testing.assert_array_equal(weights("right")[0], after)


def undo(hand, times=1, *shift):
    for _ in range(times):
        yield from hand.key("Z", "ctrl", *shift)
        yield 0.5


def files(hand):
    """Ctrl S keeps layers and weights, bit by bit."""
    path = Path(tempfile.mkdtemp()) / "drawn.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    yield from undo(hand)
    yield from undo(hand, 1, "shift")  # so that there is something to save
    after, written = weights("right")[0], path.stat().st_mtime_ns
    yield from hand.key("S", "ctrl")
    yield from driver.wait_until(lambda: path.stat().st_mtime_ns > written, 20, "Ctrl S to save")
    yield 0.5
    bpy.ops.wm.open_mainfile(filepath=str(path))
    yield 1.0
    assert kinds() == DRAWN
    np.testing.assert_array_equal(weights("right")[0], after)


stage.run("weights", script)
