"""A generated Rigify human carries splats: deform bones under constraints, moved by controls."""

import addon_utils
import bpy
import numpy as np
import pytest
from compare import assert_same_splats, evaluated
from drawn_weights import add_splats, dense, select
from mathutils import Matrix
from rigs import make_cloud

from gaussianimate.core.deform.deform import deform_cloud
from gaussianimate.core.skinning.bone_heat import bone_distances
from gaussianimate.gaussianimate_addon.armature import SKIN_BONE, indexed_bones
from gaussianimate.gaussianimate_addon.attributes import read_attribute
from gaussianimate.gaussianimate_addon.deform_nodes import bone_names
from gaussianimate.gaussianimate_addon.deformer import bind_is_stale, deformer
from gaussianimate.gaussianimate_addon.drawer.poses import pose_reader, read_transforms
from gaussianimate.gaussianimate_addon.point_cloud import point_cloud_to_cloud
from gaussianimate.gaussianimate_addon.properties import object_notes
from gaussianimate.gaussianimate_addon.skin_attributes import read_skin
from gaussianimate.gaussianimate_addon.weights.layer_list import layer_list
from gaussianimate.gaussianimate_addon.weights.layers import read_layers

ops = bpy.ops.gaussianimate
LIMBS = ("spine", "thigh", "shin", "foot", "shoulder", "upper_arm", "forearm", "hand")
PLACE = Matrix.Translation((1, -2, 0.3)) @ Matrix.Rotation(0.6, 4, "Z")


@pytest.fixture(scope="module")
def generated(addon, tmp_path_factory):
    """A file with a human as Rigify generates it, and splats about its limbs."""
    assert addon_utils.enable("rigify", default_set=True) is not None
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    bpy.ops.object.armature_human_metarig_add()
    meta = bpy.context.object
    bpy.ops.pose.rigify_generate()
    bpy.ops.object.mode_set(mode="OBJECT")
    rig = next(o for o in bpy.data.objects if o.type == "ARMATURE" and o != meta)
    bpy.data.objects.remove(meta)
    bpy.context.view_layer.update()
    cloud = make_cloud(4000, degree=0)
    cloud.positions[:] = body(rig, len(cloud))
    rig.matrix_world = PLACE
    add_splats(bpy.context.scene, place=PLACE, name="body", cloud=cloud)
    path = str(tmp_path_factory.mktemp("rigify") / "human.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    yield path, rig.name
    addon_utils.disable("rigify", default_set=True)


def body(rig, count):
    """Points within 5 cm of the deform bones of trunk and limbs, the longer the bone the more."""
    bones = [b for b in rig.data.bones if b.use_deform and b.name[4:].split(".")[0] in LIMBS]
    lengths = np.array([b.length for b in bones])
    rng = np.random.default_rng(4)
    picked = rng.choice(len(bones), count, p=lengths / lengths.sum())
    heads, tails = (points[picked] for points in ends(bones))
    away = rng.normal(size=(count, 3))
    away *= 0.05 * rng.uniform(size=(count, 1)) ** (1 / 3) / np.linalg.norm(away, axis=1, keepdims=True)
    return heads + rng.uniform(size=(count, 1)) * (tails - heads) + away


def ends(bones):
    """Heads and tails (B, 3) at rest."""
    return [np.array([getattr(bone, end) for bone in bones]) for end in ("head_local", "tail_local")]


@pytest.fixture
def stage(generated):
    path, name = generated
    bpy.ops.wm.open_mainfile(filepath=path)
    object, rig = bpy.data.objects["body"], bpy.data.objects[name]
    select(object)
    return object, rig


def moved_by(object, rig, control, offset):
    """How far splats went when a control was moved (in the rig's space)."""
    before = evaluated(object).positions.copy()
    bone = rig.pose.bones[control]
    bone.matrix = Matrix.Translation(offset) @ bone.matrix
    bpy.context.view_layer.update()
    return evaluated(object).positions - before


@pytest.mark.parametrize("method", ["HEAT", "ENVELOPE"])
def test_deform_bones_carry_the_splats_and_controls_move_them(stage, method):
    object, rig = stage
    assert ops.bind(armature=rig.name, method=method) == {"FINISHED"}
    bones = indexed_bones(rig, SKIN_BONE)
    assert len(bones) > 150 and all(bone.name.startswith("DEF-") for bone in bones)
    assert not any(SKIN_BONE in b for b in rig.data.bones if b.name[:4] in ("ORG-", "MCH-"))
    assert bone_names(deformer(object).node_group) == [bone.name for bone in bones]
    skin, p = read_skin(object.data), read_attribute(object.data, "position").astype(float)
    weights = dense(skin, len(bones))
    held = weights.sum(axis=1)
    away = bone_distances(p, *ends(bones))
    strongest = np.take_along_axis(away, weights.argmax(axis=1)[:, None], axis=1)[:, 0]
    near = strongest < away.min(axis=1) + 0.05
    assert near[held > 0.5].mean() > (0.97 if method == "HEAT" else 0.9), "by a bone that is near"
    if method == "HEAT":
        np.testing.assert_allclose(held, 1, atol=1e-5)
    offset = np.array([0, -0.15, 0.1])
    gone = moved_by(object, rig, "hand_ik.L", offset)
    nearest = np.array([bone.name for bone in bones])[away.argmin(axis=1)]
    hand = np.isin(nearest, ["DEF-hand.L", *(f"DEF-palm.0{k}.L" for k in (1, 2, 3, 4))])
    share = gone[hand] @ offset / (offset @ offset)
    assert hand.sum() > 20
    assert share.mean() > (0.9 if method == "HEAT" else 0.5) and share.max() < 1.2, share.mean()
    right = p[:, 0] < -0.1
    assert right.sum() > 500 and np.abs(gone[right]).max() < 1e-4, "the other side stays"
    transforms = read_transforms(bpy.context.evaluated_depsgraph_get(), object, pose_reader(object))
    assert_same_splats(evaluated(object), deform_cloud(point_cloud_to_cloud(object.data), skin, transforms))


def test_the_root_moves_all_and_renaming_is_followed(stage):
    object, rig = stage
    ops.bind(armature=rig.name, method="HEAT")
    offset = np.array([0.3, 0.2, -0.1])
    np.testing.assert_allclose(moved_by(object, rig, "root", offset), np.tile(offset, (4000, 1)), atol=1e-4)
    rig.data.bones["DEF-forearm.L"].name = "DEF-lower_arm.L"
    bpy.context.view_layer.update()
    assert bind_is_stale(object) is None and "DEF-lower_arm.L" in read_layers(object).bones


def test_bendy_bones_are_told(stage):
    object, rig = stage
    ops.bind(armature=rig.name, method="HEAT")
    bendy = sum(bone.bbone_segments > 1 for bone in indexed_bones(rig, SKIN_BONE))
    assert bendy > 20
    assert f"{bendy} bendy bones carry splats as straight bones do" in object_notes(object).rig_notes
    for bone in rig.data.bones:
        bone.bbone_segments = 1
    ops.bind(armature=rig.name, method="EMPTY")
    assert "bendy" not in object_notes(object).rig_notes


def test_drawing_for_a_control_says_what_to_do_and_the_search_offers_deform_bones(stage):
    object, rig = stage
    ops.bind(armature=rig.name, method="EMPTY")
    view = (
        '{"view": [[1, 0, 0, 0], [0, 0, 1, -1], [0, -1, 0, -5], [0, 0, 0, 1]], "projection": '
        '[[0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, -0.1, 0], [0, 0, 0, 1]], "window": [0, 0, 400, 400]}'
    )  # from the front, 100 pixels a metre
    drawn = {
        "shape": "RECTANGLE",
        "points": "[[220, 20], [390, 390]]",
        "view": view,
        "through": True,
        "smoothness": 4.0,
    }
    rig.data.bones.active = rig.data.bones["upper_arm_fk.L"]
    with pytest.raises(RuntimeError, match="'upper_arm_fk.L' deforms nothing; choose a deform bone in the W"):
        ops.add_selection_layer(**drawn)
    layer_list(object).bone = "DEF-upper_arm.L"
    assert rig.data.bones.active.name == "DEF-upper_arm.L"
    ops.add_selection_layer(**drawn)
    assert [layer.bone for layer in read_layers(object).layers] == ["DEF-upper_arm.L"]
    from gaussianimate.gaussianimate_addon.weights.layer_list import _search_bones

    found = _search_bones(layer_list(object), bpy.context, "Upper_Arm")
    assert found == ["DEF-upper_arm.L", "DEF-upper_arm.L.001", "DEF-upper_arm.R", "DEF-upper_arm.R.001"]
    ops.mirror_layers(whole_bone=True)
    x = read_attribute(object.data, "position")[:, 0]
    weights = dense(read_skin(object.data), len(read_layers(object).bones))
    left, right = (weights[:, read_layers(object).bones.index(f"DEF-upper_arm.{side}")] for side in "LR")
    assert left[x > 0.3].min() > 0.99 and not left[x < 0].any()
    assert right[x < -0.3].min() > 0.99 and not right[x > 0].any()


def test_a_rig_that_is_generated_again_goes_on(generated):
    """Rigify deletes all bones of the rig there is, and makes them anew."""
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    bpy.ops.object.armature_human_metarig_add()
    meta = bpy.context.object
    for bone in [bone.name for bone in meta.pose.bones if bone.name.startswith(("face", "breast"))]:
        meta.pose.bones[bone].rigify_type = ""
    bpy.ops.pose.rigify_generate()
    bpy.ops.object.mode_set(mode="OBJECT")
    rig = meta.data.rigify_target_rig
    cloud = make_cloud(1000, degree=0)
    cloud.positions[:] = body(rig, len(cloud))
    object = add_splats(bpy.context.scene, place=rig.matrix_world.copy(), name="body", cloud=cloud)
    ops.bind(armature=rig.name, method="HEAT")
    names, before = bone_names(deformer(object).node_group), read_skin(object.data)
    select(meta)
    bpy.ops.pose.rigify_generate()
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.update()
    assert meta.data.rigify_target_rig == rig and bind_is_stale(object) is None
    assert [bone.name for bone in indexed_bones(rig, SKIN_BONE)] == names
    for name in ("indices", "weights", "gradients"):
        np.testing.assert_array_equal(getattr(read_skin(object.data), name), getattr(before, name))
