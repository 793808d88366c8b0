"""Resampled splats whose weights were drawn: layers stay, and weights are those of the layers everywhere."""

import json
from dataclasses import replace

import bpy
import numpy as np
import pytest
from compare import assert_equal_bits
from drawn_weights import add_armature, add_splats, dense, select
from mathutils import Matrix, Vector
from resampling import assert_same_values, finished, large, ops, origins, values, whole
from rigs import make_cloud

from gaussianimate.core.errors import RigError
from gaussianimate.core.progress import no_progress
from gaussianimate.core.resample.resample import ResampleOptions, resample
from gaussianimate.core.selection.skin import SkinField, stack_to_skin
from gaussianimate.core.skinning.skin import Skin
from gaussianimate.gaussianimate_addon.attributes import read_attribute
from gaussianimate.gaussianimate_addon.bake import rest_splats, skin_transforms
from gaussianimate.gaussianimate_addon.point_cloud import point_cloud_to_cloud
from gaussianimate.gaussianimate_addon.resampling.digest import is_out_of_date
from gaussianimate.gaussianimate_addon.resampling.exchange import show_resampled
from gaussianimate.gaussianimate_addon.resampling.request import Choice, request_steps
from gaussianimate.gaussianimate_addon.resampling.task import solve
from gaussianimate.gaussianimate_addon.skin_attributes import BASE, influence_count, read_skin
from gaussianimate.gaussianimate_addon.weights.layer_list import layer_list
from gaussianimate.gaussianimate_addon.weights.layers import read_layers, update_weights, write_layers


def stage(scene, method):
    """Large splats bound to three bones, seen by a camera from above: 100 pixels a metre."""
    object, armature = add_splats(scene, cloud=large(make_cloud(250), 3)), add_armature(scene)
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    scene.collection.objects.link(camera)
    camera.data.type, camera.data.ortho_scale = "ORTHO", 8
    scene.render.resolution_x, scene.render.resolution_y, scene.render.resolution_percentage = 800, 600, 100
    bpy.context.view_layer.update()
    camera.matrix_world = object.matrix_world.copy()
    camera.matrix_world.translation = object.matrix_world @ Vector((1.5, 0, 5))
    select(object)
    ops.bind(armature="hand made", method=method)
    draw()
    bone = armature.pose.bones["arm.L"]
    bone.rotation_mode = "XYZ"
    bone.rotation_euler = (0.2, 0.9, 0.3)
    bpy.context.view_layer.update()
    return object, armature


def draw(bone="arm.L", points=((350, 250), (450, 350)), **options):
    """Between 1 and 2 along the bar, unless told otherwise; weights are drawn at rest."""
    armature = bpy.data.objects["hand made"]
    armature.data.pose_position = "REST"
    given = {"smoothness": 30.0, "through": True, "view": "Camera", "shape": "RECTANGLE"} | options
    assert ops.add_selection_layer(bone=bone, points=json.dumps(points), **given) == {"FINISHED"}
    armature.data.pose_position = "POSE"
    bpy.context.view_layer.update()


@pytest.fixture(params=["EMPTY", "ENVELOPE"])
def drawn(empty_scene, request):
    """Layers from nothing, and layers on starting weights."""
    return stage(empty_scene, request.param)


def test_children_have_the_weights_of_the_layers(drawn):
    object, _ = drawn
    rest, based = rest_splats(object), influence_count(object.data, BASE) > 0
    positions = rest.cloud.positions.astype(float)
    base = read_skin(object.data, BASE) if based else None
    field = SkinField(read_layers(object), 4, base, positions)
    pose = skin_transforms(bpy.context.evaluated_depsgraph_get(), object)
    found = resample(rest.cloud, rest.skin, pose, ResampleOptions(0.02), field)
    ops.resample(epsilon=0.02)
    rows, cloud = origins(object), point_cloud_to_cloud(object.data)
    assert_equal_bits(cloud, found.cloud)
    assert len(rows) > 250 and influence_count(object.data, BASE) == (4 if based else 0)
    exact = Skin(*field(cloud.positions.astype(float), rows))
    np.testing.assert_allclose(dense(read_skin(object.data), 3), dense(exact, 3), atol=2e-4)
    stored = read_skin(object.data)
    update_weights(object)
    assert_equal_bits(read_skin(object.data), stored)


def test_layers_stay_editable_and_reach_the_whole_splats(drawn):
    object, _ = drawn
    ops.resample(epsilon=0.02)
    count = len(object.data.points)
    assert len(layer_list(object).lines) == 1 and not is_out_of_date(object.data)
    draw("arm.R", ((400, 200), (700, 400)), strength=0.7)
    assert is_out_of_date(object.data) and len(object.data.points) == count
    positions = read_attribute(object.data, "position").astype(float)
    base = read_skin(object.data, BASE) if influence_count(object.data, BASE) else None
    drawn_now = stack_to_skin(read_layers(object), positions, base=base)
    np.testing.assert_array_equal(dense(read_skin(object.data), 3), dense(drawn_now, 3))

    ops.restore_splats()
    assert len(object.data.points) == 250 and len(read_layers(object).layers) == 2
    assert len(layer_list(object).lines) == 2
    restored = values(object.data)
    update_weights(object)
    assert_same_values(values(object.data), restored)

    ops.resample(epsilon=0.02)
    assert not is_out_of_date(object.data)
    again = values(object.data)
    write_layers(object, read_layers(object).changed(1, muted=True))
    ops.resample(epsilon=0.02)
    write_layers(object, read_layers(object).changed(1, muted=False))
    ops.resample(epsilon=0.02)
    assert_same_values(values(object.data), again)


def test_an_applied_transform_is_no_change_of_weights(drawn):
    object, _ = drawn
    ops.resample(epsilon=0.02)
    object.parent = None
    object.matrix_basis = object.matrix_basis @ Matrix.Rotation(0.4, 4, "X") @ Matrix.Scale(1.5, 4)
    bpy.context.view_layer.update()
    ops.apply_transform()
    assert not is_out_of_date(object.data)
    stored = dense(read_skin(object.data), 3)
    update_weights(object)
    np.testing.assert_allclose(dense(read_skin(object.data), 3), stored, atol=1e-3)
    ops.restore_splats()
    whole_weights = dense(read_skin(object.data), 3)
    update_weights(object)
    np.testing.assert_allclose(dense(read_skin(object.data), 3), whole_weights, atol=1e-3)


def test_splats_changed_meanwhile_are_refused(drawn):
    """What happens to the scene while the worker splits, played one after the other."""
    object, _ = drawn
    request = finished(request_steps(bpy.context, object, Choice("POSE", 0.02)))
    answer = solve(request, no_progress)
    layers = read_layers(object)
    write_layers(object, layers.changed(0, strength=0.5))
    with pytest.raises(RigError, match="changed while it was resampled; run it again"):
        show_resampled(object, answer, "")
    write_layers(object, layers)
    object.data.attributes["position"].data[7].vector.x += 0.1
    with pytest.raises(RigError, match="changed while it was resampled; run it again"):
        show_resampled(object, answer, "")
    object.data.attributes["position"].data[7].vector = request.splats.cloud.positions[7]
    show_resampled(object, answer, "said")
    assert len(object.data.points) == len(answer.found.cloud)


def test_removed_layers_leave_the_starting_weights(drawn):
    object, _ = drawn
    before = values(object.data)
    ops.resample(epsilon=0.02)
    write_layers(object, replace(read_layers(object), layers=()))
    assert is_out_of_date(object.data)
    ops.restore_splats()
    assert not influence_count(object.data, BASE) and not read_layers(object).layers
    found = read_skin(object.data)
    if "base:index_0" in before:
        np.testing.assert_array_equal(found.weights[:, 0], before["base:weight_0"][:, 0])
    else:
        assert (found.indices[:, 0] == -1).all()


def test_a_renamed_and_a_deleted_bone_are_followed_by_the_whole_splats(drawn):
    object, armature = drawn
    untouched = object.copy()
    untouched.data = object.data.copy()
    bpy.context.scene.collection.objects.link(untouched)
    ops.resample(epsilon=0.02)
    armature.data.bones["arm.L"].name = "elbow"
    bpy.context.view_layer.update()
    assert not is_out_of_date(object.data)
    select(armature)
    bpy.ops.object.mode_set(mode="EDIT")
    armature.data.edit_bones.remove(armature.data.edit_bones["hip"])
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.update()
    select(object)
    assert read_layers(object).bones == ("elbow", "arm.R") and whole(object) is not None
    split = np.bincount(origins(object)) > 1
    ops.restore_splats()
    update_weights(untouched)
    found, exact = dense(read_skin(object.data), 2), dense(read_skin(untouched.data), 2)
    np.testing.assert_allclose(found[~split], exact[~split], atol=1e-6)
    assert exact[:, 0].max() > 0.99 and np.abs(found - exact).max() < 0.1
    assert ops.resample(epsilon=0.02) == {"FINISHED"}
