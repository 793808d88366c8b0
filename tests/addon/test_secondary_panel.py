"""What the panel "Secondary Motion" says, drawn into a recorder."""

import bpy
import numpy as np
import pytest
from answering import joint, learned_bar, play_joints
from drawn_panels import Context, draw
from drawn_weights import BONES, add_armature, add_splats, select
from mathutils import Quaternion

from gaussianimate.gaussianimate_addon.motion_store import forget_motion
from gaussianimate.gaussianimate_addon.motion_switch import pose_anew
from gaussianimate.gaussianimate_addon.properties import object_notes, scene_settings
from gaussianimate.gaussianimate_addon.secondary.live import SESSION
from gaussianimate.gaussianimate_addon.subject import active_armature

ops = bpy.ops.gaussianimate


def drawn(opened=True):
    assert bpy.types.GAUSSIANIMATE_PT_secondary.poll(Context())
    return draw("secondary", opened)


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
    assert ("Coverage", "STRIP_COLOR_04") in layout.labels and ("0°", "NONE") in layout.labels
    assert ("0° from captured", "NONE") in layout.labels
    assert {"joint_0", "joint_1"} <= set(layout.texts)
    joint(armature, 1).rotation_quaternion = Quaternion((0, 0, 1), np.radians(60))
    bpy.context.view_layer.update()
    layout = drawn()
    assert ("Coverage", "STRIP_COLOR_01") in layout.labels and "go back to rigid" in layout.words
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
    assert len(calls) == 2 and ("Coverage", "STRIP_COLOR_03") in layout.labels


def test_what_is_missing_is_said(armature):
    object_notes(armature).secondary_motion = "BAKED"
    assert "has no baked secondary motion; bake it" in drawn().words
    object_notes(armature).secondary_motion = "LIVE"
    ops.set_motion(motion="REPLAY")
    assert "The replay has the captured motion" in drawn().words
    SESSION.failures[armature.session_uid] = "It broke; mend it"
    layout = drawn()
    assert ("It broke; mend it", "ERROR") in layout.labels and layout.buttons["Try Again"].mode == "LIVE"
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
