"""Selection layers in the .blend: scripted, exact, and kept through undo, copies, files and renaming."""

import json
from dataclasses import replace
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from compare import evaluated
from drawn_weights import BONES, add_armature, add_splats, dense, dense_gradients, select
from mathutils import Vector
from rigs import make_cloud

from gaussianimate.core.selection.evaluate import evaluate_stack
from gaussianimate.core.selection.layer import LayerStack
from gaussianimate.core.selection.skin import SkinField
from gaussianimate.core.skinning.skin import Skin
from gaussianimate.gaussianimate_addon.armature import edit_mode
from gaussianimate.gaussianimate_addon.attributes import read_attribute
from gaussianimate.gaussianimate_addon.skin_attributes import BASE, influence_count, read_skin
from gaussianimate.gaussianimate_addon.weights.layers import LAYERS, read_layers, write_layers
from gaussianimate.operators.add_selection_layer import GAUSSIANIMATE_OT_add_selection_layer as ADD

ops = bpy.ops.gaussianimate


@pytest.fixture
def stage(empty_scene):
    """Bound splats without weights, seen by a camera from above: 100 pixels a metre."""
    object, armature = add_splats(empty_scene), add_armature(empty_scene)
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    empty_scene.collection.objects.link(camera)
    camera.data.type, camera.data.ortho_scale = "ORTHO", 8
    empty_scene.render.resolution_x, empty_scene.render.resolution_y = 800, 600
    empty_scene.render.resolution_percentage = 100
    bpy.context.view_layer.update()
    camera.matrix_world = object.matrix_world.copy()
    camera.matrix_world.translation = object.matrix_world @ Vector((1.5, 0, 5))
    select(object)
    ops.bind(armature="hand made", method="EMPTY")
    return object, armature


def draw(bone="arm.L", points=((350, 250), (450, 350)), shape="RECTANGLE", **options):
    """Between 1 and 2 along the bar, unless told otherwise."""
    given = {"smoothness": 40.0, "through": True, "view": "Camera"} | options
    return ops.add_selection_layer(bone=bone, shape=shape, points=json.dumps(points), **given)


def weights(object, count=3):
    return dense(read_skin(object.data), count)


def test_a_drawn_stroke_follows_its_radius_afterwards(stage):
    """Adjust Last Operation runs the gesture again, whose points brought the radius of the brush."""
    object, _ = stage
    draw(shape="STROKE", points=((350, 300, 20), (450, 300, 10)), radius=40, drawn_radius=20)
    assert read_layers(object).layers[-1].shape.radii == (40, 20)
    ops.redraw_selection_layer(points="[[350, 300, 20], [450, 300, 20]]", radius=10, drawn_radius=20)
    assert read_layers(object).layers[-1].shape.radii == (10, 10)


@pytest.mark.parametrize(
    ("shape", "through", "shown", "hidden"),
    [
        ("RECTANGLE", True, {"angle"}, {"radius", "depth"}),
        ("LASSO", False, {"depth"}, {"radius", "angle"}),
        ("STROKE", False, {"radius", "depth"}, {"angle"}),
    ],
)
def test_numbers_to_adjust_are_those_of_the_shape(shape, through, shown, hidden):
    drawn = []
    known = ops.add_selection_layer.get_rna_type().properties
    layout = SimpleNamespace(prop=lambda owner, name: drawn.append(known[name].identifier))
    ADD.draw(SimpleNamespace(layout=layout, shape=shape, through=through), bpy.context)
    assert {"smoothness", "strength", "operation", "bone", "name"} | shown <= set(drawn)
    assert not hidden & set(drawn)


def test_weights_are_those_of_the_formula(stage):
    object, _ = stage
    assert draw() == {"FINISHED"}
    x = read_attribute(object.data, "position")[:, 0].astype(float)
    t = np.clip(0.5 - (np.abs(x - 1.5) - 0.5) / 0.4, 0, 1)
    expected = t * t * (3 - 2 * t)
    found = weights(object)
    np.testing.assert_allclose(found[:, 1], expected, atol=1e-4)
    assert not found[:, [0, 2]].any()
    slope = -6 * t * (1 - t) / 0.4 * np.sign(x - 1.5)
    np.testing.assert_allclose(dense_gradients(read_skin(object.data), 3)[:, 1, 0], slope, atol=1e-3)


def test_gradients_are_exact_over_weights_to_start_from(stage):
    """Several bones over bone heat: what is stored is what core's field says, and its differences."""
    object, _ = stage
    ops.bind(armature="hand made", method="HEAT")
    before = read_skin(object.data)
    draw("arm.L", operation="REPLACE", strength=0.6)
    draw("hip", ((150, 200), (380, 400)), "ELLIPSE", angle=0.3, operation="ADD")
    draw("arm.R", ((400, 200), (650, 250), (600, 420), (390, 330)), "LASSO", operation="MIX", strength=0.9)
    draw("arm.R", ((300, 280, 30), (420, 330, 60)), "STROKE", operation="SUBTRACT")
    skin, stack = read_skin(object.data), read_layers(object)
    assert len(stack.layers) == 4 and influence_count(object.data, BASE) == 4
    np.testing.assert_array_equal(read_skin(object.data, BASE).weights, before.weights)
    p = read_attribute(object.data, "position").astype(float)
    field = SkinField(stack, base=read_skin(object.data, BASE), positions=p)
    found = dense(Skin(*field(p)), 3)
    np.testing.assert_allclose(dense(skin, 3), found, atol=1e-6)
    h = 1e-5
    slopes = np.stack(
        [(dense(Skin(*field(p + e)), 3) - dense(Skin(*field(p - e)), 3)) / (2 * h) for e in h * np.eye(3)],
        axis=-1,
    )
    wrong = np.abs(slopes - dense_gradients(skin, 3)).max(axis=(1, 2)) > 1e-4 * np.abs(slopes).max()
    assert np.abs(slopes).max() > 1 and wrong.mean() < 0.02


def test_only_the_surface_seen_first(stage):
    """Two sheets of opaque splats, one above the other."""
    cloud = make_cloud(3000)
    positions = cloud.positions.copy()
    positions[:, 2] = np.where(np.arange(3000) % 2, 0.5, -0.5)
    full, wide = np.full(3000, 0.99, np.float32), np.full((3000, 3), 0.04, np.float32)
    sheets = replace(cloud, positions=positions, scales=wide, opacities=full)
    object = add_splats(bpy.context.scene, name="sheets", cloud=sheets)
    ops.bind(armature="hand made", method="EMPTY")
    draw(through=False, smoothness=0.0)
    upper, inside = positions[:, 2] > 0, np.abs(positions[:, 0] - 1.5) < 0.5
    np.testing.assert_array_equal(weights(object)[:, 1] > 0.5, upper & inside)
    draw("arm.R", through=True, smoothness=0.0)
    np.testing.assert_array_equal(weights(object)[:, 2] > 0, inside)


def test_nothing_left_gives_back_the_weights_to_start_from(stage):
    object, _ = stage
    ops.bind(armature="hand made", method="HEAT")
    before = read_skin(object.data)
    draw()
    assert np.abs(read_skin(object.data).weights - before.weights).max() > 0.1
    stack = read_layers(object)
    write_layers(object, stack.changed(0, muted=True))
    np.testing.assert_allclose(weights(object), dense(before, 3), atol=1e-6)
    write_layers(object, stack.without(0))
    np.testing.assert_array_equal(read_skin(object.data).weights, before.weights)
    assert not influence_count(object.data, BASE)


def test_undo_and_redo(stage):
    object, _ = stage
    name = object.name
    bpy.ops.ed.undo_push(message="Bound")
    draw()
    bpy.ops.ed.undo_push(message="First")  # operators called by scripts push none
    one = weights(object)
    draw("hip", ((200, 250), (350, 350)))
    bpy.ops.ed.undo_push(message="Second")
    two = weights(object)
    assert np.abs(one - two).max() > 0.5
    for step, expected, layers in ((bpy.ops.ed.undo, one, 1), (bpy.ops.ed.redo, two, 2)):
        step()
        object = bpy.data.objects[name]
        np.testing.assert_array_equal(weights(object), expected)
        assert len(read_layers(object).layers) == layers


def test_save_reload_and_append(stage, tmp_path):
    object, _ = stage
    draw()
    draw("hip", ((200, 250), (350, 350)), through=False)
    text, before, path = object.data[LAYERS], weights(object), str(tmp_path / "layers.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    object = bpy.data.objects["bar"]
    assert object.data[LAYERS] == text
    np.testing.assert_array_equal(weights(object), before)
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    with bpy.data.libraries.load(path) as (_, wanted):
        wanted.objects = ["bar"]
    appended = wanted.objects[0]
    for each in (appended, appended.parent):
        bpy.context.scene.collection.objects.link(each)
    select(appended)
    assert appended.data[LAYERS] == text
    appended.parent.data.bones["hip"].name = "pelvis"
    bpy.context.view_layer.update()
    assert [layer.bone for layer in read_layers(appended).layers] == ["arm.L", "pelvis"]
    write_layers(appended, read_layers(appended))
    np.testing.assert_allclose(weights(appended), before, atol=1e-7)


def test_layers_of_deleted_bones_go_and_the_others_act_on(stage):
    object, armature = stage
    draw("arm.L")
    draw("arm.R", ((450, 250), (550, 350)))
    with edit_mode(bpy.context, armature):
        armature.data.edit_bones.remove(armature.data.edit_bones["arm.L"])
    bpy.context.view_layer.update()
    stack = read_layers(object)
    assert stack.bones == ("hip", "arm.R") and [layer.bone for layer in stack.layers] == ["arm.R"]
    p = read_attribute(object.data, "position").astype(float)
    np.testing.assert_allclose(weights(object, 2), evaluate_stack(stack, p)[0], atol=1e-6)
    assert np.isfinite(evaluated(object).positions).all()


def test_a_new_deform_bone_can_be_drawn_for(stage):
    object, armature = stage
    with edit_mode(bpy.context, armature):
        new = armature.data.edit_bones.new("tail")
        new.head, new.tail = (1.5, 0, 0), (2, 0, 0)
    draw("tail")
    assert read_layers(object).bones == (*BONES, "tail")
    assert weights(object, 4)[:, 3].max() == 1
    armature.pose.bones["tail"].location = (0, 1, 0)
    bpy.context.view_layer.update()
    moved = np.linalg.norm(evaluated(object).positions - read_attribute(object.data, "position"), axis=1)
    np.testing.assert_allclose(moved, 2 * weights(object, 4)[:, 3], atol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bone": "control"}, "deforms nothing"),
        ({"bone": "nobody"}, "no bone 'nobody'"),
        ({"view": "Lamp"}, "no camera 'Lamp'"),
        ({"view": "{}"}, "view cannot be read"),
        ({"points": ((1, 2),)}, "at least 2 points"),
        ({"points": ((1, 2, 3), (4, 5, 6))}, "rows of two numbers"),
        ({"points": "x"}, "rows of two numbers"),
        ({"points": ((10**400, 5), (6, 7))}, "rows of two numbers"),
        ({"points": ((0, 0), (1e300, 1e300))}, r"are pixels, and lie within 1e\+12 of them"),
        ({"points": ((0, 0), (float("inf"), 5))}, "are pixels, and lie within"),
        ({"points": ((0, 0), (float("nan"), 5))}, "must be finite numbers"),
    ],
)
def test_what_is_refused(stage, options, message):
    object, _ = stage
    with pytest.raises(RuntimeError, match=message):
        draw(**options)
    assert read_layers(object) == LayerStack(BONES)


@pytest.mark.parametrize(("name", "text"), [("points", "[" * 200_000), ("view", '{"view": ' + "[" * 200_000)])
def test_text_that_is_nested_without_end_is_refused(stage, name, text):
    given = {"bone": "hip", "points": "[[0, 0], [9, 9]]", "view": "Camera"} | {name: text}
    with pytest.raises(RuntimeError, match="points of a selection are JSON|The view cannot be read"):
        ops.add_selection_layer(shape="RECTANGLE", through=True, **given)
    assert read_layers(stage[0]) == LayerStack(BONES)


@pytest.mark.parametrize("shape", ["RECTANGLE", "ELLIPSE"])
def test_four_corners_are_their_box(stage, shape):
    object, _ = stage
    draw(shape=shape)
    draw(shape=shape, points=((350, 250), (450, 250), (450, 350), (350, 350)))
    two, four = (layer.shape for layer in read_layers(object).layers)
    assert two == four


def test_a_layer_that_selects_nothing_is_added_and_told(stage, capfd):
    """By script or redrawn beside all splats; one that selects with strength 0 is as it was meant."""
    object, _ = stage
    said = "Warning: The layer 'Rectangle' of 'arm.L' selects no splats; draw it over some"
    for through in (True, False):
        assert draw(points=((0, 0), (90, 90)), through=through) == {"FINISHED"}
        assert said in capfd.readouterr().out
    assert len(read_layers(object).layers) == 2 and not weights(object).any()
    draw("hip", strength=0.0)
    draw("hip", operation="SUBTRACT")
    assert "Warning" not in capfd.readouterr().out
    object.parent.data.bones.active = object.parent.data.bones["hip"]
    ops.redraw_selection_layer(points="[[0, 0], [90, 90]]")
    assert "Warning: The layer 'Rectangle' of 'hip' selects no splats" in capfd.readouterr().out
    draw(points=((0, 0), (90, 90)), name="My stamp")
    assert "'My stamp' of 'arm.L'" in capfd.readouterr().out


def test_a_view_as_json(stage):
    object, _ = stage
    draw()
    layer = read_layers(object).layers[0]
    before = weights(object)
    write_layers(object, LayerStack(BONES))
    draw(view=json.dumps(layer.viewpoint.to_dict()))
    assert read_layers(object).layers == (layer,)
    np.testing.assert_array_equal(weights(object), before)


def test_layers_on_the_rig_of_a_capture(empty_scene):
    """Its skin bones carry layers on the capture's weights, and the rig built anew has none."""
    from answering import learned_bar

    from gaussianimate.gaussianimate_addon.armature import SKIN_BONE, indexed_bones
    from gaussianimate.gaussianimate_addon.deformer import deformer_armature
    from gaussianimate.gaussianimate_addon.weights.layers import forget_layers, has_layers

    object, armature, _ = learned_bar(empty_scene)
    before, names = read_skin(object.data), [b.name for b in indexed_bones(armature, SKIN_BONE)]
    assert before.influences < 4
    view = {"view": [[1, 0, 0, -1.5], [0, 1, 0, 0], [0, 0, 1, -5], [0, 0, 0, 1]], "window": [0, 0, 800, 600]}
    view["projection"] = [[0.25, 0, 0, 0], [0, 1 / 3, 0, 0], [0, 0, -0.1, 0], [0, 0, 0, 1]]
    draw(names[0], ((0, 0), (900, 600)), operation="REPLACE", view=json.dumps(view))
    assert read_layers(object).bones == tuple(names)
    np.testing.assert_array_equal(dense(read_skin(object.data, BASE), len(names)), dense(before, len(names)))
    x = weights(object, len(names))
    kept = 1 - dense(before, len(names))[:, 0]  # what the other bones hold, beside a full weight
    np.testing.assert_allclose(x[:, 0], 1 / (1 + kept), atol=1e-5)
    assert deformer_armature(object) == armature and np.isfinite(evaluated(object).positions).all()
    write_layers(object, LayerStack(tuple(names)))
    np.testing.assert_array_equal(read_skin(object.data).weights[:, : before.influences], before.weights)
    forget_layers(object)
    assert not has_layers(object)


def test_an_applied_transform_is_seen_by_the_layers(stage):
    """Weights evaluated anew after Apply are those from before; gradients follow the new space."""
    object, _ = stage
    ops.bind(armature="hand made", method="HEAT")
    draw("arm.L", operation="MIX", strength=0.8)
    before, gradients = weights(object), dense_gradients(read_skin(object.data), 3)
    linear = np.array(object.matrix_world)[:3, :3]
    object.parent = None
    assert ops.apply_transform() == {"FINISHED"}
    moved = dense_gradients(read_skin(object.data), 3)
    assert np.abs(np.array(object.matrix_world) - np.eye(4)).max() < 1e-6
    write_layers(object, read_layers(object))
    np.testing.assert_allclose(weights(object), before, atol=2e-4)
    found = dense_gradients(read_skin(object.data), 3)
    np.testing.assert_allclose(found, moved, atol=5e-3 * np.abs(moved).max())
    assert np.abs(gradients - moved).max() > 0.1 and linear.shape == (3, 3)
