"""What the sidebar says about retargeting."""

from types import SimpleNamespace

import bpy
import pytest
from bodies import add_body
from public_rigs import posed_as_rest
from sources import make_armature

from gaussianimate.gaussianimate_addon.retarget_map import retarget_settings


class Layout:
    """Stands in for UILayout; refuses properties, operators and lists that are not there."""

    def __init__(self):
        self.texts, self.buttons, self.lists, self.searches = [], {}, [], []

    def label(self, text="", icon="NONE"):
        assert icon in bpy.types.UILayout.bl_rna.functions["label"].parameters["icon"].enum_items
        self.texts.append((text, icon))

    def prop(self, data, name, text=None):
        assert name in data.bl_rna.properties

    def prop_search(self, data, name, search_data, search_name, text=""):
        assert name in data.bl_rna.properties and len(getattr(search_data, search_name))
        self.searches.append(name)

    def operator(self, idname, text="", icon="NONE"):
        kind = getattr(bpy.ops.gaussianimate, idname.split(".")[1]).get_rna_type()
        assert icon in bpy.types.UILayout.bl_rna.functions["label"].parameters["icon"].enum_items
        button = SimpleNamespace()
        self.buttons[kind.name] = button
        return button

    def template_list(self, kind, id, data, name, active_data, active_name, rows):
        assert hasattr(bpy.types, kind) and active_name in active_data.bl_rna.properties
        self.lists.append(getattr(data, name))

    def row(self, **_):
        self.enabled = True
        return self

    column = box = split = row


class Context:
    region = SimpleNamespace(width=320)
    preferences = SimpleNamespace(system=SimpleNamespace(ui_scale=1.0))

    def __getattr__(self, name):
        return getattr(bpy.context, name)


def draw(kind, method="draw", *args):
    methods = {key: value for key, value in vars(kind).items() if callable(value)}
    drawn = type("Drawn", (), methods)()
    drawn.layout = Layout()
    getattr(drawn, method)(Context(), *args)
    return drawn.layout


@pytest.fixture
def armature(empty_scene):
    skeleton, mats = posed_as_rest("human")
    armature = add_body("human", skeleton, mats[:2])
    make_armature("walker", skeleton.names, skeleton.parents.tolist(), skeleton.heads)
    bpy.context.view_layer.objects.active = armature
    return armature


def test_the_panel_leads_from_source_to_map_to_action(armature):
    settings, panel = retarget_settings(armature), bpy.types.GAUSSIANIMATE_PT_retarget
    layout = draw(panel)
    assert "Suggest Bone Map" not in layout.buttons and "Choose the armature" in str(layout.texts)
    assert not layout.enabled, "there is nothing to retarget yet"
    settings.source = bpy.data.objects["walker"]
    layout = draw(panel)
    assert layout.buttons["Suggest Bone Map"].source == "walker" and not layout.lists
    assert layout.enabled
    bpy.ops.gaussianimate.suggest_bone_map(source="walker")
    settings.in_place = True
    layout = draw(panel)
    assert len(layout.lists[0]) == len(settings.bones) == 53
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
        icons += [icon for _, icon in layout.texts]
        assert layout.searches == ["source"]
    assert icons == ["CHECKMARK", "QUESTION", "ERROR", "BLANK1"]
    settings.bones["head"].confidence = 0.1
    settings.bones["head"].source = "neck_01"
    assert settings.bones["head"].confidence == 2.0
    layout = Layout()
    kind.draw_item(None, Context(), layout, settings, settings.bones["head"], 0, settings, "active")
    assert layout.texts == [("head", "USER")]


def test_doubtful_lines_are_counted(armature):
    bpy.ops.gaussianimate.suggest_bone_map(source="walker")
    pairs = retarget_settings(armature).bones
    for pair in pairs:
        pair.confidence = 0.2 if pair.name in ("head", "neck_01") else 0.9
    assert "2 bones may be wrong" in str(draw(bpy.types.GAUSSIANIMATE_PT_retarget).texts)


def test_without_a_rig_it_says_what_is_missing(empty_scene):
    assert "build a rig first" in str(draw(bpy.types.GAUSSIANIMATE_PT_retarget).texts)
