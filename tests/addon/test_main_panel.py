"""What the head of the tab says the steps below work on."""

import bpy
from drawn_panels import draw
from drawn_weights import add_armature, add_splats, select


def drawn():
    return draw("main").texts


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
