"""The panel "3. Animate" beside an armature that splats were bound to, which has nothing to replay."""

from types import SimpleNamespace

import bpy
import pytest
from answering import learned_bar
from drawn_weights import add_armature, add_splats, select

ops = bpy.ops.gaussianimate


class Layout:
    """Stands in for UILayout: records buttons, and which can be pressed."""

    def __init__(self, buttons):
        self.buttons, self.enabled, self.texts = buttons, True, []

    def row(self, **_):
        return Layout(self.buttons)

    column = row

    def operator(self, idname, text="", **_):
        self.buttons[text or idname] = self.enabled
        return SimpleNamespace()

    def label(self, text="", **_):
        self.texts.append(text)

    def prop(self, *_, **__):
        pass


def buttons():
    from gaussianimate.panels.animate_panel import GAUSSIANIMATE_PT_animate as panel

    context, found = bpy.context, {}
    seen = SimpleNamespace(
        region=SimpleNamespace(width=320),
        preferences=SimpleNamespace(system=SimpleNamespace(ui_scale=1.0)),
        view_layer=context.view_layer,
        scene=context.scene,
        active_object=context.active_object,
        object=context.active_object,
        mode=context.mode,
    )
    panel.draw(SimpleNamespace(layout=Layout(found)), seen)
    return found


def test_a_bound_armature_has_nothing_to_replay(empty_scene):
    object, _ = add_splats(empty_scene), add_armature(empty_scene)
    select(object)
    ops.bind(armature="hand made", method="EMPTY")
    found = buttons()
    assert found["Pose Anew"] and not found["Replay"]
    with pytest.raises(RuntimeError, match="'hand made' has no captured motion to replay; Build Rig"):
        ops.set_motion(motion="REPLAY")


def test_a_rig_of_a_capture_can_be_replayed(empty_scene):
    _, armature, _ = learned_bar(empty_scene)
    select(armature)
    found = buttons()
    assert found["Replay"] and found["Pose Anew"]
    ops.set_motion(motion="POSE")
    assert buttons()["Replay"]
