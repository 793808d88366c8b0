"""Drawn layers where the rig below them is built anew or refined: kept where their bones are, else told."""

import json

import bpy
import numpy as np
import pytest
import refitting
from answering import learned_bar
from drawn_weights import add_armature, dense, select
from test_add_capture import add_object, true_rig, two_bones

from gaussianimate.core.motion.learned import learn_motion
from gaussianimate.core.selection.skin import SkinField
from gaussianimate.core.skinning.skin import Skin
from gaussianimate.gaussianimate_addon.armature import SKIN_BONE, indexed_bones
from gaussianimate.gaussianimate_addon.attributes import read_attribute
from gaussianimate.gaussianimate_addon.deform_nodes import bone_names
from gaussianimate.gaussianimate_addon.deformer import bind_is_stale, deformer, deformer_armature
from gaussianimate.gaussianimate_addon.rig_object import apply_rig
from gaussianimate.gaussianimate_addon.skin_attributes import BASE, influence_count, read_skin
from gaussianimate.gaussianimate_addon.weights.layers import has_layers, read_layers

ops = bpy.ops.gaussianimate
VIEW = json.dumps(
    {
        "view": [[1, 0, 0, -1.5], [0, 1, 0, 0], [0, 0, 1, -5], [0, 0, 0, 1]],
        "projection": [[0.25, 0, 0, 0], [0, 1 / 3, 0, 0], [0, 0, -0.1, 0], [0, 0, 0, 1]],
        "window": [0, 0, 800, 600],
    }
)


def draw(bone, low=300, high=500, **options):
    points = json.dumps([[low, 0], [high, 600]])
    given = {"shape": "RECTANGLE", "smoothness": 30.0, "through": True, "view": VIEW} | options
    ops.add_selection_layer(bone=bone, points=points, **given)


def skin_names(armature):
    return tuple(bone.name for bone in indexed_bones(armature, SKIN_BONE))


def agree(object):
    """The weights are those of the layers over what the rig gave."""
    p, stack = read_attribute(object.data, "position").astype(float), read_layers(object)
    field, count = SkinField(stack, base=read_skin(object.data, BASE), positions=p), len(stack.bones)
    np.testing.assert_allclose(dense(read_skin(object.data), count), dense(Skin(*field(p)), count), atol=2e-5)


def test_layers_stay_where_the_new_rig_has_their_bones(empty_scene):
    object, armature, _ = learned_bar(empty_scene)
    first, *_, last = skin_names(armature)
    draw(first, operation="REPLACE")
    draw(last, 100, 600)
    ops.build_rig(max_bones=2)
    armature = deformer_armature(object)
    assert skin_names(armature) == read_layers(object).bones and first in skin_names(armature)
    assert last not in skin_names(armature), "fewer bones than before"
    assert [layer.bone for layer in read_layers(object).layers] == [first]
    assert bone_names(deformer(object).node_group) == list(skin_names(armature))
    assert bind_is_stale(object) is None
    agree(object)
    notes = object.gaussianimate.rig_notes
    assert f"Dropped 1 selection layer of bones that the armature does not have: '{last}'" in notes


def test_without_layers_nothing_is_said(empty_scene):
    object, _, _ = learned_bar(empty_scene)
    ops.build_rig(max_bones=2)
    assert "Dropped" not in object.gaussianimate.rig_notes and not has_layers(object)


def test_an_armature_of_the_users_own_outlives_the_new_rig(empty_scene):
    object, _, _ = learned_bar(empty_scene)
    mine = add_armature(empty_scene)
    select(object)
    object.parent = None
    ops.bind(armature="hand made", method="EMPTY")
    draw("arm.L")
    assert object.parent == mine
    before = np.array(object.matrix_world)
    ops.build_rig(max_bones=2)
    assert "hand made" in bpy.data.objects and deformer_armature(object) != mine
    assert object.parent == deformer_armature(object)
    np.testing.assert_allclose(np.array(object.matrix_world), before, atol=1e-5)
    assert "'arm.L'" in object.gaussianimate.rig_notes and not read_layers(object).layers


@pytest.fixture
def refined(empty_scene):
    """A rigged bar with a layer on its last skin bone, refined by a capture that splits that bone."""
    cloud, rig = true_rig(0.6, stiff=(3,))
    rig = two_bones(rig)
    object = add_object(cloud, rig, "bar")
    from rigs import make_skin_of

    armature = apply_rig(bpy.context, object, rig, make_skin_of(rig), learn_motion(rig))
    other = add_object(*true_rig(0.9), "more")
    select(armature)
    first = skin_names(armature)[0]
    draw(first, 250, 330, operation="MIX", strength=0.8)
    ops.add_capture(source=other.name, max_bones=6)
    return object, armature, first


def test_layers_act_on_the_weights_of_a_refined_rig(refined):
    object, armature, first = refined
    stack = read_layers(object)
    assert stack.bones == skin_names(armature) and len(stack.bones) > 3
    assert [(layer.bone, layer.operation) for layer in stack.layers] == [(first, "mix")]
    assert influence_count(object.data, BASE) and influence_count(object.data) == 4
    assert bone_names(deformer(object).node_group) == list(stack.bones) and bind_is_stale(object) is None
    agree(object)
    base, count = dense(read_skin(object.data, BASE), len(stack.bones)), len(stack.bones)
    np.testing.assert_allclose(base.sum(axis=1), 1, atol=1e-5)
    assert np.abs(dense(read_skin(object.data), count) - base).max() > 0.05
    draw(stack.bones[-1], 500, 600)
    agree(object)


def test_refitted_joints_leave_drawn_weights(empty_scene):
    object, armature = refitting.rigged_bar()
    first = skin_names(armature)[0]
    draw(first, 250, 330, operation="MIX", strength=0.8)
    before, stack = dense(read_skin(object.data), 4), read_layers(object)
    refitting.edit(armature, refitting.delete("joint_2"))
    refitting.leave()
    assert ops.refit_skeleton() == {"FINISHED"}
    assert read_layers(object) == stack and bind_is_stale(object) is None
    np.testing.assert_array_equal(dense(read_skin(object.data), 4), before)
    agree(object)


def test_weights_of_no_capture_are_told(empty_scene):
    object, armature = refitting.rigged_bar()
    ops.bind(armature=armature.name, method="EMPTY")
    draw(skin_names(armature)[0])
    refitting.edit(armature, refitting.delete("joint_2"))
    refitting.leave()
    with pytest.raises(RuntimeError, match="no longer those of its capture; build its rig anew"):
        ops.refit_skeleton()
