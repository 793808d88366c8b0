"""Drawn layers through what happens to bones and objects: new and swapped names, deletions, copies, sides."""

import json

import bpy
import numpy as np
import pytest
from compare import evaluated
from drawn_weights import BONES, add_armature, add_splats, dense, select
from mathutils import Quaternion

from gaussianimate.core.selection.evaluate import evaluate_weights
from gaussianimate.gaussianimate_addon.armature import SKIN_BONE, edit_mode, indexed_bones
from gaussianimate.gaussianimate_addon.attributes import read_attribute
from gaussianimate.gaussianimate_addon.deform_nodes import bone_names
from gaussianimate.gaussianimate_addon.deformer import bind_is_stale, deformer, deformer_armature
from gaussianimate.gaussianimate_addon.skin_attributes import read_skin
from gaussianimate.gaussianimate_addon.weights import handlers
from gaussianimate.gaussianimate_addon.weights.layer_list import layer_list
from gaussianimate.gaussianimate_addon.weights.layers import read_layers

ops = bpy.ops.gaussianimate
VIEW = json.dumps(
    {
        "view": [[1, 0, 0, -1.5], [0, 1, 0, 0], [0, 0, 1, -5], [0, 0, 0, 1]],
        "projection": [[0.25, 0, 0, 0], [0, 1 / 3, 0, 0], [0, 0, -0.1, 0], [0, 0, 0, 1]],
        "window": [0, 0, 800, 600],
    }
)  # 100 pixels a metre; the bar goes from x = 250 to 550


def draw(bone, low, high, **options):
    points = json.dumps([[low, 200], [high, 400]])
    given = {"smoothness": 20.0, "through": True, "view": VIEW, "shape": "RECTANGLE"} | options
    ops.add_selection_layer(bone=bone, points=points, **given)


@pytest.fixture
def stage(empty_scene):
    """Layers of arm.L (second metre) and arm.R (third metre)."""
    object, armature = add_splats(empty_scene), add_armature(empty_scene)
    select(object)
    ops.bind(armature="hand made", method="EMPTY")
    draw("arm.L", 350, 450)
    draw("arm.R", 450, 550)
    return object, armature


def held(object, bone):
    """The weights of a bone, by its name."""
    names = read_layers(object).bones
    return dense(read_skin(object.data), len(names))[:, names.index(bone)]


def consistent(object):
    """Armature, deformer, layers and weights speak of the same bones."""
    armature = deformer_armature(object)
    names = [bone.name for bone in indexed_bones(armature, SKIN_BONE)]
    assert [bone[SKIN_BONE] for bone in indexed_bones(armature, SKIN_BONE)] == list(range(len(names)))
    stack = read_layers(object)
    assert bone_names(deformer(object).node_group) == names == list(stack.bones)
    assert bind_is_stale(object) is None
    p = read_attribute(object.data, "position").astype(float)
    expected = evaluate_weights(stack, p)
    expected /= np.maximum(expected.sum(axis=1, keepdims=True), 1)
    np.testing.assert_allclose(dense(read_skin(object.data), len(names)), expected, atol=1e-6)
    assert np.isfinite(evaluated(object).positions).all()


def owners(object):
    return [layer.bone for layer in read_layers(object).layers]


def rename(armature, in_edit_mode, **names):
    """New names in this order; a name may be taken from a bone renamed before."""
    if not in_edit_mode:
        for old, new in names.items():
            armature.data.bones[old.replace("_", ".")].name = new
        bpy.context.view_layer.update()
        return
    with edit_mode(bpy.context, armature):
        for old, new in names.items():
            armature.data.edit_bones[old.replace("_", ".")].name = new
    bpy.context.view_layer.update()


@pytest.mark.parametrize("in_edit_mode", [False, True])
def test_renamed_bones_keep_their_layers(stage, in_edit_mode):
    object, armature = stage
    before = held(object, "arm.L"), held(object, "arm.R")
    rename(armature, in_edit_mode, arm_L="forearm", hip="pelvis")
    assert owners(object) == ["forearm", "arm.R"]
    consistent(object)
    np.testing.assert_array_equal(held(object, "forearm"), before[0])
    np.testing.assert_array_equal(held(object, "arm.R"), before[1])


@pytest.mark.parametrize("in_edit_mode", [False, True])
def test_bones_that_swap_their_names_keep_their_layers(stage, in_edit_mode):
    object, armature = stage
    left, right = held(object, "arm.L"), held(object, "arm.R")
    heads = {bone.name: bone.head_local.copy() for bone in armature.data.bones}
    bones = armature.data.bones
    if in_edit_mode:
        with edit_mode(bpy.context, armature):
            swap(armature.data.edit_bones)
    else:
        swap(bones)
    bpy.context.view_layer.update()
    assert armature.data.bones["arm.R"].head_local == heads["arm.L"]
    assert owners(object) == ["arm.R", "arm.L"]
    consistent(object)
    np.testing.assert_array_equal(held(object, "arm.R"), left)
    np.testing.assert_array_equal(held(object, "arm.L"), right)


def swap(bones):
    one, other = bones["arm.L"], bones["arm.R"]
    one.name = "between"
    other.name = "arm.L"
    one.name = "arm.R"


def test_a_deleted_bone_and_its_layers_come_back_by_undo(stage):
    object, armature = stage
    bpy.ops.ed.undo_push(message="Drawn")
    before = dense(read_skin(object.data), 3)
    with edit_mode(bpy.context, armature):
        armature.data.edit_bones.remove(armature.data.edit_bones["arm.L"])
    bpy.context.view_layer.update()
    assert owners(object) == ["arm.R"]
    consistent(object)
    bpy.ops.ed.undo_push(message="Deleted")
    bpy.ops.ed.undo()
    object = bpy.data.objects["bar"]
    assert owners(object) == ["arm.L", "arm.R"] and len(layer_list(object).lines) == 2
    np.testing.assert_array_equal(dense(read_skin(object.data), 3), before)
    consistent(object)
    bpy.ops.ed.redo()
    object = bpy.data.objects["bar"]
    assert owners(object) == ["arm.R"]
    consistent(object)


def test_a_bone_deleted_and_another_drawn_for_at_once(stage, monkeypatch):
    """As scripts do it, before anything has followed the deletion."""
    object, armature = stage
    right = held(object, "arm.R")
    monkeypatch.setattr(handlers, "_follow", lambda edited: None)
    with edit_mode(bpy.context, armature):
        bones = armature.data.edit_bones
        bones.remove(bones["arm.L"])
        bones.new("tail").tail = (0, 0, 1)
    draw("tail", 260, 340)
    assert owners(object) == ["arm.R", "tail"]
    consistent(object)
    np.testing.assert_allclose(held(object, "arm.R"), right, atol=1e-6)


def test_undo_of_a_new_name(stage):
    object, armature = stage
    bpy.ops.ed.undo_push(message="Drawn")
    rename(armature, False, arm_L="forearm")
    bpy.ops.ed.undo_push(message="Renamed")
    assert owners(object)[0] == "forearm"
    for step, name in ((bpy.ops.ed.undo, "arm.L"), (bpy.ops.ed.redo, "forearm")):
        step()
        object = bpy.data.objects["bar"]
        assert owners(object) == [name, "arm.R"]
        consistent(object)


def duplicate(object, armature=None, linked=False):
    """As Shift+D does, Alt+D where linked."""
    select(*([armature] if armature else []), object)
    bpy.ops.object.duplicate(linked=linked)
    bpy.context.view_layer.update()
    copies = bpy.context.selected_objects
    return next(o for o in copies if o.type == "POINTCLOUD")


def test_a_duplicate_with_its_armature_goes_its_own_way(stage):
    object, armature = stage
    copy = duplicate(object, armature)
    other = deformer_armature(copy)
    assert other != armature and other.data != armature.data and copy.data != object.data
    rename(other, False, arm_L="forearm")
    assert owners(copy) == ["forearm", "arm.R"] and owners(object) == ["arm.L", "arm.R"]
    select(copy)
    draw("hip", 260, 340)
    assert len(owners(copy)) == 3 and len(owners(object)) == 2
    consistent(copy)
    consistent(object)


def test_a_duplicate_on_the_same_armature_has_layers_of_its_own(stage):
    object, armature = stage
    copy = duplicate(object)
    assert copy.data != object.data and deformer_armature(copy) == armature
    select(copy)
    layer_list(copy).lines[0].shown = False
    draw("hip", 260, 340)
    assert held(object, "arm.L").max() == 1 and not held(copy, "arm.L").any()
    rename(armature, True, arm_R="hand")
    assert owners(copy)[1] == owners(object)[1] == "hand"
    consistent(object)
    assert bone_names(deformer(copy).node_group) == ["hip", "arm.L", "hand"]


def test_a_linked_duplicate_shares_layers_until_it_is_bound_to_something_else(stage):
    object, armature = stage
    copy = duplicate(object, linked=True)
    assert copy.data == object.data
    select(copy)
    draw("hip", 260, 340)
    assert owners(object) == ["arm.L", "arm.R", "hip"] == owners(copy)
    rename(armature, False, arm_L="forearm")
    for each in (object, copy):
        consistent(each)
    other = add_armature(bpy.context.scene, name="other")
    select(copy)
    ops.bind(armature="other", method="EMPTY")
    assert copy.data != object.data and deformer_armature(copy) == other
    assert owners(copy) == ["arm.R", "hip"], "the other armature has no forearm"
    assert owners(object) == ["forearm", "arm.R", "hip"]
    consistent(copy)
    consistent(object)


def test_the_copy_moves_as_the_original(stage):
    object, armature = stage
    copy = duplicate(object, armature)
    for each in (armature, deformer_armature(copy)):
        bone = each.pose.bones["arm.L"]
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = Quaternion((0, 0, 1), 0.6)
    bpy.context.view_layer.update()
    rest = read_attribute(object.data, "position")
    assert np.abs(evaluated(object).positions - rest).max() > 0.3
    np.testing.assert_allclose(evaluated(copy).positions, evaluated(object).positions, atol=1e-5)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("arm.L", "arm.R"),
        ("LeftArm", "RightArm"),
        ("arm_left", "arm_right"),
        ("l-arm", "r-arm"),
        ("a.r", "a.l"),
    ],
)
def test_sides_as_riggers_name_them(stage, left, right):
    object, armature = stage
    rename(armature, False, arm_L=left, arm_R=right)
    layer_list(object).active = 0
    ops.mirror_layers(whole_bone=True)
    assert owners(object) == [left, right], "in place of what the other side had"
    consistent(object)
    p = np.random.default_rng(1).uniform([-3, -0.3, -0.3], [3, 0.3, 0.3], (500, 3))
    weights = evaluate_weights(read_layers(object), p)
    mirrored = evaluate_weights(read_layers(object), p * [-1, 1, 1])
    np.testing.assert_allclose(mirrored[:, 2], weights[:, 1], atol=1e-9)
    assert weights[:, 1].max() == 1


@pytest.mark.parametrize(
    ("name", "message"), [("middle", "no other side; name bones with"), ("leg.L", "has no bone 'leg.R'")]
)
def test_a_bone_without_another_side_is_told(stage, name, message):
    object, armature = stage
    rename(armature, False, arm_L=name)
    layer_list(object).active = 0
    before = read_layers(object)
    with pytest.raises(RuntimeError, match=message):
        ops.mirror_layers(whole_bone=True)
    assert read_layers(object) == before


def test_the_other_side_may_deform_nothing(stage):
    object, armature = stage
    with edit_mode(bpy.context, armature):
        new = armature.data.edit_bones.new("leg.L")
        new.head, new.tail = (0, 0, 0), (0, 0, 1)
        other = armature.data.edit_bones.new("leg.R")
        other.head, other.tail = (0, 0, 0), (0, 0, 1)
    armature.data.bones["leg.R"].use_deform = False
    draw("leg.L", 260, 340)
    layer_list(object).active = 2
    with pytest.raises(RuntimeError, match="'leg.R' deforms nothing"):
        ops.mirror_layers(whole_bone=True)
    assert owners(object) == ["arm.L", "arm.R", "leg.L"]
    assert read_layers(object).bones == (*BONES, "leg.L")


def test_appended_copies_of_one_file_stay_apart(stage, tmp_path):
    """The same character twice in another file; bones of one are renamed there."""
    path = str(tmp_path / "character.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    pair = []
    for _ in range(2):
        with bpy.data.libraries.load(path) as (_, wanted):
            wanted.objects = ["bar", "hand made"]
        for each in wanted.objects:
            bpy.context.scene.collection.objects.link(each)
        pair.append(wanted.objects[0])
    bpy.context.view_layer.update()
    one, other = pair
    assert deformer_armature(one) != deformer_armature(other)
    rename(deformer_armature(other), False, arm_L="forearm")
    select(other)
    draw("hip", 260, 340)
    assert owners(one) == ["arm.L", "arm.R"] and owners(other) == ["forearm", "arm.R", "hip"]
    consistent(one)
    consistent(other)
