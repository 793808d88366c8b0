"""Refit Skeleton: what the animator edits is solved again in place."""

from dataclasses import replace

import bpy
import numpy as np
import pytest
from refitting import (
    carriers,
    delete,
    edit,
    error,
    joints,
    leave,
    notes,
    rigged_bar,
    select,
    shown,
    true_rig,
)
from rigs import make_capture

from gaussianimate.core.given_skeleton import GivenSkeleton
from gaussianimate.core.rigging.posing import joint_motions
from gaussianimate.gaussianimate_addon.armature import JOINT, SKELETON, SKIN_BONE, indexed_bones
from gaussianimate.gaussianimate_addon.capture_object import create_capture_object
from gaussianimate.gaussianimate_addon.deformer import bind_is_stale
from gaussianimate.gaussianimate_addon.motion_store import load_motion, stored_rig
from gaussianimate.gaussianimate_addon.skeleton_bones import skeleton_is_edited

ops = bpy.ops.gaussianimate


@pytest.fixture
def rigged(empty_scene):
    return rigged_bar()


# What an edit does


def test_a_deleted_joint(rigged):
    object, armature = rigged
    before, name = shown(object), armature.data.name
    edit(armature, delete("joint_2"))
    assert "(1 removed)" in skeleton_is_edited(armature)
    assert ops.refit_skeleton() == {"FINISHED"}
    assert skeleton_is_edited(armature) is None and bind_is_stale(object) is None
    assert joints(armature) == [("joint_0", None), ("joint_1", "joint_0"), ("joint_3", "joint_1")]
    assert set(carriers(armature)) <= {"joint_0", "joint_1", "joint_3"}
    assert "joint_2" not in carriers(armature)
    np.testing.assert_allclose(shown(object), before, atol=1e-4)  # outer bones replay as ever
    motion = load_motion(armature)
    assert motion.joint_names == ("joint_0", "joint_1", "joint_3", "end")
    after, first = error(object)
    assert first < 0.01 < 1 < after
    assert armature.data.name == name and len(bpy.data.armatures) == 1


def test_a_subdivided_bone_gets_the_motion_back(rigged):
    object, armature = rigged
    edit(armature, delete("joint_2"))
    ops.refit_skeleton()

    def subdivide(bones):
        bones["joint_1"].tail = bones["joint_3"].head
        select(bones, "joint_1")
        bpy.ops.armature.subdivide()

    edit(armature, subdivide)
    assert "1 added" in skeleton_is_edited(armature)
    assert ops.refit_skeleton() == {"FINISHED"}
    above = [parent for name, parent in joints(armature) if name == "joint_3"]
    assert above == ["joint_1.001"] and carriers(armature) == ["joint_0", "joint_1", "joint_1.001", "joint_3"]
    after, before = error(object)
    assert after < 0.01 < before
    new = armature.data.bones["joint_1.001"]
    assert new.color.palette == "THEME09" and not new.use_deform and SKELETON in new.collections
    assert armature.pose.bones["joint_1.001"].rotation_mode == "QUATERNION"


def test_dissolved_bones_are_merged(rigged):
    object, armature = rigged

    def dissolve(bones):
        select(bones, "joint_2")
        bpy.ops.armature.dissolve()

    edit(armature, dissolve)
    assert ops.refit_skeleton() == {"FINISHED"}
    names = [name for name, _ in joints(armature)]
    assert len(names) == 3 and names[:2] == ["joint_0", "joint_1"]  # the last one reaches over both
    assert armature.data.bones[names[2]].tail_local.x == pytest.approx(4, abs=1e-5)
    assert skeleton_is_edited(armature) is None and error(object)[0] > 1


def test_a_moved_joint_is_solved_and_back_again_restored(rigged):
    object, armature = rigged

    def shift(by):
        def change(bones):
            bones["joint_2"].head.x += by
            bones["joint_1"].tail = bones["joint_2"].head

        return change

    edit(armature, shift(0.3))
    leave()
    assert "moved" in skeleton_is_edited(armature)
    assert ops.refit_skeleton() == {"FINISHED"}
    assert error(object)[0] > 0.1
    rig = stored_rig(object, armature)
    np.testing.assert_allclose(rig.joint_positions[2], (2.3, 0, 0), atol=1e-5)
    edit(armature, shift(-0.3))
    assert ops.refit_skeleton() == {"FINISHED"}
    assert error(object)[0] < 0.01


def test_new_names_are_taken_over(rigged):
    object, armature = rigged
    before = shown(object)
    armature.data.bones["joint_1"].name = "knee"
    assert skeleton_is_edited(armature) is None  # no pose changes by a name
    assert ops.refit_skeleton() == {"FINISHED"}
    assert load_motion(armature).joint_names == ("joint_0", "knee", "joint_2", "joint_3", "end")
    np.testing.assert_allclose(shown(object), before, atol=1e-5)


def test_an_unchanged_skeleton_stays_the_same(rigged):
    object, armature = rigged
    before, rig = shown(object), stored_rig(object, armature)
    assert ops.refit_skeleton() == {"FINISHED"}
    again = stored_rig(object, armature)
    assert again.joint_names == rig.joint_names
    np.testing.assert_array_equal(again.joint_positions, rig.joint_positions)
    np.testing.assert_allclose(again.joint_rotations, rig.joint_rotations, atol=1e-6)
    np.testing.assert_allclose(again.bone_transforms, rig.bone_transforms, atol=1e-5)
    np.testing.assert_allclose(shown(object), before, atol=1e-5)
    assert len(notes(object).splitlines()) == 1


def test_a_joint_hung_on_another(rigged):
    object, armature = rigged
    before = shown(object)

    def hang(bones):
        bones["joint_3"].use_connect = False
        bones["joint_3"].parent = bones["joint_1"]

    edit(armature, hang)
    assert "given other parents" in skeleton_is_edited(armature)
    assert ops.refit_skeleton() == {"FINISHED"}
    assert dict(joints(armature))["joint_3"] == "joint_1"
    np.testing.assert_allclose(shown(object), before, atol=1e-4)


def test_an_extruded_tip_and_a_moved_tail_are_ends(rigged):
    object, armature = rigged

    def extrude(bones):
        bones["joint_3"].tail = (3.5, 0, 0)
        new = bones.new("tip")
        new.head, new.tail, new.parent, new.use_connect = (3.5, 0, 0), (4.2, 0, 0), bones["joint_3"], True

    edit(armature, extrude)
    assert ops.refit_skeleton() == {"FINISHED"}
    rig = stored_rig(object, armature)
    assert rig.joint_names == ("joint_0", "joint_1", "joint_2", "joint_3", "tip", "tip.end")
    np.testing.assert_allclose(rig.joint_positions[4:], [[3.5, 0, 0], [4.2, 0, 0]], atol=1e-5)
    assert SKELETON in armature.data.bones["tip"].collections and error(object)[0] < 0.01
    assert "'tip' carries no splats" in notes(object)


def test_of_copies_the_nearest_is_the_joint(rigged):
    object, armature = rigged

    def copy(bones):
        new = bones.new("copy")
        new.head, new.tail, new.parent = (2, 0.15, 0), (3, 0.15, 0), bones["joint_1"]
        new[JOINT] = 2
        armature.data.collections[SKELETON].assign(new)

    edit(armature, copy)
    assert "1 added" in skeleton_is_edited(armature)
    assert ops.refit_skeleton() == {"FINISHED"}
    names = [name for name, _ in joints(armature)]
    assert set(names) == {"joint_0", "joint_1", "joint_2", "joint_3", "copy"}
    assert skeleton_is_edited(armature) is None and error(object)[0] < 0.1


# Skin bones


def test_skin_bones_that_were_deleted_or_moved_are_put_back(rigged):
    object, armature = rigged
    before = shown(object)
    rests = {bone.name: np.array(bone.matrix_local) for bone in indexed_bones(armature, SKIN_BONE)}

    def harm(bones):
        bones.remove(bones["skin_002"])
        bones["skin_003"].head.z += 0.5
        bones["skin_003"].tail.z += 0.3
        copy = bones.new("copy")
        copy.head, copy.tail, copy[SKIN_BONE] = (0, 0, 1), (0, 0, 2), 0
        armature.data.collections["Skin bones"].assign(copy)

    edit(armature, harm)
    assert ops.refit_skeleton() == {"FINISHED"}
    assert "2 skin bones that were moved or deleted stand where they stood again" in notes(object)
    bones = indexed_bones(armature, SKIN_BONE)
    assert [bone.name for bone in bones] == sorted(rests)
    for bone in bones:
        np.testing.assert_allclose(np.array(bone.matrix_local), rests[bone.name], atol=1e-5)
        assert bone.use_deform
    assert bind_is_stale(object) is None
    np.testing.assert_allclose(shown(object), before, atol=1e-4)


def test_a_joint_on_a_skin_bone_hangs_on_its_joint(rigged):
    object, armature = rigged

    def hang(bones):
        bones["joint_3"].use_connect = False
        bones["joint_3"].parent = bones["skin_003"]

    edit(armature, hang)
    ops.refit_skeleton()
    assert dict(joints(armature))["joint_3"] == "joint_2"
    assert "'joint_3' hung on a skin bone; it hangs on 'joint_2' now." in notes(object)


# Skeletons that captures brought


def test_joints_a_capture_brought(empty_scene):
    cloud, rig = true_rig(joints=3)
    names = ("hip", "knee", "toe")
    skeleton = GivenSkeleton.make(names, [-1, 0, 1], rig.joint_positions[:3], joint_motions(rig)[:, :3])
    capture = replace(make_capture(cloud, rig), skeleton=skeleton)
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), "z")
    bpy.context.view_layer.objects.active = object
    assert ops.build_rig(max_bones=3) == {"FINISHED"}
    armature = bpy.context.active_object
    assert ops.refit_skeleton() == {"FINISHED"}  # its tips are joints, and stay without ends
    same = stored_rig(object, armature)
    assert same.joint_names == names and same.joint_bind is not None
    edit(armature, delete("knee"))
    assert ops.refit_skeleton() == {"FINISHED"}
    fewer = stored_rig(object, armature)
    assert fewer.joint_names == ("hip", "toe") and len(fewer.joint_bind) == 2

    def back(bones):
        bones["hip"].tail = bones["toe"].head
        select(bones, "hip")
        bpy.ops.armature.subdivide()

    edit(armature, back)
    assert ops.refit_skeleton() == {"FINISHED"}
    own = stored_rig(object, armature)
    assert own.joint_names == ("hip", "hip.001", "toe") and own.joint_bind is None
    assert "no longer all those the capture brought" in notes(object) and error(object)[0] < 0.02
