"""Skeletons that captures bring: kept in the .blend, moved with splats, sampled from armatures, rigged."""

from dataclasses import replace
from math import radians

import bpy
import numpy as np
import pytest
from mathutils import Matrix
from rigs import make_capture, make_cloud, make_rig, make_skin_of

from gaussianimate.core.errors import CaptureError
from gaussianimate.core.given_skeleton import GivenSkeleton
from gaussianimate.core.rigging.posing import joint_motions
from gaussianimate.gaussianimate_addon.armature import JOINT, indexed_bones
from gaussianimate.gaussianimate_addon.capture_frames import frames_object
from gaussianimate.gaussianimate_addon.capture_object import (
    capture_from_point_cloud,
    create_capture_object,
    scene_frame,
)
from gaussianimate.gaussianimate_addon.rig_object import apply_rig
from gaussianimate.gaussianimate_addon.sample_armature import sample_armature_steps

ops = bpy.ops.gaussianimate
NAMES = ("hip", "knee", "toe")


def jointed_capture(frames=8, count=500):
    """A bending bar that knows its joints and its clips."""
    cloud = make_cloud(count, degree=0)
    rig = make_rig(cloud, frames=frames)
    skeleton = GivenSkeleton.make(NAMES, rig.joint_parents, rig.joint_positions, joint_motions(rig))
    clips = (np.arange(frames) // 4).astype(np.int32)
    return replace(make_capture(cloud, rig), skeleton=skeleton, clips=clips, clip_names=("walk", "run"))


def add(capture, axis="y"):
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), axis)
    bpy.context.view_layer.objects.active = object
    return object


def same(found, wanted, atol=1e-6):
    assert found.names == wanted.names
    np.testing.assert_array_equal(found.parents, wanted.parents)
    np.testing.assert_allclose(found.rest, wanted.rest, atol=atol)
    np.testing.assert_allclose(found.joint_mats, wanted.joint_mats, atol=atol)


def test_skeleton_and_clips_come_back_from_a_file(empty_scene, tmp_path):
    capture = jointed_capture()
    add(capture)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "a.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "a.blend"))
    back = capture_from_point_cloud(bpy.data.objects["bar"])
    same(back.skeleton, capture.skeleton)
    np.testing.assert_array_equal(back.clips, capture.clips)
    assert back.clip_names == ("walk", "run") and back.clips.dtype == np.int32


def test_captures_without_them_have_none(empty_scene):
    back = capture_from_point_cloud(add(replace(jointed_capture(), skeleton=None, clips=None)))
    assert back.skeleton is None and back.clips is None and back.clip_names == ()


def test_the_skeleton_follows_an_applied_transform_and_copies_keep_theirs(empty_scene):
    capture = jointed_capture()
    object = add(capture, "z")
    copy = object.copy()
    copy.data = object.data.copy()
    bpy.context.scene.collection.objects.link(copy)
    matrix = Matrix.LocRotScale((1, 2, 3), Matrix.Rotation(0.7, 3, "X").to_quaternion(), (2, 2, 2))
    object.matrix_world = matrix
    bpy.context.view_layer.update()
    object.select_set(True)
    assert ops.apply_transform() == {"FINISHED"}
    moved = capture_from_point_cloud(object)
    same(moved.skeleton, capture.skeleton.moved(np.array(matrix)), atol=1e-5)
    expected = capture.skeleton.positions() @ np.array(matrix)[:3, :3].T + np.array(matrix)[:3, 3]
    np.testing.assert_allclose(moved.skeleton.positions(), expected, atol=1e-5)
    same(capture_from_point_cloud(copy).skeleton, capture.skeleton)


# Rigs


def bones_of(armature):
    return [bone.name for bone in indexed_bones(armature, JOINT)]


def test_a_rig_stands_on_the_joints_the_capture_brings(empty_scene):
    add(jointed_capture())
    assert ops.build_rig(max_bones=4) == {"FINISHED"}
    armature = bpy.context.active_object
    assert bones_of(armature) == list(NAMES)
    np.testing.assert_allclose(armature.data.bones["toe"].head_local, (2, 0, 0), atol=1e-5)
    bpy.context.scene.frame_set(4)
    turn = armature.pose.bones["knee"].rotation_quaternion.angle
    assert turn == pytest.approx(0.8 * abs(np.sin(2 * np.pi * 3 / 7)), abs=1e-3)


def test_extracted_joints_are_found_though_there_are_given_ones(empty_scene):
    add(jointed_capture())
    assert ops.build_rig(max_bones=2, skeleton="extracted") == {"FINISHED"}
    assert not set(bones_of(bpy.context.active_object)) & set(NAMES)


def test_a_joint_that_turns_has_a_bone_though_it_carries_nothing(empty_scene):
    cloud = make_cloud(200, degree=0)
    rig = replace(make_rig(cloud), joint_bind=np.tile(np.eye(3, 4), (3, 1, 1)))
    rig.bone_joints[:] = [0, 1, 1]
    object = add(make_capture(cloud, rig), "z")
    still = rig.joint_rotations.copy()
    still[:, 2] = [1, 0, 0, 0]
    ended = replace(rig, joint_rotations=still)
    assert len(bones_of(apply_rig(bpy.context, object, ended, make_skin_of(ended)))) == 2
    assert len(bones_of(apply_rig(bpy.context, object, rig, make_skin_of(rig)))) == 3


# Armatures


@pytest.fixture
def body(empty_scene):
    """An armature of the bar's joints, turned and moving, with a bone that does not deform between two."""
    scene = empty_scene
    data = bpy.data.armatures.new("body")
    armature = bpy.data.objects.new("body", data)
    scene.collection.objects.link(armature)
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    above = None
    for i, name in enumerate(("hip", "helper", "knee", "toe")):
        bone = data.edit_bones.new(name)
        x = (0, 0.5, 1, 2)[i]
        bone.head, bone.tail, bone.parent = (x, 0, 0), (x + 0.4, 0, 0.1), above
        above = bone
    bpy.ops.object.mode_set(mode="OBJECT")
    data.bones["helper"].use_deform = False
    armature.matrix_world = Matrix.Rotation(radians(90), 4, "X")
    for frame, turn in ((1, 0.0), (8, 1.0)):
        for bone in armature.pose.bones:
            bone.rotation_mode = "XYZ"
            bone.rotation_euler = (0.2 * turn, 0.1, turn)
            bone.keyframe_insert("rotation_euler", frame=frame)
        armature.location.x = turn
        armature.keyframe_insert("location", frame=frame)
    return armature


def drain(steps):
    try:
        while True:
            next(steps)
    except StopIteration as stop:
        return stop.value


def heads(armature, object, name):
    """Head of a bone in the space of an object, asked of Blender at the current frame."""
    graph = bpy.context.evaluated_depsgraph_get()
    posed = armature.evaluated_get(graph)
    world = posed.matrix_world @ posed.pose.bones[name].head
    return np.array(object.evaluated_get(graph).matrix_world.inverted() @ world)


def test_an_armature_is_sampled_where_and_when_the_capture_is(body):
    scene = bpy.context.scene
    scene.render.fps = 12  # a capture's frame lasts half a frame of the scene
    object = add(jointed_capture())
    object.location.z = 2
    scene.frame_set(3, subframe=0.25)
    skeleton = drain(sample_armature_steps(bpy.context, body, object))
    assert (scene.frame_current, scene.frame_subframe) == (3, 0.25)
    assert skeleton.names == NAMES and skeleton.parents.tolist() == [-1, 0, 1]
    positions = skeleton.positions()
    for frame in (0, 3, 7):
        time = scene_frame(object, frame)
        scene.frame_set(int(time), subframe=time % 1)
        for j, name in enumerate(NAMES):
            np.testing.assert_allclose(positions[frame, j], heads(body, object, name), atol=1e-5)
    assert np.ptp(positions, axis=0).max() > 0.1
    np.testing.assert_allclose(np.linalg.det(skeleton.joint_mats[..., :3]), 1, atol=1e-5)


def test_a_rig_on_an_armature_of_the_scene(body):
    object = add(jointed_capture(), "z")
    body.matrix_world = Matrix()
    assert ops.build_rig(max_bones=4, skeleton="body") == {"FINISHED"}
    armature = bpy.context.active_object
    assert armature != body and set(bones_of(armature)) == set(NAMES)
    assert capture_from_point_cloud(object).skeleton.names == NAMES
    np.testing.assert_allclose(
        armature.data.bones["knee"].head_local,
        drain(sample_armature_steps(bpy.context, body, object)).positions()[0, 1],
        atol=1e-5,
    )


def test_a_rig_made_here_lends_its_skeleton(empty_scene):
    lender = add(jointed_capture(), "z")
    ops.build_rig(max_bones=3)
    armature = bpy.context.active_object
    object = add(replace(jointed_capture(), name="shirt", skeleton=None), "z")
    skeleton = drain(sample_armature_steps(bpy.context, armature, object))
    same(skeleton, capture_from_point_cloud(lender).skeleton, atol=1e-4)


@pytest.mark.parametrize(
    "name, text",
    [("nobody", "no armature called 'nobody'"), ("bar", "no armature called"), ("", "No armature is chosen")],
)
def test_what_is_no_armature_is_said(empty_scene, name, text):
    add(jointed_capture())
    before = bpy.context.scene.frame_current
    with pytest.raises(RuntimeError, match=text):
        ops.build_rig(skeleton=name)
    assert bpy.context.scene.frame_current == before


def test_what_is_scaled_to_nothing_or_has_no_bones_is_said(body):
    object = add(jointed_capture())
    body.scale.y = 0
    with pytest.raises(CaptureError, match="'body' is scaled to nothing"):
        drain(sample_armature_steps(bpy.context, body, object))
    empty = bpy.data.objects.new("empty", bpy.data.armatures.new("empty"))
    bpy.context.scene.collection.objects.link(empty)
    with pytest.raises(CaptureError, match="'empty' has no bones"):
        drain(sample_armature_steps(bpy.context, empty, object))


def test_given_without_a_skeleton_is_said(empty_scene):
    add(replace(jointed_capture(), skeleton=None))
    with pytest.raises(RuntimeError, match="bar brings no skeleton"):
        ops.build_rig(skeleton="given")
    assert frames_object(bpy.context.active_object) is not None
