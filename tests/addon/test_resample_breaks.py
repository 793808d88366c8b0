"""Resampled splats and what happens to bones, weights, layers and files: nothing old comes back."""

import json

import bpy
import numpy as np
import pytest
from drawn_panels import draw, said
from drawn_weights import add_armature, add_splats, dense, select
from resampling import assert_same_values, bent_bar, large, ops, values, whole
from rigs import make_cloud
from scenes import reopened

from gaussianimate.core.errors import RigError
from gaussianimate.gaussianimate_addon.armature import edit_mode
from gaussianimate.gaussianimate_addon.attributes import remove_attribute, write_attribute
from gaussianimate.gaussianimate_addon.drawer.viewport import DRAWER
from gaussianimate.gaussianimate_addon.resampling.exchange import restore_whole
from gaussianimate.gaussianimate_addon.resampling.whole import ORIGIN
from gaussianimate.gaussianimate_addon.skin_attributes import read_skin
from gaussianimate.gaussianimate_addon.weights.layers import LAYERS

VIEW = (
    '{"view": [[1, 0, 0, -1.5], [0, 1, 0, 0], [0, 0, 1, -5], [0, 0, 0, 1]], "projection": [[0.25, 0, 0, 0], '
    '[0, 0.3333, 0, 0], [0, 0, -0.1, 0], [0, 0, 0, 1]], "window": [0, 0, 800, 600]}'
)
EPSILON = 0.03


def posed_scan(scene, layered):
    """Return splats bound by envelopes to an armature that is posed, with a layer or without."""
    object, armature = add_splats(scene, cloud=large(make_cloud(300))), add_armature(scene)
    select(armature, object)
    ops.bind(armature=armature.name, method="ENVELOPE")
    if layered:
        ops.add_selection_layer(
            bone="arm.R", shape="RECTANGLE", points="[[450, 0], [600, 600]]", view=VIEW, through=True
        )
    for bone in armature.pose.bones:
        bone.rotation_mode = "XYZ"
        bone.rotation_euler = (0.2, 0.4, 0.9)
    bpy.context.view_layer.update()
    return object, armature


def copied(object):
    """Return a copy with splats of its own."""
    other = object.copy()
    other.data = object.data.copy()
    bpy.context.scene.collection.objects.link(other)
    return other


def bound(object):
    """The weights (N, B) by bone, as they are."""
    skin = read_skin(object.data)
    return dense(skin, int(skin.indices.max()) + 1)


@pytest.mark.parametrize("layered", [False, True])
@pytest.mark.parametrize("victim", ["hip", "arm.L"])
def test_bones_deleted_between_two_resamplings(empty_scene, victim, layered):
    object, armature = posed_scan(empty_scene, layered)
    untouched = copied(object)
    ops.resample(epsilon=EPSILON)
    with edit_mode(bpy.context, armature):
        armature.data.edit_bones.remove(armature.data.edit_bones[victim])
    bpy.context.view_layer.update()
    select(object)
    for _ in range(3):
        assert ops.resample(epsilon=EPSILON) == {"FINISHED"} and len(object.data.points) > 300
    ops.restore_splats()
    expected = bound(untouched)
    assert bound(object).shape == expected.shape == (300, 2)
    np.testing.assert_allclose(bound(object), expected, atol=0.02)


@pytest.mark.parametrize("layered", [False, True])
def test_weights_bound_anew_between_two_resamplings(empty_scene, layered):
    """Whole splats have what the children were bound to, whether or not they are split again before."""
    object, armature = posed_scan(empty_scene, layered)
    old = bound(object)
    ops.resample(epsilon=EPSILON)
    select(armature, object)
    ops.bind(armature=armature.name, method="HEAT")
    at_once = copied(object)
    select(at_once)
    ops.restore_splats()
    select(object)
    for _ in range(2):
        ops.resample(epsilon=EPSILON)
    ops.restore_splats()
    assert np.abs(bound(object) - old).max() > 0.2
    np.testing.assert_allclose(bound(object), bound(at_once), atol=1e-5)


def test_a_copy_keeps_whole_splats_of_its_own(empty_scene):
    object, armature = posed_scan(empty_scene, False)
    ops.resample(epsilon=EPSILON)
    other, before = copied(object), values(whole(object))
    select(armature, object)
    ops.bind(armature=armature.name, method="HEAT")
    ops.resample(epsilon=EPSILON)
    assert whole(object) != whole(other)
    for name, found in values(whole(other)).items():
        np.testing.assert_array_equal(found, before[name], err_msg=name)


def test_splats_made_local_can_be_restored(empty_scene, tmp_path):
    posed_scan(empty_scene, True)
    ops.resample(epsilon=EPSILON)
    reopened(str(tmp_path / "library.blend"), "bar", "hand made")
    object = bpy.data.objects["bar"].make_local()
    object.data.make_local()
    bpy.data.objects["hand made"].make_local().data.make_local()
    bpy.context.view_layer.update()
    object = next(o for o in bpy.data.objects if o.type == "POINTCLOUD" and o.library is None)
    select(object)
    assert whole(object).library is not None
    assert ops.resample(epsilon=EPSILON) == {"FINISHED"}
    assert ops.restore_splats() == {"FINISHED"}
    assert len(object.data.points) == 300 and object.data.library is None


@pytest.mark.parametrize("text", ["{", json.dumps({"format": "gaussianimate-selection", "version": 99})])
def test_layers_that_cannot_be_read_do_not_break_the_panel(empty_scene, text):
    object, _ = posed_scan(empty_scene, True)
    ops.resample(epsilon=EPSILON)
    ops.show_bent(epsilon=EPSILON)
    object.data[LAYERS] = text
    assert "resample again" in said("resample")
    for operator in (ops.resample, ops.restore_splats):
        with pytest.raises(RuntimeError, match="cannot be read|of version 99"):
            operator()
    assert len(object.data.points) > 300 and object.data[LAYERS] == text
    ops.hide_bent()


@pytest.mark.parametrize("part", ["weight", "index"])
def test_a_weight_that_was_deleted_is_told(empty_scene, part):
    object, _ = posed_scan(empty_scene, False)
    ops.resample(epsilon=EPSILON)
    object.data.attributes.remove(object.data.attributes[f"skin:{part}_0"])
    draw("resample")
    for operator in (ops.resample, ops.restore_splats):
        with pytest.raises(RuntimeError, match=f"has lost its attribute 'skin:{part}_0'"):
            operator()
    assert len(object.data.points) > 300


@pytest.mark.parametrize("kind", ["FLOAT_VECTOR", "QUATERNION", "STRING", "FLOAT4X4"])
@pytest.mark.parametrize("part", ["weight", "index"])
def test_a_weight_of_another_type_is_told(empty_scene, part, kind):
    object, _ = posed_scan(empty_scene, False)
    ops.resample(epsilon=EPSILON)
    ops.show_bent(epsilon=EPSILON)
    object.data.attributes.remove(object.data.attributes[f"skin:{part}_0"])
    object.data.attributes.new(f"skin:{part}_0", kind, "POINT")
    assert "resample again" in said("resample")
    for operator in (ops.resample, ops.restore_splats):
        with pytest.raises(
            RuntimeError, match=f"'skin:{part}_0' of 'bar' is of type {kind}, not .*bind it again"
        ):
            operator()
    assert len(object.data.points) > 300
    ops.hide_bent()


def test_faint_splats_cannot_be_split(empty_scene, capfd):
    object, _ = bent_bar(empty_scene)
    colours = object.data.attributes["radiance:base"].data
    colours.foreach_set("vector", np.full(4 * len(colours), 0.01, np.float32))
    ops.resample(mode="UNIFORM")
    assert "None of 200 splats can be split" in capfd.readouterr().out and whole(object) is None


def test_splats_that_are_edited_are_left_alone(empty_scene):
    """Blender gives no other data to an object in Edit Mode, and says nothing of it."""
    object, armature = posed_scan(empty_scene, False)
    other = object.copy()
    bpy.context.scene.collection.objects.link(other)
    ops.resample(epsilon=EPSILON)
    data, count, names = object.data, len(object.data.points), [p.name for p in bpy.data.pointclouds]
    select(other)
    bpy.ops.object.mode_set(mode="EDIT")
    try:
        for active in (other, object):
            bpy.context.view_layer.objects.active = active
            for operator in (ops.resample, ops.show_bent, ops.restore_splats):
                with pytest.raises(RuntimeError, match="'bar.001' is being edited; leave Edit Mode first"):
                    operator()
        with pytest.raises(RigError, match="'bar.001' is being edited"):  # entered while a job ran
            restore_whole(object)
        bpy.context.view_layer.objects.active = other
        with pytest.raises(RuntimeError, match="'bar.001' is being edited; leave Edit Mode first"):
            ops.bind(armature=armature.name, method="EMPTY")
    finally:
        bpy.context.view_layer.objects.active = other
        bpy.ops.object.mode_set(mode="OBJECT")
    assert object.data == data == other.data and len(data.points) == count
    assert [p.name for p in bpy.data.pointclouds] == names
    assert ops.restore_splats() == {"FINISHED"} and len(object.data.points) == 300


def test_splats_that_were_joined_afterwards_are_not_lost(empty_scene):
    object, _ = posed_scan(empty_scene, False)
    ops.resample(epsilon=EPSILON)
    other, count = copied(object), len(object.data.points)
    select(other, object)
    bpy.ops.object.join()
    assert len(object.data.points) == 2 * count
    with pytest.raises(RuntimeError, match="'bar' has splats that were added after it was resampled"):
        ops.restore_splats()
    assert len(object.data.points) == 2 * count
    object.data.resize(count - 3)
    assert ops.restore_splats() == {"FINISHED"} and len(object.data.points) == 300


@pytest.mark.parametrize("layered", [False, True])
@pytest.mark.parametrize("damage", ["type", "beyond", "negative"])
def test_origins_that_another_tool_wrote_over_are_of_no_whole_splat(empty_scene, damage, layered):
    """Weights that were bound anew cannot be told to the whole splats then, which keep theirs."""
    object, armature = posed_scan(empty_scene, layered)
    before = values(object.data)
    ops.resample(epsilon=EPSILON)
    count = len(object.data.points)
    if damage == "type":
        remove_attribute(object.data, ORIGIN)
        write_attribute(object.data, ORIGIN, "FLOAT", np.zeros(count))
    else:
        write_attribute(object.data, ORIGIN, "INT", np.full(count, 10**6 if damage == "beyond" else -7))
    assert ops.show_bent(epsilon=EPSILON) == {"FINISHED"}
    assert len(DRAWER.overlay.values) == count and not DRAWER.overlay.values.any()
    select(armature, object)
    ops.bind(armature=armature.name, method="EMPTY")
    select(object)
    assert ops.restore_splats() == {"FINISHED"}
    after = values(object.data)
    np.testing.assert_array_equal(after["position"], before["position"])
    assert after["skin:weight_0"].any()


def test_whole_splats_come_back_where_all_others_were_deleted(empty_scene):
    object, _ = posed_scan(empty_scene, True)
    before = values(object.data)
    ops.resample(epsilon=EPSILON)
    object.data.resize(0)
    with pytest.raises(RuntimeError, match="'bar' has no splats to resample"):
        ops.resample(epsilon=EPSILON)
    assert ops.restore_splats() == {"FINISHED"}
    assert_same_values(values(object.data), before)
