"""What users of other tools reported about weights, with weights that are drawn."""

import json
from dataclasses import replace

import bpy
import numpy as np
import pytest
from compare import evaluated
from drawn_weights import BONES, add_armature, add_splats, dense, dense_gradients, select
from mathutils import Euler, Matrix, Quaternion
from rigs import make_cloud

from gaussianimate.core.selection.preview import Preview
from gaussianimate.core.selection.viewpoint import Viewpoint
from gaussianimate.gaussianimate_addon.armature import edit_mode
from gaussianimate.gaussianimate_addon.attributes import read_attribute
from gaussianimate.gaussianimate_addon.deformer import bind_is_stale
from gaussianimate.gaussianimate_addon.skin_attributes import read_skin
from gaussianimate.gaussianimate_addon.weights.layer_list import layer_list
from gaussianimate.gaussianimate_addon.weights.layers import LAYERS, read_layers, update_weights

ops = bpy.ops.gaussianimate
PROJECTION = [[0.25, 0, 0, 0], [0, 1 / 3, 0, 0], [0, 0, -0.1, 0], [0, 0, 0, 1]]
TOP = json.dumps(
    {
        "view": [[1, 0, 0, -1.5], [0, 1, 0, 0], [0, 0, 1, -5], [0, 0, 0, 1]],
        "projection": PROJECTION,
        "window": [0, 0, 800, 600],
    }
)  # 100 pixels a metre; the bar goes from x = 250 to 550


def draw(bone, points=((350, 250), (450, 350)), shape="RECTANGLE", **options):
    given = {"smoothness": 20.0, "through": True, "view": TOP} | options
    return ops.add_selection_layer(bone=bone, shape=shape, points=json.dumps(points), **given)


def turn(armature, name, angle=0.8):
    bone = armature.pose.bones[name]
    bone.rotation_mode = "QUATERNION"
    bone.rotation_quaternion = Quaternion((0, 0, 1), angle)
    bpy.context.view_layer.update()


@pytest.fixture
def stage(empty_scene):
    object, armature = add_splats(empty_scene), add_armature(empty_scene)
    select(object)
    ops.bind(armature="hand made", method="EMPTY")
    return object, armature


# A stroke in front also takes the back


@pytest.fixture
def ball(empty_scene):
    """A closed sphere of opaque splats, radius 1, about (1.5, 0, 0)."""
    rng = np.random.default_rng(3)
    cloud = make_cloud(6000, degree=0)
    outward = rng.normal(size=(6000, 3))
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    small, full = np.full((6000, 3), 0.03, np.float32), np.full(6000, 0.99, np.float32)
    places = (outward + [1.5, 0, 0]).astype(np.float32)
    cloud = replace(cloud, positions=places, scales=small, opacities=full)
    object = add_splats(empty_scene, name="ball", cloud=cloud)
    add_armature(empty_scene)
    select(object)
    ops.bind(armature="hand made", method="EMPTY")
    return object, outward


STROKE = ((350, 300, 20), (450, 310, 20))


def test_a_soft_stroke_takes_the_front_of_a_closed_sphere_only(ball):
    object, outward = ball
    draw("hip", STROKE, "STROKE", through=False)
    weights = dense(read_skin(object.data), 3)[:, 0]
    under = (np.abs(outward[:, 0]) < 0.5) & (np.abs(outward[:, 1] - 0.05) < 0.1)
    assert weights[under & (outward[:, 2] > 0)].min() > 0.9, "wholly"
    assert not weights[outward[:, 2] < 0].any(), "the back stays"
    layer = read_layers(object).layers[0]
    mask = Preview(layer.viewpoint, read_attribute(object.data, "position")).mask(layer)
    np.testing.assert_allclose(mask, weights, atol=1e-4), "what is seen before is what comes"


@pytest.mark.parametrize("times", [1, 20])
@pytest.mark.parametrize("corner", [(-90000, 20000), (3000, 0), (0, 1e6)])
def test_a_scripted_stroke_takes_the_front_wherever_its_window_is(ball, times, corner):
    """The window of a script's view, of whatever size, need not show what is drawn on."""
    object, outward = ball
    view = json.loads(TOP)
    small = Viewpoint(
        view["view"], np.diag([times, times, 1, 1]) @ PROJECTION, (0, 0, 800 / times, 600 / times)
    )
    middle = np.array([400 / times - 400, 300 / times - 300, 0])
    away = json.dumps(small.panned(*corner).to_dict())
    draw("hip", (STROKE + middle).tolist(), "STROKE", through=False, view=away)
    weights = dense(read_skin(object.data), 3)[:, 0]
    under = (np.abs(outward[:, 0]) < 0.5) & (np.abs(outward[:, 1] - 0.05) < 0.1)
    assert weights[under & (outward[:, 2] > 0)].min() > 0.9, "wholly"
    assert not weights[outward[:, 2] < 0].any(), "the back stays"


def test_through_can_be_switched_afterwards(ball):
    object, outward = ball
    draw("hip", STROKE, "STROKE", through=False)
    front = dense(read_skin(object.data), 3)[:, 0]
    line = layer_list(object).lines[0]
    assert not line.through and line.depth > 0
    line.through = True
    both = dense(read_skin(object.data), 3)[:, 0]
    back = outward[:, 2] < 0
    assert both[back].sum() == pytest.approx(both[~back].sum(), rel=0.15) and line.through
    line.through = False
    np.testing.assert_allclose(dense(read_skin(object.data), 3)[:, 0], front, atol=1e-6)


def test_how_deep_it_reaches_can_be_set(ball):
    object, outward = ball
    draw("hip", ((250, 200), (550, 400)), through=False, smoothness=0.0, depth=0.25)
    line = layer_list(object).lines[0]
    assert line.depth == pytest.approx(0.25)
    inside = (np.abs(outward[:, 1]) < 0.9) & (np.abs(outward[:, 0]) < 0.9)
    assert not dense(read_skin(object.data), 3)[outward[:, 2] < -0.5, 0].any()
    line.depth = 2.1
    weights = dense(read_skin(object.data), 3)[:, 0]
    assert weights[inside].min() > 0.99, "to the back"
    ops.redraw_selection_layer(points="[[260, 200], [550, 400]]")
    assert line.depth == pytest.approx(2.1), "kept"


# Splats that nothing holds, and too much that holds them


def test_splats_that_nothing_was_drawn_for_stay_at_rest(stage):
    object, armature = stage
    draw("arm.L")
    rest, weights = evaluated(object).positions.copy(), dense(read_skin(object.data), 3)
    turn(armature, "arm.L")
    turn(armature, "hip", -0.5)
    posed = evaluated(object)
    free = weights.sum(axis=1) == 0
    assert free.sum() > 200 and np.isfinite(posed.positions).all() and np.isfinite(posed.scales).all()
    np.testing.assert_allclose(posed.positions[free], rest[free], atol=1e-5)
    assert np.abs(posed.positions - rest).max() > 0.3
    draw("arm.L", operation="MULTIPLY", strength=0.0)
    np.testing.assert_allclose(evaluated(object).positions, rest, atol=1e-5), "taken away again"


def test_nine_bones_on_a_splat_are_cut_to_four_and_told(empty_scene, capfd):
    object, armature = add_splats(empty_scene), add_armature(empty_scene)
    names = [f"extra.{k}" for k in range(9)]
    with edit_mode(bpy.context, armature):
        for k, name in enumerate(names):
            bone = armature.data.edit_bones.new(name)
            bone.head, bone.tail = (k / 9, 0.2, 0), (k / 9, 0.4, 0)
    select(object)
    ops.bind(armature="hand made", method="EMPTY")
    strengths = np.array([0.1, 0.15, 0.2, 0.25, 0.3, 0.1, 0.2, 0.25, 0.15])  # 1.7 in all
    for name, strength in zip(names, strengths, strict=True):
        draw(name, ((200, 200), (600, 400)), strength=strength, smoothness=0.0)
    assert "400 splats had more than 4 influences; the strongest stay" in capfd.readouterr().out
    skin = read_skin(object.data)
    assert skin.influences == 4 and skin.weights.sum(axis=1) == pytest.approx(1, abs=1e-6)
    kept = dense(skin, 12)[:, 3:]
    assert ((kept > 0).sum(axis=1) == 4).all()
    np.testing.assert_allclose(kept[:, [2, 3, 4, 7]].sum(axis=1), 1, atol=1e-5), "the strongest"
    np.testing.assert_allclose(dense_gradients(skin, 12).sum(axis=1), 0, atol=1e-4)


# Objects scaled and turned, transforms applied after


@pytest.fixture
def scaled(empty_scene):
    """The same armature as in `stage`, made and placed differently: where it stands in the world is equal."""
    object, armature = add_splats(empty_scene), add_armature(empty_scene)
    odd = Matrix.Scale(0.128, 4) @ Euler((np.pi / 2, 0, 0)).to_matrix().to_4x4()
    armature.data.transform(odd.inverted())
    armature.matrix_world = armature.matrix_world @ odd
    bpy.context.view_layer.update()
    select(object)
    ops.bind(armature=armature.name, method="EMPTY")
    return object, armature


def drawn_and_posed(object, armature):
    select(object)
    for name, low in zip(BONES, (250, 350, 450), strict=True):
        draw(name, ((low, 250), (low + 100, 350)))
    bone = armature.pose.bones["arm.L"]
    bone.rotation_mode = "QUATERNION"
    rest = armature.matrix_world @ bone.bone.matrix_local
    about = Matrix.Translation(rest.translation)
    spun = about @ Quaternion((0, 0, 1), 0.7).to_matrix().to_4x4() @ about.inverted()
    bone.matrix = armature.matrix_world.inverted() @ spun @ rest
    bpy.context.view_layer.update()
    return at_world(object)


def at_world(object):
    world = np.array(object.matrix_world)
    return evaluated(object).positions @ world[:3, :3].T + world[:3, 3]


def test_a_scaled_and_turned_armature_moves_drawn_splats_the_same(stage, scaled):
    reference = drawn_and_posed(*stage)
    other = drawn_and_posed(*scaled)
    assert np.abs(reference - (at_rest := at_world_rest(stage[0]))).max() > 0.3 and len(at_rest) == 400
    np.testing.assert_allclose(other, reference, atol=2e-4)


def at_world_rest(object):
    world = np.array(object.matrix_world)
    return read_attribute(object.data, "position") @ world[:3, :3].T + world[:3, 3]


def test_a_scale_applied_to_the_armature_later_is_seen_and_mended(scaled):
    object, armature = scaled
    before = drawn_and_posed(object, armature)
    layers = read_layers(object)
    select(armature)
    bpy.ops.object.transform_apply(location=False, rotation=True, scale=True)
    assert bind_is_stale(object) is not None
    select(object)
    assert ops.rebind() == {"FINISHED"}
    bpy.context.view_layer.update()
    assert bind_is_stale(object) is None and read_layers(object).layers == layers.layers
    np.testing.assert_allclose(at_world(object), before, atol=5e-4)
    draw("hip", ((250, 250), (350, 350)), operation="REPLACE")
    np.testing.assert_allclose(at_world(object), before, atol=5e-4)


def test_a_scale_applied_to_the_splats_alone_is_mended_first(stage, capfd):
    """Weights and layers that were changed before would be transformed once more by the repair."""
    object, armature = stage
    draw("hip")
    before = read_skin(object.data)
    object.scale = (2, 2, 2)
    bpy.context.view_layer.update()
    bpy.ops.object.transform_apply(location=False, rotation=False, scale=True)
    document = object.data[LAYERS]
    changes = (
        lambda: draw("arm.L"),
        lambda: ops.edit_layers(action="DUPLICATE"),
        lambda: ops.mirror_layers(bone="arm.R"),
        lambda: ops.estimate_gradients(layers="APPLY"),
        lambda: ops.bind(armature=armature.name, method="ENVELOPE"),
        lambda: ops.apply_transform(),
    )
    for change in changes:
        with pytest.raises(RuntimeError, match="was applied to its positions only; repair it to fit again"):
            change()
    object.data.gaussianimate_layer_list.lines[0].strength = 0.5
    assert "repair it to fit again" in capfd.readouterr().out
    assert object.data[LAYERS] == document
    assert ops.rebind() == {"FINISHED"}
    update_weights(object)
    after = read_skin(object.data)
    np.testing.assert_allclose(after.weights, before.weights, atol=1e-5)
    np.testing.assert_allclose(2 * after.gradients, before.gradients, atol=1e-3)
    object.data.gaussianimate_layer_list.lines[0].strength = 0.5
    assert read_layers(object).layers[0].strength == 0.5


# Undo after the object is gone


def test_undo_brings_back_deleted_splats_with_their_layers(stage):
    object, armature = stage
    bpy.ops.ed.undo_push(message="Bound")
    draw("arm.L")
    bpy.ops.ed.undo_push(message="Drawn")
    draw("hip", ((260, 250), (340, 350)))
    bpy.ops.ed.undo_push(message="Drawn again")
    weights = dense(read_skin(object.data), 3)
    select(object)
    bpy.ops.object.delete()
    bpy.ops.ed.undo_push(message="Deleted")
    assert "bar" not in bpy.data.objects
    bpy.ops.ed.undo()
    object = bpy.data.objects["bar"]
    np.testing.assert_array_equal(dense(read_skin(object.data), 3), weights)
    assert [layer.bone for layer in read_layers(object).layers] == ["arm.L", "hip"]
    bpy.ops.ed.undo()
    object = bpy.data.objects["bar"]
    assert [layer.bone for layer in read_layers(object).layers] == ["arm.L"]
    assert len(layer_list(object).lines) == 1
    bpy.ops.ed.redo()
    bpy.ops.ed.redo()
    assert "bar" not in bpy.data.objects
    bpy.ops.ed.undo()
    select(bpy.data.objects["bar"])
    draw("arm.R", ((460, 250), (540, 350)))
    assert len(read_layers(bpy.data.objects["bar"]).layers) == 3


def test_undo_after_everything_was_deleted(stage):
    object, armature = stage
    draw("arm.L")
    bpy.ops.ed.undo_push(message="Drawn")
    weights = dense(read_skin(object.data), 3)
    select(object, armature)
    bpy.ops.object.delete()
    bpy.ops.ed.undo_push(message="Deleted")
    assert not bpy.context.scene.objects
    bpy.ops.ed.undo()
    object, armature = bpy.data.objects["bar"], bpy.data.objects["hand made"]
    np.testing.assert_array_equal(dense(read_skin(object.data), 3), weights)
    rest = evaluated(object).positions.copy()
    turn(armature, "arm.L")
    assert np.abs(evaluated(object).positions - rest).max() > 0.3
