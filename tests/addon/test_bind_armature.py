"""Any armature carries splats: starting weights, deformer, drawer, bones that are renamed, added, deleted."""

import bpy
import numpy as np
import pytest
from compare import assert_same_splats, evaluated
from drawn_weights import BONES, PLACE, add_armature, add_splats, dense, dense_gradients, select
from mathutils import Matrix, Quaternion

from gaussianimate.core.deform.deform import deform_cloud
from gaussianimate.gaussianimate_addon.armature import SKIN_BONE, edit_mode, indexed_bones
from gaussianimate.gaussianimate_addon.attributes import read_attribute
from gaussianimate.gaussianimate_addon.deform_nodes import bone_names
from gaussianimate.gaussianimate_addon.deformer import bind_is_stale, deformer, deformer_armature
from gaussianimate.gaussianimate_addon.drawer.poses import pose_reader, read_transforms
from gaussianimate.gaussianimate_addon.point_cloud import point_cloud_to_cloud
from gaussianimate.gaussianimate_addon.skin_attributes import read_skin
from gaussianimate.gaussianimate_addon.weights.layers import has_layers, read_layers

ops = bpy.ops.gaussianimate


@pytest.fixture
def stage(empty_scene):
    object, armature = add_splats(empty_scene), add_armature(empty_scene)
    select(object)
    return object, armature


def turn(armature, name, angle=0.8):
    bone = armature.pose.bones[name]
    bone.rotation_mode = "QUATERNION"
    bone.rotation_quaternion = Quaternion((0, 0, 1), angle)
    bpy.context.view_layer.update()


def test_deform_bones_get_numbers_and_the_control_none(stage):
    object, armature = stage
    assert ops.bind(armature="hand made", method="EMPTY") == {"FINISHED"}
    assert [bone.name for bone in indexed_bones(armature, SKIN_BONE)] == list(BONES)
    assert SKIN_BONE not in armature.data.bones["control"]
    assert bone_names(deformer(object).node_group) == list(BONES)
    assert deformer_armature(object) == armature and object.parent == armature
    np.testing.assert_allclose(np.array(object.matrix_world), np.array(PLACE), atol=1e-6)
    assert has_layers(object) and read_layers(object).bones == BONES
    assert not dense(read_skin(object.data), 3).any(), "nothing holds the splats yet"


def test_heat_weighs_by_the_nearest_bone(stage):
    object, _ = stage
    ops.bind(armature="hand made", method="HEAT")
    weights, x = dense(read_skin(object.data), 3), read_attribute(object.data, "position")[:, 0]
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-6)
    inner = np.abs(x - np.round(x)) > 0.3
    np.testing.assert_array_equal(weights.argmax(axis=1)[inner], np.floor(x[inner]))
    assert (weights.max(axis=1) < 0.99).any(), "heat spreads"


def test_envelopes_and_their_gradients(stage):
    """The spaces of object and armature differ; gradients are those of the weights in the first."""
    object, armature = stage
    for name, radius in zip(BONES, (0.05, 0.08, 0.06), strict=True):
        bone = armature.data.bones[name]
        bone.head_radius = bone.tail_radius = radius
        bone.envelope_distance = 0.2
    ops.bind(armature="hand made", method="ENVELOPE")
    from gaussianimate.gaussianimate_addon.weights.starting import BindTask, read_task, starting_skin

    task = read_task(object, armature, indexed_bones(armature, SKIN_BONE), "ENVELOPE")
    np.testing.assert_allclose(task.bind[:3, :3], np.eye(3) / 2, atol=1e-6)

    def at(points):
        moved = BindTask("ENVELOPE", points, task.bind, task.bones)
        return dense(starting_skin(moved), 3)

    p, h = task.positions.astype(np.float64), 1e-3
    ahead, back = (np.stack([(at(p + e) - at(p)) for e in s * np.eye(3)], axis=-1) / s for s in (h, -h))
    found = (ahead + back) / 2
    largest = np.abs(found).max()
    smooth = np.abs(ahead - back).max(axis=(1, 2)) < 0.05 * largest  # no edge of an envelope within a step
    wrong = np.abs(found - dense_gradients(read_skin(object.data), 3)).max(axis=(1, 2))
    assert largest > 1 and smooth.mean() > 0.95
    assert wrong[smooth].max() < 0.01 * largest


def test_a_proxy_mesh_gives_its_vertex_groups(stage):
    object, armature = stage
    mesh = bpy.data.meshes.new("proxy")
    mesh.from_pydata(
        [(x, y, 0) for x in (0, 1, 2, 3) for y in (-1, 1)],
        [],
        [(2 * k, 2 * k + 1, 2 * k + 3, 2 * k + 2) for k in range(3)],
    )
    proxy = bpy.data.objects.new("proxy", mesh)
    bpy.context.scene.collection.objects.link(proxy)
    proxy.matrix_world = PLACE
    for name, members in (("hip", (0, 1)), ("arm.L", (2, 3)), ("arm.R", (4, 5, 6, 7)), ("other", (0,))):
        proxy.vertex_groups.new(name=name).add(members, 1.0, "REPLACE")
    with pytest.raises(RuntimeError, match="deforms no mesh"):
        ops.bind(armature="hand made", method="PROXY")
    proxy.modifiers.new("Armature", "ARMATURE").object = armature
    ops.bind(armature="hand made", method="PROXY")
    x = read_attribute(object.data, "position")[:, 0]
    expected = np.stack([np.clip(1 - x, 0, 1), 1 - np.abs(np.clip(x, 0, 2) - 1), np.clip(x - 1, 0, 1)], 1)
    np.testing.assert_allclose(dense(read_skin(object.data), 3), expected, atol=1e-5)


def test_present_weights_go_to_the_nearest_bones_of_another_armature(stage):
    object, _ = stage
    ops.bind(armature="hand made", method="HEAT")
    before = dense(read_skin(object.data), 3)
    other = add_armature(bpy.context.scene, name="other")
    for bone, new in zip(BONES, ("c", "b", "a"), strict=True):
        other.data.bones[bone].name = new
    select(object)
    ops.bind(armature="other", method="CAPTURE")
    assert deformer_armature(object) == other and "hand made" in bpy.data.objects
    np.testing.assert_allclose(dense(read_skin(object.data), 3), before, atol=1e-6)
    assert object.parent.name == "hand made", "a parent that is there stays"


def test_deformer_and_drawer_agree_with_core(stage):
    object, armature = stage
    ops.bind(armature="hand made", method="HEAT")
    rest, skin = point_cloud_to_cloud(object.data), read_skin(object.data)
    turn(armature, "arm.L")
    turn(armature, "arm.R", -0.5)
    transforms = read_transforms(bpy.context.evaluated_depsgraph_get(), object, pose_reader(object))
    expected = deform_cloud(rest, skin, transforms)
    assert np.abs(expected.positions - rest.positions).max() > 0.5
    assert_same_splats(evaluated(object), expected)


def test_renamed_bones_are_followed_at_once(stage):
    object, armature = stage
    ops.bind(armature="hand made", method="HEAT")
    turn(armature, "arm.L")
    posed = evaluated(object).positions.copy()
    armature.data.bones["arm.L"].name = "forearm"
    bpy.context.view_layer.update()
    assert bone_names(deformer(object).node_group) == ["hip", "forearm", "arm.R"]
    assert read_layers(object).bones == ("hip", "forearm", "arm.R")
    assert bind_is_stale(object) is None
    np.testing.assert_array_equal(evaluated(object).positions, posed)


def test_deleted_bones_let_go_and_copies_carry_nothing(stage):
    object, armature = stage
    ops.bind(armature="hand made", method="HEAT")
    before = dense(read_skin(object.data), 3)
    with edit_mode(bpy.context, armature):
        bones = armature.data.edit_bones
        copy = bones.new("copy")
        copy.head, copy.tail = (0, 1, 0), (0, 2, 0)
        copy[SKIN_BONE] = 2  # as Shift D leaves it
        bones.remove(bones["arm.L"])
    bpy.context.view_layer.update()
    assert [bone.name for bone in indexed_bones(armature, SKIN_BONE)] == ["hip", "arm.R"]
    assert SKIN_BONE not in armature.data.bones["copy"]
    np.testing.assert_allclose(dense(read_skin(object.data), 2), before[:, [0, 2]], atol=1e-6)
    assert bone_names(deformer(object).node_group) == ["hip", "arm.R"] and bind_is_stale(object) is None
    turn(armature, "arm.R")
    assert np.isfinite(evaluated(object).positions).all()


def test_binding_again_numbers_new_bones_after_the_others(stage):
    object, armature = stage
    other = add_splats(bpy.context.scene, name="second")
    for each in (object, other):
        select(each)
        ops.bind(armature="hand made", method="HEAT")
    before = read_skin(other.data)
    with edit_mode(bpy.context, armature):
        new = armature.data.edit_bones.new("tail")
        new.head, new.tail = (1.5, 0, 0), (2, 0, 0)
    select(object)
    ops.bind(armature="hand made", method="HEAT")
    for each in (object, other):
        assert bone_names(deformer(each).node_group) == [*BONES, "tail"]
        assert read_layers(each).bones == (*BONES, "tail")
    np.testing.assert_array_equal(read_skin(other.data).weights, before.weights)


def test_selected_armature_and_what_is_refused(stage):
    object, armature = stage
    select(object, armature)
    assert ops.bind(method="EMPTY") == {"FINISHED"}
    assert deformer_armature(object) == armature
    select(object)
    with pytest.raises(RuntimeError, match="no armature 'nothing'"):
        ops.bind(armature="nothing")
    bare = bpy.data.objects.new("bare", bpy.data.armatures.new("bare"))
    bpy.context.scene.collection.objects.link(bare)
    with pytest.raises(RuntimeError, match="no deform bones"):
        ops.bind(armature="bare")
    fresh = add_splats(bpy.context.scene, name="fresh", place=Matrix.Identity(4))
    assert fresh == bpy.context.active_object
    with pytest.raises(RuntimeError, match="no weights of a capture"):
        ops.bind(armature="hand made", method="CAPTURE")


def test_a_copy_has_weights_and_layers_of_its_own(stage):
    object, armature = stage
    ops.bind(armature="hand made", method="HEAT")
    copy = object.copy()
    copy.data = object.data.copy()
    bpy.context.scene.collection.objects.link(copy)
    armature.data.bones["hip"].name = "pelvis"
    bpy.context.view_layer.update()
    for each in (object, copy):
        assert bone_names(deformer(each).node_group)[0] == "pelvis"
        assert read_layers(each).bones[0] == "pelvis"
