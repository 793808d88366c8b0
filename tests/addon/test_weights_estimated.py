"""Weights that another tool has changed: their gradients are estimated anew, layers stay or are applied."""

import bpy
import numpy as np
import pytest
from answering import learned_bar
from compare import evaluated
from drawn_panels import draw as draw_panel
from drawn_weights import add_armature, add_splats, dense, dense_gradients, select
from test_layer_list import VIEW

from gaussianimate.core.skinning.gradients import weight_gradients
from gaussianimate.core.skinning.skin import STATIC
from gaussianimate.gaussianimate_addon.attributes import read_attribute, remove_attribute, write_attribute
from gaussianimate.gaussianimate_addon.skin_attributes import (
    BASE,
    SKIN,
    influence_count,
    read_skin,
    write_skin,
)
from gaussianimate.gaussianimate_addon.weights.layers import LAYERS, read_layers, update_weights

ops = bpy.ops.gaussianimate
COUNT = 3000


@pytest.fixture
def stage(empty_scene):
    """Splats of hip and arm.L, which fade into each other along the bar."""
    object, armature = add_splats(empty_scene, COUNT), add_armature(empty_scene)
    select(armature, object)
    ops.bind(armature="hand made", method="ENVELOPE")
    edit(object, 1.0)
    ops.estimate_gradients()
    return object, armature


def places(object):
    return read_attribute(object.data, "position").astype(float)


def edit(object, at, kind=SKIN):
    """Write other weights as a tool would that knows nothing of gradients: bone 1 rises about ``at``."""
    data, rise = object.data, np.clip((places(object)[:, 0] - at) / 0.8 + 0.5, 0, 1)
    for k, (bone, weights) in enumerate(((0, 1 - rise), (1, rise))):
        write_attribute(data, f"{kind}:index_{k}", "INT", np.full(len(rise), bone))
        write_attribute(data, f"{kind}:weight_{k}", "FLOAT", weights)
    for k in range(2, influence_count(data, kind)):
        write_attribute(data, f"{kind}:weight_{k}", "FLOAT", np.zeros(len(rise)))
    return rise


def draw(bone="arm.R", points="[[500, 200], [600, 400]]", **options):
    given = {"shape": "RECTANGLE", "through": True, "view": VIEW, "smoothness": 30.0} | options
    return ops.add_selection_layer(bone=bone, points=points, **given)


def assert_follows(object, rise, kind=SKIN):
    """The weights are these, with gradients that fit them."""
    skin = read_skin(object.data, kind)
    weights, gradients = dense(skin, 3), dense_gradients(skin, 3)
    np.testing.assert_allclose(weights[:, 1], rise, atol=1e-6)
    steep = (rise > 0.3) & (rise < 0.7)
    assert steep.sum() > 20
    np.testing.assert_allclose(gradients[steep, 1, 0], 1 / 0.8, rtol=0.1)
    np.testing.assert_allclose(skin.gradients.sum(axis=1), 0, atol=1e-4)
    expected = weight_gradients(places(object), skin.indices, skin.weights)
    np.testing.assert_allclose(skin.gradients, expected, atol=1e-4)


@pytest.mark.parametrize("damage", ["stale", "lost", "not finite"])
def test_weights_that_were_edited_get_their_gradients(stage, damage):
    object, armature = stage
    rise = edit(object, 1.6)
    if damage == "lost":
        for k in range(influence_count(object.data)):
            remove_attribute(object.data, f"skin:gradient_{k}")
    elif damage == "not finite":
        write_attribute(object.data, "skin:gradient_0", "FLOAT_VECTOR", np.full((COUNT, 3), np.nan))
    select(object)
    assert ops.estimate_gradients() == {"FINISHED"}
    assert_follows(object, rise)
    bone = armature.pose.bones["arm.L"]
    bone.location = (0, 0.3, 0)
    bpy.context.view_layer.update()
    assert np.isfinite(evaluated(object).positions).all()


def test_what_does_not_sum_to_one_is_mended_and_told(stage, capfd):
    object, _ = stage
    rise = edit(object, 1.6)
    write_attribute(object.data, "skin:weight_1", "FLOAT", 3 * rise)
    broken = np.where(np.arange(COUNT) == 7, np.nan, 3 - 3 * rise)
    write_attribute(object.data, "skin:weight_0", "FLOAT", broken)
    ops.estimate_gradients()
    skin = read_skin(object.data)
    np.testing.assert_allclose(skin.weights.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(np.delete(dense(skin, 3)[:, 1], 7), np.delete(rise, 7), atol=1e-6)
    assert skin.indices[7, 0] == STATIC and skin.weights[7, 0] == 1
    assert "1 splats had weights that are not finite" in capfd.readouterr().out


def test_layers_act_on_what_they_start_from(stage):
    """Their own gradients are exact; those of the weights below are estimated."""
    object, _ = stage
    draw(operation="MIX", strength=0.5)
    document, rise = object.data[LAYERS], edit(object, 1.6, BASE)
    assert ops.estimate_gradients(layers="KEEP") == {"FINISHED"}
    assert object.data[LAYERS] == document and len(read_layers(object).layers) == 1
    assert_follows(object, rise, BASE)
    found = read_skin(object.data)
    update_weights(object)
    np.testing.assert_array_equal(read_skin(object.data).gradients, found.gradients)
    x = places(object)[:, 0]
    np.testing.assert_allclose(dense(found, 3)[x < 2.2, 1], rise[x < 2.2], atol=1e-6)
    assert dense(found, 3)[(x > 2.7) & (x < 2.9), 2].min() > 0.3, "the layer"


def test_layers_can_be_applied(stage, capfd):
    """What another tool made of their weights stays, and they go."""
    object, armature = stage
    draw(operation="MIX", strength=0.5)
    rise = edit(object, 1.6)
    assert ops.estimate_gradients(layers="APPLY") == {"FINISHED"}
    assert "1 selection layer applied" in capfd.readouterr().out
    assert not read_layers(object).layers and not influence_count(object.data, BASE)
    assert_follows(object, rise)
    draw(operation="MIX", strength=0.0)
    assert_follows(object, rise, BASE)  # later layers act on them
    ops.edit_layers(action="DELETE")
    assert_follows(object, rise)


def test_layers_alone_have_nothing_to_estimate(empty_scene):
    object, _ = add_splats(empty_scene, COUNT), add_armature(empty_scene)
    select(object)
    ops.bind(armature="hand made", method="EMPTY")
    draw("hip", "[[150, 100], [400, 500]]", smoothness=80.0)
    document, before = object.data[LAYERS], read_skin(object.data)
    with pytest.raises(RuntimeError, match="are made by its selection layers, whose gradients"):
        ops.estimate_gradients()
    assert object.data[LAYERS] == document
    np.testing.assert_array_equal(read_skin(object.data).gradients, before.gradients)
    assert ops.estimate_gradients(layers="APPLY") == {"FINISHED"}
    after = read_skin(object.data)
    np.testing.assert_allclose(dense(after, 3), dense(before, 3), atol=1e-6)
    steep = np.abs(dense_gradients(before, 3)[:, 0, 0]) > 1
    np.testing.assert_allclose(
        dense_gradients(after, 3)[steep, 0, 0], dense_gradients(before, 3)[steep, 0, 0], atol=0.4
    )
    assert steep.any() and not read_layers(object).layers


def test_bones_that_are_not_there_are_told_and_change_nothing(stage):
    object, _ = stage
    write_attribute(object.data, "skin:index_0", "INT", np.full(COUNT, 99))
    before = read_skin(object.data)
    with pytest.raises(RuntimeError, match="Splat 0 is weighted to bone 99, but the rig has bones 0 to 2"):
        ops.estimate_gradients()
    after = read_skin(object.data)
    np.testing.assert_array_equal(after.indices, before.indices)
    np.testing.assert_array_equal(after.gradients, before.gradients)


def test_the_rig_of_a_capture(empty_scene):
    """It goes on with as many influences as its deformer has, and without a list of layers."""
    object, _, _ = learned_bar(empty_scene)
    before = read_skin(object.data)
    write_attribute(object.data, "skin:gradient_0", "FLOAT_VECTOR", np.full((len(before), 3), 50.0))
    select(object)
    assert ops.estimate_gradients() == {"FINISHED"}
    after = read_skin(object.data)
    assert after.influences == before.influences and LAYERS not in object.data
    count = before.indices.max() + 1
    np.testing.assert_allclose(dense(after, count), dense(before, count), atol=1e-6)
    expected = weight_gradients(places(object), after.indices, after.weights)
    np.testing.assert_allclose(after.gradients, expected, atol=1e-4)


def test_weights_that_a_tool_wrote_without_gradients_can_be_bound(empty_scene):
    object, armature = add_splats(empty_scene, COUNT), add_armature(empty_scene)
    rise = edit(object, 1.2)
    with pytest.raises(RuntimeError, match="Bind the splats to an armature first"):
        ops.estimate_gradients()
    select(armature, object)
    assert ops.bind(armature="hand made", method="CAPTURE") == {"FINISHED"}
    skin = read_skin(object.data)
    weights = dense(skin, 3)
    assert weights.sum() == pytest.approx(COUNT, rel=1e-5), "by the bones nearest to what they hold"
    slope = dense_gradients(skin, 3)[(rise > 0.3) & (rise < 0.7), :, 0]
    np.testing.assert_allclose(np.abs(slope).max(axis=1), 1 / 0.8, rtol=0.1)


@pytest.mark.parametrize("method", ["ENVELOPE", "EMPTY"])
@pytest.mark.parametrize("kind", [SKIN, BASE])
def test_damaged_weights_can_be_bound_anew(stage, method, kind):
    object, armature = stage
    draw()
    remove_attribute(object.data, f"{kind}:weight_0")
    write_attribute(object.data, f"{kind}:index_1", "FLOAT", np.zeros(COUNT))
    select(armature, object)
    assert ops.bind(armature="hand made", method=method) == {"FINISHED"}
    assert len(read_layers(object).layers) == 1 and np.isfinite(read_skin(object.data).weights).all()


def test_a_bind_that_fails_gives_damaged_weights_back_as_they_were(stage, monkeypatch):
    from gaussianimate.gaussianimate_addon.weights import binding

    object, armature = stage
    remove_attribute(object.data, "skin:weight_1")
    before = {a.name: read_attribute(object.data, a.name) for a in object.data.attributes}

    def fails(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(binding, "add_deformer", fails)
    select(armature, object)
    with pytest.raises(KeyboardInterrupt):
        binding.bind_splats(bpy.context, object, armature, read_skin(add_bound(armature).data))
    after = {a.name: read_attribute(object.data, a.name) for a in object.data.attributes}
    assert after.keys() == before.keys()
    for name, values in before.items():
        np.testing.assert_array_equal(after[name], values, name)


def add_bound(armature):
    """Return other splats with weights of as many splats."""
    other = add_splats(bpy.context.scene, COUNT, name="other")
    write_skin(other.data, read_skin_of_one(len(other.data.points)))
    return other


def read_skin_of_one(count):
    from gaussianimate.core.skinning.skin import Skin

    one = (count, 1)
    return Skin(np.zeros(one, np.int32), np.ones(one, np.float32), np.zeros((*one, 3), np.float32))


def offered():
    layout = draw_panel("weights")
    return [*layout.buttons, *layout.menus]


def test_the_panel_offers_it(stage):
    object, armature = stage
    armature.data.bones.active = armature.data.bones["hip"]
    assert "Estimate Gradients" in offered()
    draw()
    assert "Estimate Gradients" in offered()
