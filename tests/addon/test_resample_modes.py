"""Which poses splats are resampled for, and that the scene is as before however that ends."""

import math

import bpy
import numpy as np
import pytest
from answering import learned_bar, play_joints, residuals
from drawn_weights import BONES, add_armature, add_splats, select
from resampling import EPSILON, finished, keyed_bar, large, ops, origins, whole
from rigs import make_cloud

from gaussianimate.core.resample.resample import ResampleOptions, resample
from gaussianimate.gaussianimate_addon.armature import SKIN_BONE
from gaussianimate.gaussianimate_addon.bake import rest_splats, skin_transforms
from gaussianimate.gaussianimate_addon.resampling.limits import carrying_bones, turns_of
from gaussianimate.gaussianimate_addon.resampling.poses import (
    action_frames,
    frame_poses,
    limit_poses,
    settled,
)
from gaussianimate.gaussianimate_addon.resampling.task import distinct
from gaussianimate.gaussianimate_addon.secondary.live import SESSION


@pytest.fixture
def bar(empty_scene):
    """A bar whose second joint turns in frames 1 to 9, at a pose between keys that is not keyed."""
    object, armature = keyed_bar(empty_scene, {1: -0.4, 9: 1.2})
    empty_scene.frame_set(3, subframe=0.5)
    armature.pose.bones["joint_1"].rotation_euler = (0.3, 0, 0)
    bpy.context.view_layer.update()
    return object, armature


def channels(armature):
    names = ("location", "rotation_euler", "rotation_quaternion", "scale")
    return [[tuple(getattr(bone, name)) for name in names] for bone in armature.pose.bones]


def test_an_action_is_the_union_of_its_frames(bar):
    object, armature = bar
    before, scene = channels(armature), bpy.context.scene
    assert action_frames(armature) == (1, 9)
    poses = finished(frame_poses(bpy.context, object, 1, 9, 1))
    rest = rest_splats(object)
    found = resample(rest.cloud, rest.skin, poses, ResampleOptions(EPSILON))
    assert poses.shape == (9, 3, 3, 4)
    assert ops.resample(mode="ACTION", epsilon=EPSILON) == {"FINISHED"}
    np.testing.assert_array_equal(origins(object), found.origins)
    assert channels(armature) == before and (scene.frame_current, scene.frame_subframe) == (3, 0.5)
    some = finished(frame_poses(bpy.context, object, 2, 9, 3))
    np.testing.assert_array_equal(some, poses[[1, 4, 7, 8]], "the last frame is looked at in any case")
    ops.restore_splats()
    ops.resample(mode="ACTION", epsilon=EPSILON, frame_start=2, frame_end=2)
    at_two = set(np.flatnonzero(np.bincount(origins(object)) > 1)) if whole(object) else set()
    assert at_two < set(np.flatnonzero(np.bincount(found.origins) > 1))


@pytest.mark.parametrize("after", [0, 3])
def test_what_is_cancelled_leaves_the_scene_as_it_was(bar, after):
    object, armature = bar
    before, scene = channels(armature), bpy.context.scene
    for steps in (frame_poses(bpy.context, object, 1, 9, 1), limit_poses(bpy.context, object, 0.5)):
        for _ in range(after + 1):
            next(steps)
        steps.close()
        assert channels(armature) == before and (scene.frame_current, scene.frame_subframe) == (3, 0.5)
        assert all(modifier.show_viewport for modifier in object.modifiers)
        assert bpy.context.active_object == object and object.select_get()


def test_ranges_come_from_limits_then_motion_then_the_angle(bar):
    _, armature = bar
    bones = armature.pose.bones
    assert {bone.name for bone in carrying_bones(armature)} == {"joint_0", "joint_1", "joint_2"}
    turns = {(t.bone, t.axis, round(t.angle, 4)) for t in turns_of(armature, 0.5)}
    assert {t for t in turns if t[0] == "joint_1"} == {("joint_1", "Z", -0.4), ("joint_1", "Z", 1.2)}
    assert {t for t in turns if t[0] == "joint_2"} == {("joint_2", a, e) for a in "XYZ" for e in (-0.5, 0.5)}
    limit = bones["joint_1"].constraints.new("LIMIT_ROTATION")
    limit.owner_space = "LOCAL"
    limit.use_limit_z, limit.min_z, limit.max_z = True, 0.0, 0.7
    bones["joint_2"].use_ik_limit_x, bones["joint_2"].ik_min_x, bones["joint_2"].ik_max_x = True, -0.1, 0.2
    bones["joint_2"].lock_ik_y = True
    bones["joint_0"].lock_rotation = (True, True, True)
    turns = {(t.bone, t.axis, round(t.angle, 4)) for t in turns_of(armature, 0.5)}
    assert {t for t in turns if t[0] == "joint_1"} == {("joint_1", "Z", 0.7)}
    assert {t for t in turns if t[0] == "joint_2"} == {
        ("joint_2", "X", -0.1),
        ("joint_2", "X", 0.2),
        ("joint_2", "Z", -0.5),
        ("joint_2", "Z", 0.5),
    }
    assert not any(t[0] == "joint_0" for t in turns)


def test_each_bone_stands_alone_at_its_limits(bar):
    object, armature = bar
    armature.animation_data_clear()
    poses = finished(limit_poses(bpy.context, object, math.radians(60)))
    assert poses.shape == (18, 3, 3, 4)
    turned = np.abs(poses - np.eye(3, 4)).max(axis=(2, 3)) > 1e-3
    np.testing.assert_array_equal(turned.sum(axis=1), np.repeat([3, 2, 1], 6))  # a bone and those below it
    angles = np.degrees(np.arccos((np.trace(poses[:, 2, :, :3], axis1=1, axis2=2) - 1) / 2))
    np.testing.assert_allclose(angles, 60, atol=0.01)
    rest = rest_splats(object)
    found = resample(rest.cloud, rest.skin, poses, ResampleOptions(EPSILON))
    before = channels(armature)
    ops.resample(mode="LIMITS", epsilon=EPSILON, angle=math.radians(60))
    np.testing.assert_array_equal(origins(object), found.origins)
    assert channels(armature) == before


def test_bones_of_a_hand_made_armature_and_their_controls(empty_scene):
    object, armature = add_splats(empty_scene, cloud=large(make_cloud(100))), add_armature(empty_scene)
    ops.bind(armature=armature.name, method="ENVELOPE")
    assert {bone.name for bone in carrying_bones(armature)} == {"control", *BONES}
    ops.resample(mode="LIMITS", epsilon=EPSILON)
    assert len(object.data.points) > 100


def test_live_skin_bones_answer_the_poses(empty_scene):
    """Secondary motion is in the poses of both, and stands as before afterwards."""
    object, armature, _ = learned_bar(empty_scene)
    play_joints(armature)
    empty_scene.frame_set(12)
    before, shown = residuals(armature), []
    for frame in range(4, 20, 5):
        empty_scene.frame_set(frame)
        shown.append(skin_transforms(bpy.context.evaluated_depsgraph_get(), object))
    empty_scene.frame_set(12)
    np.testing.assert_array_equal(residuals(armature), before)
    played = finished(frame_poses(bpy.context, object, 4, 19, 5))
    turned = finished(limit_poses(bpy.context, object, 0.5))
    np.testing.assert_allclose(played, np.stack(shown), atol=1e-5)
    SESSION.paused = True
    try:
        for bone in armature.pose.bones:
            if SKIN_BONE in bone.bone:
                bone.matrix_basis.identity()
        rigid = finished(frame_poses(bpy.context, object, 4, 19, 5))
        rigid_turned = finished(limit_poses(bpy.context, object, 0.5))
    finally:
        SESSION.paused = False
    assert np.abs(played - rigid).max() > 0.02 and np.abs(turned - rigid_turned).max() > 0.02
    assert not SESSION.failures
    SESSION.forget()


def refused(match, **options):
    with pytest.raises(RuntimeError, match=match):
        ops.resample(**options)


def test_refusals(bar):
    object, armature = bar
    armature.data.pose_position = "REST"
    refused("'rig' shows its Rest Position; set it to Pose Position first")
    armature.data.pose_position = "POSE"
    refused("The last frame, 2, comes before the first, 5", mode="ACTION", frame_start=5, frame_end=2)
    beyond = "Blender has frames from -1048574 to 1048574, and none of number"
    refused(f"{beyond} 2147483647", mode="ACTION", frame_start=1, frame_end=2**31 - 1)
    armature.animation_data_clear()
    refused("'rig' plays no action; key a motion, or give the frames", mode="ACTION")
    for bone in armature.pose.bones:
        bone.lock_rotation = (True, True, True)
    refused("No bone of 'rig' that carries splats can turn", mode="LIMITS")
    select(armature)
    bpy.ops.object.mode_set(mode="EDIT")
    try:
        refused("'rig' is in Edit Mode")
    finally:
        bpy.ops.object.mode_set(mode="OBJECT")
    select(object)
    object.data.resize(20)
    refused("splats of 'bar' were added or removed")
    assert whole(object) is None and len(bpy.data.pointclouds) == 1


@pytest.mark.parametrize(
    ("whose", "channel", "value", "message"),
    [
        (
            "armature",
            "location",
            (math.nan, 0, 0),
            "The location, rotation or scale of 'rig' is not a number",
        ),
        ("armature", "scale", (0, 1, 1), "'rig' is scaled to nothing; give it a scale other than 0"),
        ("armature", "scale", (1e30, 1e30, 1e30), r"'rig' is scaled by 1e\+30; give it a smaller scale"),
        ("object", "rotation_euler", (0, math.nan, 0), "rotation or scale of 'bar' is not a number; clear"),
        ("above", "scale", (0, 0, 0), "'above' is scaled to nothing"),
    ],
)
@pytest.mark.parametrize("mode", ["POSE", "LIMITS", "ACTION", "UNIFORM"])
def test_who_stands_nowhere_is_named(bar, whose, channel, value, message, mode):
    object, armature = bar
    above = bpy.data.objects.new("above", None)
    bpy.context.scene.collection.objects.link(above)
    armature.parent, object.parent = above, armature
    setattr({"object": object, "armature": armature, "above": above}[whose], channel, value)
    refused(message, mode=mode)
    assert whole(object) is None and len(bpy.data.pointclouds) == 1


def test_a_bone_that_is_nowhere_is_named(bar, tmp_path):
    object, armature = bar
    bone = armature.pose.bones["joint_1"]
    bone.scale[0] = math.nan
    who = (
        "ocation, rotation or scale of bone 'skin_.*' of 'rig', or of one above it, is not a number; clear it"
    )
    refused(f"The l{who}")
    bone.keyframe_insert("scale", index=0, frame=4)
    message = f"In frame 1 the l{who}, or leave that frame out"
    refused(message, mode="ACTION")
    with pytest.raises(RuntimeError, match=message):
        ops.bake_ply(filepath=str(tmp_path / "baked.ply"), frame_start=1, frame_end=9, resample=True)
    assert not list(tmp_path.iterdir()) and whole(object) is None


def test_splats_that_nothing_poses(empty_scene):
    add_splats(empty_scene)
    refused("'bar' is not rigged; build a rig or bind it to an armature first")
    refused("'bar' is not rigged", mode="UNIFORM")


def test_held_poses_count_once(bar):
    object, _ = bar
    held = finished(frame_poses(bpy.context, object, 7, 20, 1))
    assert len(held) == 14
    np.testing.assert_array_equal(distinct(held), held[:3])
    np.testing.assert_array_equal(distinct(held[::-1]), held[[-1, 1, 0]])


def test_bones_that_move_as_one_but_for_rounding_move_exactly_alike(bar):
    object, armature = bar
    poses = finished(limit_poses(bpy.context, object, 0.5))
    turned = [turn.bone for turn in turns_of(armature, 0.5)]
    for pose, bone in zip(poses, turned, strict=True):
        number = int(bone[-1])
        assert (pose[:number] == np.eye(3, 4)).all() and (pose[number:] == pose[number]).all()
        assert np.abs(pose[number] - np.eye(3, 4)).max() > 0.01
    rng = np.random.default_rng(0)
    noisy = poses + rng.uniform(-4e-7, 4e-7, poses.shape)
    noisy[0, 1] = np.nan
    again = settled(noisy)
    assert np.isnan(again[0, 1]).all() and np.abs(again - noisy)[1:].max() < 2e-6
    assert all(len(np.unique(pose, axis=0)) <= 2 for pose in again[1:])
    apart = np.stack([np.eye(3, 4), np.eye(3, 4) + 1e-5, np.eye(3, 4) + 2e-5])[None]
    np.testing.assert_array_equal(settled(apart), apart)


def test_a_hidden_armature_poses_all_the_same(bar):
    object, armature = bar
    armature.hide_set(True)
    select(object)
    assert ops.resample(epsilon=EPSILON, mode="ACTION") == {"FINISHED"}
    assert whole(object) is not None
