"""Scans, meshes, cameras and layers that are broken: what can be done is done, else one sentence says why."""

import json
from dataclasses import replace

import bpy
import numpy as np
import pytest
from drawn_panels import draw
from drawn_weights import add_armature, add_splats, dense, select
from mathutils import Matrix
from rigs import make_cloud

from gaussianimate.core.skinning.skin import STATIC
from gaussianimate.gaussianimate_addon.armature import edit_mode
from gaussianimate.gaussianimate_addon.bind import bind_is_stale
from gaussianimate.gaussianimate_addon.deform_nodes import bone_names
from gaussianimate.gaussianimate_addon.deformer import deformer, deformer_armature
from gaussianimate.gaussianimate_addon.modifiers import DEFORM, find_modifier, set_input
from gaussianimate.gaussianimate_addon.properties import object_notes
from gaussianimate.gaussianimate_addon.skin_attributes import read_skin
from gaussianimate.gaussianimate_addon.weights import handlers
from gaussianimate.gaussianimate_addon.weights.layer_list import layer_list
from gaussianimate.gaussianimate_addon.weights.layers import LAYERS, read_layers, update_weights

ops = bpy.ops.gaussianimate
VIEW = (
    '{"view": [[1, 0, 0, -1.5], [0, 1, 0, 0], [0, 0, 1, -5], [0, 0, 0, 1]], "projection": [[0.25, 0, 0, 0], '
    '[0, 0.3333, 0, 0], [0, 0, -0.1, 0], [0, 0, 0, 1]], "window": [0, 0, 800, 600]}'
)
LOST = [3, 40, 41, 199]


def broken_scan(scene, value=np.nan):
    """Return splats of which four are nowhere, and an armature."""
    cloud = make_cloud(200)
    positions = cloud.positions.copy()
    positions[LOST, 1] = value
    return add_splats(scene, cloud=replace(cloud, positions=positions)), add_armature(scene)


def add_proxy(scene, armature, object):
    """Return a box about the splats, all of it weighted to the hip."""
    mesh = bpy.data.meshes.new("proxy")
    corners = [(x, y, z) for x in (0, 3) for y in (-0.3, 0.3) for z in (-0.3, 0.3)]
    faces = [(0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5)]
    mesh.from_pydata(corners, [], faces)
    proxy = bpy.data.objects.new("proxy", mesh)
    scene.collection.objects.link(proxy)
    proxy.matrix_world = object.matrix_world
    proxy.modifiers.new("Armature", "ARMATURE").object = armature
    proxy.vertex_groups.new(name="hip").add(range(len(corners)), 1.0, "REPLACE")
    bpy.context.view_layer.update()
    return proxy


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("method", ["HEAT", "PROXY", "ENVELOPE"])
def test_splats_that_are_nowhere_stay_at_rest(empty_scene, method, value):
    object, armature = broken_scan(empty_scene, value)
    add_proxy(empty_scene, armature, object)
    select(armature, object)
    assert ops.bind(armature=armature.name, method=method) == {"FINISHED"}
    skin = read_skin(object.data)
    assert (skin.indices[LOST] == STATIC)[skin.weights[LOST] > 0].all()
    assert not dense(skin, 3)[LOST].any() and dense(skin, 3)[[0, 1, 2]].any()
    assert np.isfinite(skin.weights).all() and np.isfinite(skin.gradients).all()
    assert "4 splats have positions that are not finite" in object_notes(object).rig_notes


def test_the_others_are_weighed_as_without_them(empty_scene):
    object, armature = broken_scan(empty_scene)
    cloud = make_cloud(200).take(np.delete(np.arange(200), LOST))
    whole = add_splats(empty_scene, cloud=cloud, name="whole")
    for each in (object, whole):
        select(armature, each)
        ops.bind(armature=armature.name, method="HEAT")
    found, expected = read_skin(object.data), read_skin(whole.data)
    for name in ("indices", "weights", "gradients"):
        np.testing.assert_array_equal(np.delete(getattr(found, name), LOST, axis=0), getattr(expected, name))


def test_a_proxy_whose_vertices_are_nowhere_is_told(empty_scene):
    object, armature = add_splats(empty_scene), add_armature(empty_scene)
    proxy = add_proxy(empty_scene, armature, object)
    proxy.data.vertices[2].co = (np.nan, 0, 0)
    select(armature, object)
    with pytest.raises(RuntimeError, match="'proxy' has vertices whose positions are not finite; delete"):
        ops.bind(armature=armature.name, method="PROXY")
    assert LAYERS not in object.data


@pytest.fixture
def drawn(empty_scene):
    object, armature = add_splats(empty_scene), add_armature(empty_scene)
    select(armature, object)
    ops.bind(armature=armature.name, method="HEAT")
    add("[[0, 0], [400, 600]]")
    return object, armature


def add(points, **values):
    options = {"bone": "hip", "shape": "RECTANGLE", "view": VIEW, "through": True, **values}
    return ops.add_selection_layer(points=points, **options)


@pytest.mark.parametrize("shape", ["RECTANGLE", "STROKE", "ELLIPSE"])
def test_a_front_gesture_of_any_size(drawn, shape):
    """Up to the farthest that points may lie."""
    object, _ = drawn
    assert add("[[-1e12, -1e12], [1e12, 1e12]]", shape=shape, through=False) == {"FINISHED"}
    assert read_layers(object).layers[-1].front is not None
    assert np.isfinite(read_skin(object.data).gradients).all()


def test_a_camera_scaled_to_nothing_is_told(drawn):
    object, _ = drawn
    camera = bpy.data.objects.new("eye", bpy.data.cameras.new("eye"))
    bpy.context.scene.collection.objects.link(camera)
    camera.matrix_world = Matrix.Scale(0, 4)
    bpy.context.view_layer.update()
    before = object.data[LAYERS]
    with pytest.raises(RuntimeError, match="'eye' is scaled to nothing; give it a scale other than 0"):
        add("[[0, 0], [9, 9]]", view="eye")
    assert object.data[LAYERS] == before


PANELS = ("main", "display", "import", "rig", "animate", "bake", "resample")


@pytest.mark.parametrize("lost", ["Bind", "Exists"])
def test_a_deformer_that_was_changed_is_told_and_bound_anew(drawn, tmp_path, lost):
    object, armature = drawn
    group = find_modifier(object, DEFORM).node_group
    group.nodes.remove(group.nodes[lost])
    bpy.context.view_layer.update()
    assert "'bar' was changed; build the rig again, or bind it again" in bind_is_stale(object)
    for panel in PANELS:
        draw(panel)
    with pytest.raises(RuntimeError, match="Bind the splats to an armature first"):
        add("[[0, 0], [9, 9]]")
    with pytest.raises(RuntimeError, match="'bar' is not rigged"):
        ops.resample(epsilon=0.1)
    with pytest.raises(RuntimeError, match="was changed"):
        ops.bake_ply(filepath=str(tmp_path / "x.ply"))
    armature.data.bones["hip"].name = "pelvis"
    bpy.context.view_layer.update()
    select(armature, object)
    assert ops.bind(armature=armature.name, method="HEAT") == {"FINISHED"}
    assert bind_is_stale(object) is None and deformer_armature(object) == armature
    assert bone_names(deformer(object).node_group)[0] == "pelvis" and len(object.modifiers) == 1


def test_something_else_in_place_of_the_armature_is_none(drawn):
    object, armature = drawn
    mesh = bpy.data.objects.new("box", bpy.data.meshes.new("box"))
    bpy.context.scene.collection.objects.link(mesh)
    for wrong in (mesh, object):
        set_input(find_modifier(object, DEFORM), "Armature", wrong)
        bpy.context.view_layer.update()
        assert deformer_armature(object) is None and "is gone" in bind_is_stale(object)
        for panel in PANELS:
            draw(panel)
        with pytest.raises(RuntimeError, match="'bar' is not rigged"):
            ops.resample(epsilon=0.1)
        with pytest.raises(RuntimeError, match="bound to no armature yet"):
            add("[[0, 0], [9, 9]]")
    set_input(find_modifier(object, DEFORM), "Armature", armature)
    assert bind_is_stale(object) is None and add("[[0, 0], [9, 9]]") == {"FINISHED"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda document: document.update(layers=None),
        lambda document: document.update(bones=None),
        lambda document: document.update(layers=[1]),
        lambda document: document["layers"][0].update(shape=None),
        lambda document: document["layers"][0].update(feather=[1]),
        lambda document: document["layers"][0].update(front=[1]),
    ],
)
def test_damaged_layers_are_one_sentence(drawn, damage, capfd):
    object, armature = drawn
    document = json.loads(object.data[LAYERS])
    damage(document)
    object.data[LAYERS] = text = json.dumps(document)
    for operator, values in ((ops.edit_layers, {"action": "DELETE"}), (ops.mirror_layers, {})):
        with pytest.raises(RuntimeError, match="cannot be read"):
            operator(**values)
    with pytest.raises(RuntimeError, match="cannot be read"):
        add("[[0, 0], [9, 9]]")
    with pytest.raises(RuntimeError, match="cannot be read"):
        ops.resample(epsilon=0.1, mode="UNIFORM")
    armature.data.bones["hip"].name = "pelvis"
    bpy.context.view_layer.update()
    assert "Traceback" not in "".join(capfd.readouterr())
    assert object.data[LAYERS] == text


def test_layers_nested_too_deep_are_one_sentence(drawn):
    object, _ = drawn
    object.data[LAYERS] = "[" * 100_000
    with pytest.raises(RuntimeError, match="The selection layers cannot be read"):
        ops.edit_layers(action="DELETE")


def make_again(armature, names=None):
    """Delete all bones, and make them anew (under other names), as generating a rig again does."""
    with edit_mode(bpy.context, armature):
        edits = armature.data.edit_bones
        before = [(b.name, b.head.copy(), b.tail.copy(), b.use_deform) for b in edits]
        for bone in list(edits):
            edits.remove(bone)
    bpy.context.view_layer.update()
    with edit_mode(bpy.context, armature):
        for name, head, tail, deforms in before:
            bone = edits.new((names or {}).get(name, name))
            bone.head, bone.tail, bone.use_deform = head, tail, deforms
    bpy.context.view_layer.update()


def test_bones_made_again_under_their_names_go_on(drawn):
    object, armature = drawn
    before = dense(read_skin(object.data), 3)
    make_again(armature)
    np.testing.assert_array_equal(dense(read_skin(object.data), 3), before)
    assert [layer.bone for layer in read_layers(object).layers] == ["hip"]
    assert bind_is_stale(object) is None and add("[[0, 0], [300, 600]]", bone="arm.L") == {"FINISHED"}
    select(armature, object)
    assert ops.bind(armature=armature.name, method="CAPTURE") == {"FINISHED"}


def test_without_bones_everything_waits(drawn):
    object, armature = drawn
    before = dense(read_skin(object.data), 3)
    with edit_mode(bpy.context, armature):
        for bone in list(armature.data.edit_bones):
            armature.data.edit_bones.remove(bone)
    bpy.context.view_layer.update()
    assert "were added or removed" in bind_is_stale(object)
    select(armature, object)
    with pytest.raises(RuntimeError, match="'hand made' has no deform bones; switch Deform on"):
        ops.bind(armature=armature.name, method="HEAT")
    np.testing.assert_array_equal(dense(read_skin(object.data), 3), before)


def test_bones_of_other_names_take_nothing_over(drawn):
    object, armature = drawn
    make_again(armature, {"hip": "one", "arm.L": "two", "arm.R": "three"})
    assert add("[[0, 0], [400, 600]]", bone="two", strength=0.5) == {"FINISHED"}
    weights = dense(read_skin(object.data), 3)
    assert not weights[:, [0, 2]].any() and weights[:, 1].max() == pytest.approx(0.5)
    assert read_layers(object).bones == ("one", "two", "three") and bind_is_stale(object) is None
    select(armature, object)
    assert ops.bind(armature=armature.name, method="HEAT") == {"FINISHED"}
    assert dense(read_skin(object.data), 3)[:, 0].any() and bind_is_stale(object) is None


def test_bones_of_other_names_that_are_bound_take_nothing_over_from_others(drawn):
    object, armature = drawn
    other = add_splats(bpy.context.scene, name="other")
    select(armature, other)
    ops.bind(armature=armature.name, method="HEAT")
    make_again(armature, {"hip": "one", "arm.L": "two", "arm.R": "three"})
    select(armature, object)
    assert ops.bind(armature=armature.name, method="HEAT") == {"FINISHED"}
    assert dense(read_skin(object.data), 3).any() and not dense(read_skin(other.data), 3).any()
    for each in (object, other):
        assert bone_names(deformer(each).node_group) == ["one", "two", "three"]
        assert bind_is_stale(each) is None and read_layers(each).bones == ("one", "two", "three")


def test_splats_deleted_by_hand_are_bound_again(drawn, tmp_path):
    """As floaters are, in Edit Mode: the others keep their weights and layers."""
    object, armature = drawn
    kept = np.arange(len(object.data.points)) % 5 != 0
    before = dense(read_skin(object.data), 3)[kept]
    bpy.ops.object.mode_set(mode="EDIT")
    object.data.attributes.new(".selection", "BOOLEAN", "POINT").data.foreach_set("value", ~kept)
    bpy.ops.pointcloud.delete()
    bpy.ops.object.mode_set(mode="OBJECT")
    assert len(object.data.points) == kept.sum()
    with pytest.raises(RuntimeError, match="were added or removed; bind them again, with Present Weights"):
        ops.bake_ply(filepath=str(tmp_path / "never.ply"))
    select(armature, object)
    layers = read_layers(object).layers
    assert ops.bind(armature=armature.name, method="CAPTURE") == {"FINISHED"}
    assert bind_is_stale(object) is None and read_layers(object).layers == layers
    np.testing.assert_allclose(dense(read_skin(object.data), 3), before, atol=1e-5)


def test_other_bone_data_can_be_bound(drawn):
    object, armature = drawn
    armature.data = add_armature(bpy.context.scene, name="other").data
    bpy.context.view_layer.update()
    select(armature, object)
    assert ops.bind(armature=armature.name, method="CAPTURE") == {"FINISHED"}
    assert bind_is_stale(object) is None and dense(read_skin(object.data), 3).sum() > 190


def test_weights_are_those_of_the_layers_after_a_bone_without_any_was_deleted(drawn):
    object, armature = drawn
    with edit_mode(bpy.context, armature):
        armature.data.edit_bones.remove(armature.data.edit_bones["arm.L"])
    bpy.context.view_layer.update()
    found = read_skin(object.data)
    update_weights(object)
    np.testing.assert_array_equal(dense(found, 2), dense(read_skin(object.data), 2))


def test_edited_bones_say_what_keeps_the_weights(drawn, tmp_path):
    object, armature = drawn
    before = dense(read_skin(object.data), 3)
    with edit_mode(bpy.context, armature):
        armature.data.edit_bones["arm.L"].tail = (0.9, 0.2, 0.4)
    select(object)
    with pytest.raises(RuntimeError, match="undo that, rig anew, or bind again with Present Weights"):
        ops.rebind()
    select(armature, object)
    assert ops.bind(armature=armature.name, method="CAPTURE") == {"FINISHED"}
    np.testing.assert_allclose(dense(read_skin(object.data), 3), before, atol=1e-6)
    assert ops.bake_ply(filepath=str(tmp_path / "x.ply")) == {"FINISHED"}


@pytest.mark.parametrize("again", ["open", "draw", "rebind"])
def test_bones_renamed_without_the_extension_are_followed(drawn, tmp_path, monkeypatch, again):
    object, armature = drawn
    before = dense(read_skin(object.data), 3)
    with monkeypatch.context() as without:
        without.setattr(handlers, "_follow", lambda edited: None)
        armature.data.bones["hip"].name = "pelvis"
        bpy.context.view_layer.update()
    assert read_layers(object).bones[0] == "hip" and "were renamed" in bind_is_stale(object)
    if again == "open":
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "file.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "file.blend"))
        object = bpy.data.objects["bar"]
    elif again == "rebind":
        assert ops.rebind() == {"FINISHED"}
    else:
        assert add("[[0, 0], [9, 9]]", bone="pelvis", strength=0.0) == {"FINISHED"}
    assert bind_is_stale(object) is None
    assert read_layers(object).bones[0] == read_layers(object).layers[0].bone == "pelvis"
    np.testing.assert_array_equal(dense(read_skin(object.data), 3), before)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("strength", 7, "The strength of a selection lies between 0 and 1"),
        ("smoothness", float("nan"), "The smoothness of a selection is a width of at least 0"),
        ("depth", float("nan"), "The thickness and falloff of a selection in depth"),
    ],
)
def test_wrong_numbers_of_scripts_are_one_sentence(drawn, capfd, name, value, message):
    object, _ = drawn
    add("[[300, 200], [400, 400]]", through=False)
    before = object.data[LAYERS]
    setattr(layer_list(object).lines[1], name, value)
    said = "".join(capfd.readouterr())
    assert message in said and "Traceback" not in said and object.data[LAYERS] == before
