"""A rig becomes one native armature whose replay action is the captured motion."""

from dataclasses import replace

import bpy
import numpy as np
import pytest
from compare import assert_same_splats, evaluated
from rigs import make_cloud, make_rig
from scenes import build

from gaussianimate.core.deform.deform import deform_cloud
from gaussianimate.core.rigging.posing import joint_motions
from gaussianimate.core.rotations import axis_angle_to_quaternion
from gaussianimate.gaussianimate_addon.action import replay_action
from gaussianimate.gaussianimate_addon.armature import (
    JOINT,
    SKELETON,
    SKIN_BONE,
    SKIN_BONES,
    indexed_bones,
    rig_to_armature,
)


def branching_rig():
    """A trunk with two arms: root 0 - 1 - (2 - 3, 4 - 5); joints 3 and 5 carry nothing."""
    cloud = make_cloud(200, joints=6)
    rig = make_rig(cloud, joints=6)
    positions = np.array([[0, 0, 0], [0, 0, 1], [0.5, 0, 1.2], [1.5, 0, 1.2], [-0.4, 0, 1.2], [-0.9, 0, 1.2]])
    return replace(
        rig,
        joint_positions=positions.astype(float),
        joint_parents=np.array([-1, 0, 1, 2, 1, 4], np.int32),
        bone_joints=np.array([0, 0, 1, 2, 2, 4], np.int32),
    )


def keyed(action, slot):
    """Data path -> curves by index, of the action's only strip."""
    bag = action.layers[0].strips[0].channelbag(slot)
    paths = {}
    for curve in bag.fcurves:
        paths.setdefault(curve.data_path, {})[curve.array_index] = curve
    return paths


def test_skeleton_is_the_kinematic_tree(scene):
    rig = branching_rig()
    armature = rig_to_armature(bpy.context, rig, "rig")
    bones = {bone[JOINT]: bone for bone in indexed_bones(armature, JOINT)}
    assert list(bones) == [0, 1, 2, 4], "ends move nothing and are only tails"
    for j, bone in bones.items():
        assert bone.name == rig.joint_names[j]
        np.testing.assert_allclose(bone.head_local, rig.joint_positions[j], atol=1e-6)
        parent = rig.joint_parents[j]
        assert bone.parent == (bones[parent] if parent >= 0 else None)
        assert [c.name for c in bone.collections] == [SKELETON]
        assert bone.length > 0.01
    np.testing.assert_allclose(bones[0].tail_local, rig.joint_positions[1])
    np.testing.assert_allclose(bones[1].tail_local, rig.joint_positions[2], atol=1e-6)  # the longer arm
    assert [bone.use_connect for bone in bones.values()] == [False, True, True, False]
    for j, end in ((2, 3), (4, 5)):
        np.testing.assert_allclose(bones[j].tail_local, rig.joint_positions[end], atol=1e-6)


def test_skin_bones_sit_in_their_points_under_their_joint(scene):
    rig = branching_rig()
    armature = rig_to_armature(bpy.context, rig, "rig")
    joints = {bone[JOINT]: bone for bone in indexed_bones(armature, JOINT)}
    skin = indexed_bones(armature, SKIN_BONE)
    assert [bone.name for bone in skin] == [f"skin_{b + 1:03d}" for b in range(6)]
    for b, bone in enumerate(skin):
        weight = np.where(rig.indices == b, rig.weights, 0).sum(axis=1)
        np.testing.assert_allclose(bone.head_local, weight @ rig.rest / weight.sum(), atol=1e-5)
        assert bone.parent == joints[rig.bone_joints[b]]
        assert [c.name for c in bone.collections] == [SKIN_BONES]
        assert bone.use_deform and not joints[0].use_deform
    assert not armature.data.collections[SKIN_BONES].is_visible
    assert armature.data.collections[SKELETON].is_visible


def test_bones_hinge_about_their_x_axis(scene):
    rig = make_rig(make_cloud())
    armature = rig_to_armature(bpy.context, rig, "rig")
    for bone in indexed_bones(armature, JOINT):
        x_axis = np.array(bone.matrix_local)[:3, 0]
        assert abs(x_axis @ [0, 1, 0]) > 0.97  # the bar hinges about Y
    hinges = [np.array(bone.matrix_local)[:3, 0] for bone in indexed_bones(armature, JOINT)]
    assert all(a @ b > 0.97 for a, b in zip(hinges, hinges[1:], strict=False))


def test_joints_in_one_place_still_get_bones(scene):
    rig = make_rig(make_cloud())
    rig = replace(rig, joint_positions=np.zeros((3, 3)))
    armature = rig_to_armature(bpy.context, rig, "rig")
    assert len(indexed_bones(armature, JOINT)) == 3


def test_names_of_any_script_survive(scene):
    rig = replace(make_rig(make_cloud()), joint_names=("кость", "骨", 'quote"d'))
    armature = rig_to_armature(bpy.context, rig, "rig")
    assert [b.name for b in indexed_bones(armature, JOINT)] == ["кость", "骨", 'quote"d']
    action = replay_action(armature, rig, scene)
    scene.frame_set(3)
    assert 'pose.bones["quote\\"d"].rotation_quaternion' in keyed(action, armature.animation_data.action_slot)
    assert armature.pose.bones['quote"d'].rotation_quaternion.angle > 0.1


def test_selection_and_active_object_are_left_as_they_were(scene):
    empty = bpy.data.objects.new("empty", None)
    scene.collection.objects.link(empty)
    empty.select_set(True)
    bpy.context.view_layer.objects.active = empty
    rig_to_armature(bpy.context, make_rig(make_cloud()), "rig")
    assert bpy.context.view_layer.objects.active == empty
    assert bpy.context.selected_objects == [empty]


def test_replay_equals_the_captured_motion(scene):
    cloud, rig = make_cloud(), make_rig(make_cloud())
    object, armature, skin = build(scene, cloud, rig)
    replay_action(armature, rig, scene)
    for f, frame in enumerate(rig.frames):
        scene.frame_set(scene.frame_start + int(frame))
        assert_same_splats(evaluated(object), deform_cloud(cloud, skin, rig.bone_transforms[f]))


def test_skeleton_alone_carries_the_skin_bones_rigidly(scene):
    cloud, rig = make_cloud(), make_rig(make_cloud())
    object, armature, skin = build(scene, cloud, rig)
    action = replay_action(armature, rig, scene)
    bag = action.layers[0].strips[0].channelbag(armature.animation_data.action_slot)
    for curve in [c for c in bag.fcurves if "skin_" in c.data_path]:
        bag.fcurves.remove(curve)
    for bone in armature.pose.bones:
        bone.matrix_basis.identity()
    rigid = joint_motions(rig)[:, rig.bone_joints]
    assert np.abs(rigid - rig.bone_transforms).max() > 0.01
    for f in range(len(rig.frames)):
        scene.frame_set(scene.frame_start + f)
        assert_same_splats(evaluated(object), deform_cloud(cloud, skin, rigid[f]))


def test_action_is_layered_linear_and_continuous(scene):
    rig = make_rig(make_cloud(), frames=20)
    turns = np.linspace(0, 4 * np.pi, 20)  # two full turns: the quaternion's sign must not flip back
    spin = axis_angle_to_quaternion(np.broadcast_to([0.0, 1.0, 0.0], (20, 3)), turns)
    rig.joint_rotations[:, 0] = spin * np.where(spin[:, :1] < 0, -1, 1)
    armature = rig_to_armature(bpy.context, rig, "rig")
    action = replay_action(armature, rig, scene)
    assert armature.animation_data.action == action
    assert action.slots[0] == armature.animation_data.action_slot
    paths = keyed(action, action.slots[0])
    assert 'pose.bones["joint_0"].location' in paths
    assert 'pose.bones["joint_1"].location' not in paths
    assert {'pose.bones["skin_001"].location', 'pose.bones["skin_001"].rotation_quaternion'} <= set(paths)
    curves = paths['pose.bones["joint_0"].rotation_quaternion']
    values = np.array([[p.co.y for p in curves[i].keyframe_points] for i in range(4)]).T
    assert (np.abs(np.diff(values, axis=0)).max(axis=1) < 0.5).all()
    assert {p.interpolation for p in curves[0].keyframe_points} == {"LINEAR"}
    assert [p.co.x for p in curves[0].keyframe_points] == [1 + i for i in range(20)]


@pytest.mark.parametrize("fps", [12, 30, 60])
def test_other_frame_rates_are_resampled_to_whole_frames(scene, fps):
    scene.render.fps = fps
    rig = make_rig(make_cloud(), frames=25)  # 24 frames a second: one second
    armature = rig_to_armature(bpy.context, rig, "rig")
    action = replay_action(armature, rig, scene)
    assert tuple(action.frame_range) == (1, 1 + fps)
    curve = keyed(action, action.slots[0])['pose.bones["joint_0"].location'][0]
    times = np.array([p.co.x for p in curve.keyframe_points])
    np.testing.assert_array_equal(times, np.arange(1, fps + 2))
    scene.frame_set(1 + fps // 2)  # half a second: captured frame 12
    posed = armature.pose.bones["joint_0"].matrix.translation
    np.testing.assert_allclose(posed, rig.joint_positions[0] + rig.root_translations[12], atol=1e-5)


def test_missing_frames_are_bridged(scene):
    rig = make_rig(make_cloud())
    kept = [0, 1, 2, 5, 6, 7]
    rows = ("bone_transforms", "joint_rotations", "root_translations", "frames")
    rig = replace(rig, **{name: getattr(rig, name)[kept] for name in rows})
    armature = rig_to_armature(bpy.context, rig, "rig")
    action = replay_action(armature, rig, scene)
    curve = keyed(action, action.slots[0])['pose.bones["joint_0"].location'][0]
    assert [p.co.x for p in curve.keyframe_points] == list(range(1, 9))


def test_between_captured_frames_the_surface_moves_straight(scene):
    """A joint may turn far and its skin bone back, as where a skeleton fits badly: splats stay put then."""
    scene.render.fps = 60  # two and a half scene frames a captured one
    rig = make_rig(make_cloud(), frames=25)
    motions = joint_motions(rig)
    still = np.tile(np.eye(3, 4), (*rig.bone_transforms.shape[:2], 1, 1))
    rig = replace(rig, bone_transforms=still)
    assert np.abs(motions[:, 2] - still[:, 2]).max() > 0.5
    armature = rig_to_armature(bpy.context, rig, "rig")
    replay_action(armature, rig, scene)
    bones = indexed_bones(armature, SKIN_BONE)
    for frame in range(1, 60):
        scene.frame_set(frame)
        for bone in bones:
            moved = np.array(armature.pose.bones[bone.name].matrix) - np.array(bone.matrix_local)
            assert np.abs(moved).max() < 1e-5


def test_single_frame(scene):
    rig = make_rig(make_cloud(), frames=1)
    armature = rig_to_armature(bpy.context, rig, "rig")
    action = replay_action(armature, rig, scene)
    assert tuple(action.frame_range) == (1, 1)
