"""What the head of the tab says the steps below work on."""

from types import SimpleNamespace

import bpy
from drawn_weights import add_armature, add_splats, select

from gaussianimate.panels.main import GAUSSIANIMATE_PT_main


class Layout:
    """Stands in for UILayout: records labels."""

    def __init__(self):
        self.texts = []

    def column(self, **_):
        return self

    def label(self, text="", icon="NONE"):
        self.texts.append(text)


def drawn():
    layout = Layout()
    context = SimpleNamespace(
        region=SimpleNamespace(width=320),
        preferences=SimpleNamespace(system=SimpleNamespace(ui_scale=1.0)),
        scene=bpy.context.scene,
        active_object=bpy.context.active_object,
        selected_objects=bpy.context.selected_objects,
    )
    GAUSSIANIMATE_PT_main.draw(SimpleNamespace(layout=layout), context)
    return layout.texts


def test_splats_are_named_however_they_are_selected(empty_scene):
    splats, armature = add_splats(empty_scene), add_armature(empty_scene)
    select(splats)
    assert drawn() == ["bar", "400 splats"]
    select(splats, armature)  # the armature is active, as Blender wants parents to be
    assert drawn() == ["bar", "400 splats"]
    select(armature)
    assert "Select a capture" in " ".join(drawn())
    select(splats)
    bpy.ops.gaussianimate.bind(armature=armature.name, method="EMPTY")
    select(armature)
    assert drawn() == ["bar", "400 splats", "hand made"]
