"""What the panel "Secondary Motion" says, drawn into a recorder."""

from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from answering import joint, learned_bar, play_joints
from drawn_weights import BONES, add_armature, add_splats, select
from mathutils import Quaternion

from gaussianimate.gaussianimate_addon.motion_store import forget_motion
from gaussianimate.gaussianimate_addon.motion_switch import pose_anew
from gaussianimate.gaussianimate_addon.properties import object_notes, scene_settings
from gaussianimate.gaussianimate_addon.secondary.live import SESSION
from gaussianimate.gaussianimate_addon.subject import active_armature

ops = bpy.ops.gaussianimate
LABEL = bpy.types.UILayout.bl_rna.functions["label"].parameters


class Layout:
    """Stands in for UILayout: records texts with their icons, and buttons; names must be Blender's."""

    def __init__(self, opened=True):
        self.texts, self.buttons, self.options, self.opened = [], {}, [], opened

    def label(self, text="", icon="NONE"):
        assert icon in LABEL["icon"].enum_items, icon
        self.texts.append((text, icon))

    def prop(self, data, name, text=None):
        assert name in data.bl_rna.properties, f"{data} has no property {name}"
        self.options.append(text or name)

    def operator(self, idname, text="", icon="NONE", depress=False):
        assert icon in LABEL["icon"].enum_items, icon
        module, name = idname.split(".")
        kind = getattr(getattr(bpy.ops, module), name).get_rna_type()
        self.buttons[text or kind.name] = button = SimpleNamespace(depress=depress)
        return button

    def panel(self, idname):
        return self, self if self.opened else None

    def row(self, **_):
        return self

    column = box = row

    @property
    def words(self):
        return " ".join(text for text, _ in self.texts)


def drawn(opened=True):
    from gaussianimate.panels.secondary_panel import GAUSSIANIMATE_PT_secondary as panel

    context = SimpleNamespace(
        region=SimpleNamespace(width=320),
        preferences=SimpleNamespace(system=SimpleNamespace(ui_scale=1.0)),
        scene=bpy.context.scene,
        view_layer=bpy.context.view_layer,
        active_object=bpy.context.active_object,
    )
    assert panel.poll(context)
    holder = type("Drawn", (), dict(vars(panel)))()
    holder.layout = layout = Layout(opened)
    holder.draw(context)
    return layout


@pytest.fixture
def armature(empty_scene):
    _, armature, _ = learned_bar(empty_scene)
    pose_anew(armature)
    bpy.context.view_layer.update()
    yield armature
    SESSION.forget()


def test_an_armature_made_by_hand_has_no_such_panel(empty_scene):
    """It carries a scan that does not move, from which there is no motion to learn."""
    from gaussianimate.panels.secondary_panel import GAUSSIANIMATE_PT_secondary as panel

    splats, armature = add_splats(empty_scene), add_armature(empty_scene)
    for bone in armature.data.bones:
        bone.use_deform = bone.name in BONES
    select(splats)
    ops.bind(armature=armature.name, method="EMPTY")
    assert active_armature(bpy.context) is armature
    assert not panel.poll(bpy.context)


def test_the_switch_and_the_coverage(armature):
    layout = drawn()
    assert [name for name, button in layout.buttons.items() if button.depress] == ["Live"]
    assert ("Coverage", "STRIP_COLOR_04") in layout.texts and ("0°", "NONE") in layout.texts
    assert ("0° from captured", "NONE") in layout.texts
    assert {"joint_0", "joint_1"} <= {text for text, _ in layout.texts}
    joint(armature, 1).rotation_quaternion = Quaternion((0, 0, 1), np.radians(60))
    bpy.context.view_layer.update()
    layout = drawn()
    assert ("Coverage", "STRIP_COLOR_01") in layout.texts and "go back to rigid" in layout.words
    joint(armature, 1).name = "elbow"
    assert "elbow" in drawn().words
    assert "elbow" not in drawn(opened=False).words


def test_coverage_is_computed_once_a_pose(armature, monkeypatch):
    object_notes(armature).secondary_motion = "OFF"
    bpy.context.view_layer.update()
    matcher = SESSION.of(armature).live.matcher
    calls, ask = [], matcher.covered
    monkeypatch.setattr(matcher, "covered", lambda pose: (calls.append(1), ask(pose))[1])
    for _ in range(3):
        drawn()
    assert len(calls) == 1
    joint(armature, 1).rotation_quaternion = Quaternion((0, 0, 1), 0.5)
    bpy.context.view_layer.update()
    for _ in range(3):
        layout = drawn()
    assert len(calls) == 2 and ("Coverage", "STRIP_COLOR_03") in layout.texts


def test_what_is_missing_is_said(armature):
    object_notes(armature).secondary_motion = "BAKED"
    assert "has no baked secondary motion; bake it" in drawn().words
    object_notes(armature).secondary_motion = "LIVE"
    ops.set_motion(motion="REPLAY")
    assert "The replay has the captured motion" in drawn().words
    SESSION.failures[armature.session_uid] = "It broke; mend it"
    layout = drawn()
    assert ("It broke; mend it", "ERROR") in layout.texts and layout.buttons["Try Again"].mode == "LIVE"
    ops.set_secondary_motion(mode="LIVE")
    assert not SESSION.failures
    forget_motion(armature)
    layout = drawn()
    assert "build the rig again" in layout.words and not layout.buttons


def test_the_range_that_is_baked(empty_scene):
    _, armature, _ = learned_bar(empty_scene)
    play_joints(armature)
    assert not hasattr(drawn().buttons["Bake Secondary Motion"], "frame_start")
    settings = scene_settings(bpy.context)
    settings.secondary_range, settings.secondary_start, settings.secondary_end = True, 4, 9
    button = drawn().buttons["Bake Secondary Motion"]
    assert (button.frame_start, button.frame_end) == (4, 9)


def test_many_parts_are_listed_the_worst_first():
    from gaussianimate.panels.secondary_panel import _shown

    distances = np.array([0.1, 0.9, 0.3, 0, 0, 0, 0, 0.2, 0.5, 0])
    assert _shown(distances, everything=False)[:4] == [1, 8, 2, 7] and len(_shown(distances, False)) == 8
    assert _shown(distances, everything=True) == list(range(10))
    hardly = np.array([0.9, *np.linspace(0, 0.004, 9)])
    assert _shown(hardly, everything=False) == list(range(8)), "lines that read the same keep their places"
