"""What the sidebar says about retargeting."""

import bpy
import pytest
from bodies import add_body
from drawn_panels import Context, Layout, draw, said
from public_rigs import posed_as_rest
from sources import make_armature

from gaussianimate.gaussianimate_addon.retarget_map import retarget_settings


@pytest.fixture
def armature(empty_scene):
    skeleton, mats = posed_as_rest("human")
    armature = add_body("human", skeleton, mats[:2])
    make_armature("walker", skeleton.names, skeleton.parents.tolist(), skeleton.heads)
    bpy.context.view_layer.objects.active = armature
    return armature


def test_the_panel_leads_from_source_to_map_to_action(armature):
    settings = retarget_settings(armature)
    layout = draw("retarget")
    assert "Suggest Bone Map" not in layout.buttons and "Choose the armature" in layout.words
    assert not layout.buttons["Retarget Action"].enabled, "there is nothing to retarget yet"
    settings.source = bpy.data.objects["walker"]
    layout = draw("retarget")
    assert layout.buttons["Suggest Bone Map"].source == "walker" and not layout.lists
    assert layout.buttons["Retarget Action"].enabled
    bpy.ops.gaussianimate.suggest_bone_map(source="walker")
    settings.in_place = True
    layout = draw("retarget")
    assert len(layout.lists["GAUSSIANIMATE_UL_bone_map"]) == len(settings.bones) == 53
    button = layout.buttons["Retarget Action"]
    assert (button.source, button.in_place, button.align_rest) == ("walker", True, True)


def test_lines_show_how_sure_they_are(armature):
    bpy.ops.gaussianimate.suggest_bone_map(source="walker")
    settings, kind = retarget_settings(armature), bpy.types.GAUSSIANIMATE_UL_bone_map
    icons = []
    for confidence, source in ((0.9, "head"), (0.5, "head"), (0.1, "head"), (0.0, "")):
        pair = settings.bones["head"]
        pair.source = source
        pair.confidence = confidence
        layout = Layout()
        kind.draw_item(None, Context(), layout, settings, pair, 0, settings, "active")
        icons += [icon for _, icon in layout.labels]
        assert layout.searches == ["source"]
    assert icons == ["CHECKMARK", "QUESTION", "ERROR", "BLANK1"]
    settings.bones["head"].confidence = 0.1
    settings.bones["head"].source = "neck_01"
    assert settings.bones["head"].confidence == 2.0
    layout = Layout()
    kind.draw_item(None, Context(), layout, settings, settings.bones["head"], 0, settings, "active")
    assert layout.labels == [("head", "USER")]


def test_doubtful_lines_are_counted(armature):
    bpy.ops.gaussianimate.suggest_bone_map(source="walker")
    pairs = retarget_settings(armature).bones
    for pair in pairs:
        pair.confidence = 0.2 if pair.name in ("head", "neck_01") else 0.9
    assert "2 bones may be wrong" in said("retarget")


def test_without_a_rig_it_says_what_is_missing(empty_scene):
    assert "build a rig first" in said("retarget")
