"""The list of layers: numbers, reorder, duplicate, delete, mute, mirror; what the panel shows."""

import json
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from drawn_panels import Layout
from drawn_panels import draw as draw_panel
from drawn_weights import add_armature, add_splats, dense, select
from mathutils import Matrix

from gaussianimate.core.selection.evaluate import evaluate_weights
from gaussianimate.core.selection.layer import LayerStack
from gaussianimate.core.selection.viewpoint import Viewpoint
from gaussianimate.gaussianimate_addon.armature import edit_mode
from gaussianimate.gaussianimate_addon.attributes import read_attribute, remove_attribute, write_attribute
from gaussianimate.gaussianimate_addon.skin_attributes import BASE, read_skin, write_skin
from gaussianimate.gaussianimate_addon.weights.edits import armature_reflection
from gaussianimate.gaussianimate_addon.weights.layer_list import active_layer, layer_list, refused
from gaussianimate.gaussianimate_addon.weights.layers import LAYERS, read_layers
from gaussianimate.panels.weights_panel import GAUSSIANIMATE_UL_layers

ops = bpy.ops.gaussianimate
TOP = Viewpoint(
    Matrix.Translation((-1.5, 0, -5)), Matrix.Diagonal((0.25, 1 / 3, -0.1, 1)), (0, 0, 800, 600)
)  # 100 pixels a metre of the bar
VIEW = json.dumps(TOP.to_dict())


def draw(bone, low, high, **options):
    points = [[250 + 100 * low, 200], [250 + 100 * high, 400]]
    given = {"shape": "RECTANGLE", "smoothness": 30.0, "through": True, "view": VIEW} | options
    ops.add_selection_layer(bone=bone, points=json.dumps(points), **given)


@pytest.fixture
def stage(empty_scene):
    """Two layers of arm.L, one of hip."""
    object, armature = add_splats(empty_scene), add_armature(empty_scene)
    select(object)
    ops.bind(armature="hand made", method="EMPTY")
    draw("arm.L", 1, 2, name="first")
    draw("hip", 0, 1)
    draw("arm.L", 1.4, 2.5, operation="SUBTRACT", strength=0.5)
    return object, armature


def agree(object):
    """The stored weights are those of the stored layers (which nothing was normalised in)."""
    p = read_attribute(object.data, "position").astype(float)
    found, expected = dense(read_skin(object.data), 3), evaluate_weights(read_layers(object), p)
    expected /= np.maximum(expected.sum(axis=1, keepdims=True), 1)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    return found


def test_lines_read_and_write_the_document(stage):
    object, _ = stage
    lines = layer_list(object).lines
    assert [line.title for line in lines] == ["first", "Rectangle", "Rectangle"]
    assert (lines[2].operation, lines[2].strength, lines[2].smoothness) == ("SUBTRACT", 0.5, 30)
    before = agree(object)
    lines[2].strength = 1.0
    lines[0].smoothness = 80.0
    lines[0].curve = "LINEAR"
    lines[1].shown = False
    lines[0].title = "upper"
    stack = read_layers(object)
    assert (stack.layers[2].strength, stack.layers[0].feather.width) == (1, 80)
    assert (stack.layers[0].feather.curve, stack.layers[0].name, stack.layers[1].muted) == (
        "linear", "upper", True
    )  # fmt: skip
    after = agree(object)
    assert np.abs(after - before).max() > 0.4 and not after[:, 0].any()
    lines[2].operation = "REPLACE"
    agree(object)


def test_reorder_keeps_to_the_bone(stage):
    object, _ = stage
    shown = layer_list(object)
    shown.active = 2
    ops.edit_layers(action="UP")
    assert shown.active == 0
    assert [(la.bone, la.operation) for la in read_layers(object).layers] == [
        ("arm.L", "subtract"), ("arm.L", "add"), ("hip", "add")
    ]  # fmt: skip
    found = agree(object)
    x = read_attribute(object.data, "position")[:, 0]
    assert found[np.abs(x - 1.6) < 0.1, 1].min() == 1, "the subtraction acts on nothing now"
    ops.edit_layers(action="UP")
    assert shown.active == 0, "the first one stays"
    ops.edit_layers(action="DOWN")
    assert read_layers(object).layers[0].operation == "add"


def test_duplicate_and_delete(stage):
    object, _ = stage
    shown = layer_list(object)
    shown.active = 2
    ops.edit_layers(action="DUPLICATE")
    assert shown.active == 3 and len(shown.lines) == 4
    assert read_layers(object).layers[2] == read_layers(object).layers[3]
    x = read_attribute(object.data, "position")[:, 0]
    assert agree(object)[np.abs(x - 1.75) < 0.05, 1].max() < 1e-6, "half is taken twice"
    ops.edit_layers(action="DELETE")
    assert shown.active == 2 and len(shown.lines) == 3
    for _ in range(2):
        ops.edit_layers(action="DELETE")
    assert [layer.bone for layer in read_layers(object).layers] == ["hip"] and shown.active == -1
    shown.active = 0
    ops.edit_layers(action="DELETE")
    with pytest.raises(RuntimeError, match="Choose a layer"):
        ops.edit_layers(action="DELETE")


def test_starting_weights_that_do_not_fit_are_one_sentence_and_change_nothing(stage):
    """Such as those of an armature with more bones, which another tool wrote."""
    object, _ = stage
    ops.bind(armature="hand made", method="HEAT")
    index = read_attribute(object.data, "base:index_0")
    write_attribute(object.data, "base:index_0", "INT", np.full_like(index, 99))
    before = object.data[LAYERS], read_skin(object.data), len(layer_list(object).lines)
    layer_list(object).active = 0
    for act in (
        lambda: ops.edit_layers(action="DUPLICATE"),
        lambda: ops.edit_layers(action="DOWN"),
        lambda: ops.mirror_layers(whole_bone=True),
        lambda: draw("hip", 0, 1),
    ):
        with pytest.raises(RuntimeError, match="^Error: The weights that the layers start from name bones"):
            act()
        assert (object.data[LAYERS], len(layer_list(object).lines)) == (before[0], before[2])
        np.testing.assert_array_equal(read_skin(object.data).weights, before[1].weights)


def out_of_range(data):
    write_attribute(data, "base:index_0", "INT", np.full(len(data.points), 99))


DAMAGES = {
    "bones the layers do not know": out_of_range,
    "has lost its attribute 'base:gradient_0'": lambda data: remove_attribute(data, "base:gradient_0"),
    "'base:weight_0' of 'bar' is of type INT": lambda data: write_attribute(
        data, "base:weight_0", "INT", np.ones(len(data.points))
    ),
}
NUMBERS = {
    "strength": 0.25,
    "smoothness": 77.0,
    "operation": "REPLACE",
    "curve": "LINEAR",
    "through": False,
    "shown": False,
}


@pytest.mark.parametrize(("message", "damage"), DAMAGES.items())
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_cannot_be_taken_says_why_in_the_panel(stage, name, message, damage, capfd):
    """Over starting weights that another tool has damaged: all stays as it was, until a number is taken."""
    object, armature = stage
    armature.data.bones.active = armature.data.bones["hip"]
    ops.bind(armature="hand made", method="HEAT")
    line, sound = layer_list(object).lines[1], read_skin(object.data, BASE)
    damage(object.data)
    text, weights, number = object.data[LAYERS], read_skin(object.data), getattr(line, name)
    setattr(line, name, NUMBERS[name])
    assert message in " ".join(panel()) and message in capfd.readouterr().out
    assert (object.data[LAYERS], getattr(line, name)) == (text, number)
    np.testing.assert_array_equal(read_skin(object.data).weights, weights.weights)
    write_skin(object.data, sound, BASE)
    setattr(line, name, NUMBERS[name])
    assert getattr(line, name) == NUMBERS[name] and message not in " ".join(panel())


def test_undo_takes_back_what_the_panel_says(stage):
    object, _ = stage
    ops.bind(armature="hand made", method="HEAT")
    bpy.ops.ed.undo_push(message="Bound")
    out_of_range(object.data)
    bpy.ops.ed.undo_push(message="Damaged")
    layer_list(object).lines[1].strength = 0.25
    assert "name bones" in refused(object)
    bpy.ops.ed.undo()
    assert refused(bpy.data.objects["bar"]) is None


def test_what_is_cut_is_told(stage, capfd):
    """By all that changes layers: five bones on a splat are cut to four."""
    object, armature = stage
    with edit_mode(bpy.context, armature):
        for k in range(3):
            bone = armature.data.edit_bones.new(f"more {k}")
            bone.head, bone.tail = (k, 0, 1), (k, 0, 2)
    for bone in ("more 0", "more 1", "arm.R"):
        draw(bone, 1.4, 2)
    layer_list(object).active = 0
    ops.mirror_layers(to="more 2", mirror=False)
    assert "had more than 4 influences" in capfd.readouterr().out
    ops.edit_layers(action="DUPLICATE")
    assert "had more than 4 influences" in capfd.readouterr().out


def test_mirror_across_the_armature(stage):
    """The armature lies along the bar, so its X mirrors 0..3 to -3..0."""
    object, _ = stage
    shown = layer_list(object)
    shown.active = 0
    ops.mirror_layers(whole_bone=True)
    stack = read_layers(object)
    assert [la.bone for la in stack.layers] == ["arm.L", "hip", "arm.L", "arm.R", "arm.R"]
    np.testing.assert_allclose(armature_reflection(object), np.diag([-1.0, 1, 1, 1]), atol=1e-6)
    p = np.random.default_rng(1).uniform([-3, -0.3, -0.3], [3, 0.3, 0.3], (500, 3))
    weights, mirrored = evaluate_weights(stack, p), evaluate_weights(stack, p * [-1, 1, 1])
    assert weights[:, 1].max() == 1
    np.testing.assert_allclose(mirrored[:, 2], weights[:, 1], atol=1e-9)
    ops.mirror_layers(whole_bone=True)
    assert len(read_layers(object).layers) == 5, "in place of those from before"
    ops.mirror_layers(whole_bone=False, to="hip", mirror=False)
    assert read_layers(object).layers[-1].shape == read_layers(object).layers[0].shape
    shown.active = 1
    with pytest.raises(RuntimeError, match="no other side"):
        ops.mirror_layers(whole_bone=True)


def test_a_bone_in_the_middle_takes_the_mirrored_layer_itself(stage):
    """What a body gives to its left arm it gives to the right one by a button."""
    object, _ = stage
    shown = layer_list(object)
    shown.active = 1
    ops.mirror_layers(whole_bone=False)
    stack = read_layers(object)
    assert [la.bone for la in stack.layers] == ["arm.L", "hip", "hip", "arm.L"]
    assert shown.active == 2, "right after the layer it was made of, and active"
    p = np.random.default_rng(1).uniform([-3, -0.3, -0.3], [3, 0.3, 0.3], (500, 3))
    alone = [LayerStack(("hip",), (stack.layers[i],)) for i in (1, 2)]
    given, mirrored = evaluate_weights(alone[0], p), evaluate_weights(alone[1], p * [-1, 1, 1])
    assert given.max() == 1
    np.testing.assert_allclose(mirrored, given, atol=1e-9)
    before = read_layers(object)
    with pytest.raises(RuntimeError, match="no other side"):
        ops.mirror_layers(whole_bone=True)
    with pytest.raises(RuntimeError, match="no other side"):
        ops.mirror_layers(whole_bone=False, mirror=False)
    assert read_layers(object) == before


def test_the_bone_of_the_list_is_the_active_one(stage):
    object, armature = stage
    armature.data.bones.active = armature.data.bones["hip"]
    assert layer_list(object).bone == "hip"
    layer_list(object).bone = "arm.L"
    assert armature.data.bones.active.name == "arm.L"
    draw("", 0, 3)
    assert read_layers(object).layers[-1].bone == "arm.L"


def test_lines_follow_undo_and_files(stage, tmp_path):
    object, _ = stage
    bpy.ops.ed.undo_push(message="Three")
    layer_list(object).active = 2
    ops.edit_layers(action="DELETE")
    bpy.ops.ed.undo_push(message="Two")
    bpy.ops.ed.undo()
    object = bpy.data.objects["bar"]
    assert len(layer_list(object).lines) == len(read_layers(object).layers) == 3
    path = str(tmp_path / "list.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    object = bpy.data.objects["bar"]
    assert [line.title for line in layer_list(object).lines] == ["first", "Rectangle", "Rectangle"]
    agree(object)


def panel():
    layout = draw_panel("weights")
    return [*layout.texts, *layout.properties, *layout.lists]


def test_what_the_panel_shows(stage):
    object, armature = stage
    armature.data.bones.active = armature.data.bones["arm.L"]
    layer_list(object).active = 0
    seen = panel()
    assert {"strength", "smoothness", "operation", "GAUSSIANIMATE_UL_layers"} <= set(seen)
    layer_list(object).active = 1  # of another bone than the active one, whose last layer stands for it
    assert layer_list(object).active == 2 and "strength" in panel()
    row, line = Layout(), layer_list(object).lines[0]
    GAUSSIANIMATE_UL_layers.draw_item(None, bpy.context, row, None, line, 0, None, "")
    assert {"title", "shown"} <= set(row.properties)
    flags = GAUSSIANIMATE_UL_layers.filter_items(
        SimpleNamespace(bitflag_filter_item=1), bpy.context, layer_list(object), "lines"
    )
    assert flags == ([1, 0, 1], [])
    for _ in range(3):
        layer_list(object).active = 0
        ops.edit_layers(action="DELETE")
    assert "Draw with" in " ".join(panel())


def test_the_panel_says_what_comes_next(stage):
    """A bone is missing, or its first gesture, whatever other bones have."""
    object, armature = stage
    armature.data.bones.active = None
    assert "Choose the bone" in " ".join(panel())
    layer_list(object).bone = "arm.R"
    seen = panel()
    assert "Draw with" in " ".join(seen) and "GAUSSIANIMATE_UL_layers" not in seen
    layer_list(object).bone = "control"
    assert "Deform is on" in " ".join(panel()) and "Draw with" not in " ".join(panel())
    layer_list(object).bone = "hip"
    assert "GAUSSIANIMATE_UL_layers" in panel()


def test_a_chosen_bone_brings_its_last_layer(stage):
    object, _ = stage
    shown = layer_list(object)
    for bone, chosen, active in (("hip", 0, 1), ("arm.L", 1, 2), ("arm.L", 0, 0), ("arm.R", 0, 0)):
        shown.active = chosen
        shown.bone = bone
        assert shown.active == active, f"{bone}: one of its own stays, else its last"
        assert active_layer(object)[0] == active


def test_a_bone_clicked_in_the_viewport_brings_its_last_layer(stage):
    object, armature = stage
    layer_list(object).active = 0
    armature.data.bones.active = armature.data.bones["hip"]
    assert layer_list(object).active == active_layer(object)[0] == 1
    armature.data.bones.active = armature.data.bones["arm.L"]
    assert layer_list(object).active == 0, "the line that was chosen is remembered"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": "gaussianimate-selection", "version": 99}', "of version 99, this GaussiAnimate reads 1"),
        ("{", "cannot be read"),
        (
            '{"format": "gaussianimate-selection", "version": 1, "bones": ["a"], "layers": [{}]}',
            "cannot be read",
        ),
    ],
)
def test_layers_that_cannot_be_read_are_one_sentence_and_stay(stage, text, message):
    """Of a later version, or damaged: nothing is drawn over them, and nothing breaks."""
    object, armature = stage
    object.data[LAYERS] = text
    assert message in " ".join(panel()) and "GAUSSIANIMATE_UL_layers" not in panel()
    assert layer_list(object).lines[0].title == "" and layer_list(object).lines[0].strength == 0
    layer_list(object).lines[0].strength = 0.5
    before = read_skin(object.data)
    for act in (
        lambda: ops.edit_layers(action="DELETE"),
        lambda: ops.mirror_layers(whole_bone=True),
        lambda: ops.view_selection_layer(),
        lambda: draw("hip", 0, 1),
        lambda: ops.bind(armature="hand made", method="HEAT"),
    ):
        with pytest.raises(RuntimeError, match=message):
            act()
    armature.data.bones["hip"].name = "pelvis"
    bpy.context.view_layer.update()
    assert object.data[LAYERS] == text
    np.testing.assert_array_equal(read_skin(object.data).weights, before.weights)


def test_what_the_panel_says_before_the_bind(empty_scene):
    assert "Select Gaussian splats" in " ".join(panel())
    add_splats(empty_scene)
    assert "then bind" in " ".join(panel())
