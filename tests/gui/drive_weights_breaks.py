"""What is drawn on goes away while it is drawn on: the gesture ends, and nothing of it stays on screen."""

from __future__ import annotations

import sys
from pathlib import Path

import bpy
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import drawn
import driver
import stage
from drawn import tool
from mouse import mouse
from stage import GREEN, Shot, look

driver.install()
BONES = (((0, 0, -0.5), (0, 0, 0)), ((0, 0, 0), (0, 0, 0.5)))


def script(output):
    hand = None
    for change in (
        splats_deleted,
        armature_deleted,
        bone_deleted,
        undone,
        others_chosen,
        view_closed,
        second_gesture,
    ):
        hand = yield from scene(hand)
        yield from ends(hand, change)
    hand = yield from scene(hand)
    yield from switched_off(hand)


def scene(hand):
    """Return the mouse over the view of a bound ball (use with ``yield from``)."""
    stage.clean_scene()
    drawn.bound(stage.make_cloud(*ball()), "body", BONES)
    view = stage.views()[0]
    look(view[2], at=(0, 0, 0), distance=3.0)
    yield 0.5
    hand = hand or mouse(view)
    hand.region, hand.data = view[1], view[2]
    return hand


def ball(count=2000):
    at = np.random.default_rng(0).normal(size=(count, 3))
    return 0.5 * at / np.linalg.norm(at, axis=1, keepdims=True), np.tile(GREEN, (count, 1)), 0.02


def ends(hand, change):
    """A stroke that has begun is dropped with a sentence at the next move of the mouse."""
    tool("stroke", radius=40, smoothness=30.0)
    yield from hand.press([(-0.25, -0.5, 0), (0.1, -0.5, 0)])
    assert running() and drawn.mask() is not None
    put_back = change()
    if change is second_gesture:
        yield from hand.key("ESC")
    yield 0.3
    for x, y in ((10, 0), (20, 5)):
        hand.point(hand.at[0] + x, hand.at[1] + y)
        yield 0.2
    assert not running() and drawn.mask() is None, change.__name__
    assert not any(len(window.modal_operators) for window in bpy.context.window_manager.windows)
    body = bpy.data.objects.get("body")
    if body is not None:
        assert stage.ours("gaussianimate_addon.properties").object_notes(body).display == "NATIVE"
        assert change is undone or not drawn.layers("body")
    hand.up()
    yield 0.3
    Shot(f"weights_breaks_{change.__name__}")
    if put_back is not None:
        put_back()
    yield from hand.key("ESC")
    yield 0.3


def running():
    return stage.ours("operators.selection_gesture").DrawsSelection._seen is not None


def splats_deleted():
    bpy.data.objects.remove(bpy.data.objects["body"])


def armature_deleted():
    bpy.data.objects.remove(bpy.data.objects["hand made"])


def bone_deleted():
    armature = bpy.data.objects["hand made"]
    drawn.select(armature)
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.object.mode_set(mode="EDIT")
        armature.data.edit_bones.remove(armature.data.edit_bones["left"])
        bpy.ops.object.mode_set(mode="OBJECT")
    drawn.select(bpy.data.objects["body"])


def undone():
    """To before the splats were bound."""
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.ed.undo()


def others_chosen():
    drawn.select(stage.splat_object(stage.make_cloud(*ball(200)), "other", "NATIVE"))


def view_closed():
    """The viewport becomes another editor."""
    area = driver.view()["area"]
    area.type = "CONSOLE"
    return lambda: setattr(area, "type", "VIEW_3D")


def second_gesture():
    """Another one is begun, as in another window; the first is dropped when that ends."""
    with bpy.context.temp_override(**driver.view()):
        assert bpy.ops.gaussianimate.add_selection_layer("INVOKE_DEFAULT") == {"RUNNING_MODAL"}
    assert len(bpy.context.window_manager.windows[0].modal_operators) == 2 and running()


def switched_off(hand):
    """The extension is switched off: what it drew over the viewport is gone; it can be switched on again."""
    tool("stroke", radius=40, smoothness=30.0)
    yield from hand.press([(-0.25, -0.5, 0), (0.1, -0.5, 0)])
    gesture = stage.ours("operators.selection_gesture").DrawsSelection
    seen = gesture._seen
    assert seen is not None and seen._handle is not None
    bpy.ops.preferences.addon_disable(module=driver.PACKAGE)
    yield 0.3
    assert gesture._seen is None and seen._handle is None
    hand.up()
    bpy.ops.preferences.addon_enable(module=driver.PACKAGE)
    yield 0.5


stage.run("weights_breaks", script)
