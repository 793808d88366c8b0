"""Skin bones answer the pose: playing, scrubbing, dragging, and through all that a file goes through."""

import addon_utils
import bpy
import numpy as np
import pytest
from answering import (
    FRAMES,
    curves,
    frames,
    healthy,
    joint,
    learned_bar,
    play_joints,
    residuals,
    select,
    skin_motions,
)
from mathutils import Euler, Matrix, Quaternion

from gaussianimate.core.motion.auto import AutoLive
from gaussianimate.core.motion.database import bone_transforms
from gaussianimate.gaussianimate_addon.motion_store import load_motion
from gaussianimate.gaussianimate_addon.motion_switch import pose_anew
from gaussianimate.gaussianimate_addon.properties import object_notes
from gaussianimate.gaussianimate_addon.secondary.live import SESSION

RIGID = np.tile([0.0, 0, 0, 1, 0, 0, 0], (3, 1))
TURN = Quaternion((0, 1, 0.1), 0.7)  # as in the capture


@pytest.fixture
def bar(empty_scene):
    """Armature and rig; posed anew, without an action of any keys."""
    _, armature, rig = learned_bar(empty_scene)
    pose_anew(armature)
    bpy.context.view_layer.update()
    yield armature, rig
    SESSION.forget()


def update():
    bpy.context.view_layer.update()


def turn(armature, rotation=TURN, index=1):
    """Turn a joint, in the axes of the armature."""
    bone = joint(armature, index)
    rest = bone.bone.matrix_local.to_quaternion()
    bone.rotation_quaternion = rest.inverted() @ rotation @ rest
    update()


def answer(armature, rig, turns):
    """What the learned motion answers to joints (J, 4) held still."""
    predictor = load_motion(armature).predictor
    pose, place = np.array([turns]), np.zeros((1, 3))
    given = AutoLive(predictor).history(pose, place)
    return bone_transforms(predictor.database, given.residuals, pose, place)[0], given.coverage.parts[0]


def test_captured_joints_get_captured_skin_bones(empty_scene):
    _, armature, rig = learned_bar(empty_scene)
    play_joints(armature)
    got = frames(empty_scene, range(1, FRAMES + 1), armature)
    np.testing.assert_allclose(got, rig.bone_transforms, atol=1e-4)
    assert np.abs(residuals(armature) - RIGID).max() < 1e-3  # the last frame is the first pose
    healthy()


def test_the_way_to_a_frame_does_not_matter(empty_scene):
    _, armature, rig = learned_bar(empty_scene)
    play_joints(armature)
    for curve in curves(armature):  # nothing captured: two thirds of the swing
        if "joint_2" in curve.data_path and curve.array_index:
            for point in curve.keyframe_points:
                point.co[1] *= 0.66
            curve.update()
    played = frames(empty_scene, range(1, FRAMES + 1), armature)
    order = np.random.default_rng(0).permutation(FRAMES)
    jumped = frames(empty_scene, (order + 1).tolist(), armature)
    np.testing.assert_array_equal(jumped, played[order])
    assert np.abs(played - rig.bone_transforms).max() > 0.01
    healthy()


@pytest.mark.parametrize(("fps", "base"), [(24, 1.0), (30, 1.001), (60, 1.0)])
def test_other_frame_rates(empty_scene, fps, base):
    empty_scene.render.fps, empty_scene.render.fps_base = fps, base
    _, armature, rig = learned_bar(empty_scene, fps=12.0)
    ratio = fps / base / 12
    numbers = [1 + round(i * ratio) for i in range(2, FRAMES - 2)]
    truth = frames(empty_scene, numbers, armature)
    play_joints(armature)
    got = frames(empty_scene, numbers, armature)
    assert np.sqrt(((got - truth) ** 2).mean()) < 3e-3
    healthy()


def test_dragging_a_bone(bar):
    armature, rig = bar
    turn(armature)
    turns = np.tile([1.0, 0, 0, 0], (3, 1))
    turns[1] = TURN.normalized()
    wanted, distances = answer(armature, rig, turns)
    np.testing.assert_allclose(skin_motions(armature), wanted, atol=1e-5)
    np.testing.assert_allclose(SESSION.known[armature.session_uid].coverage, distances, atol=1e-5)
    turn(armature, Quaternion((1, 0, 0), 1.0))
    assert np.abs(skin_motions(armature) - wanted).max() > 0.1
    turn(armature)  # where it comes from does not matter
    np.testing.assert_allclose(skin_motions(armature), wanted, atol=1e-5)
    healthy()


def test_posing_amid_an_animation_is_held_still(empty_scene):
    _, armature, rig = learned_bar(empty_scene)
    play_joints(armature)
    empty_scene.frame_set(9)
    bone = joint(armature, 1)
    bone.rotation_quaternion = bone.rotation_quaternion @ Quaternion((0, 0, 1), 0.02)
    update()
    assert len(SESSION.known[armature.session_uid].asked) == 1
    bone.keyframe_insert("rotation_quaternion", frame=9)
    update()
    assert len(SESSION.known[armature.session_uid].asked) == 7
    healthy()


def test_every_rotation_mode(empty_scene):
    _, armature, rig = learned_bar(empty_scene)
    play_joints(armature)
    for index, mode in ((1, "XZY"), (2, "AXIS_ANGLE")):
        bone = joint(armature, index)
        poses = []
        for frame in range(1, FRAMES + 1):
            empty_scene.frame_set(frame)
            poses.append(bone.rotation_quaternion.copy())
        for curve in [c for c in curves(armature) if f'"{bone.name}"' in c.data_path]:
            curves(armature).remove(curve)
        bone.rotation_mode = mode
        for frame, pose in enumerate(poses, 1):
            if mode == "AXIS_ANGLE":
                axis, angle = pose.to_axis_angle()
                bone.rotation_axis_angle = (angle, *axis)
                bone.keyframe_insert("rotation_axis_angle", frame=frame)
            else:
                bone.rotation_euler = pose.to_euler(mode)
                bone.keyframe_insert("rotation_euler", frame=frame)
    got = frames(empty_scene, range(1, FRAMES + 1), armature)
    np.testing.assert_allclose(got, rig.bone_transforms, atol=1e-3)
    assert len(SESSION.known[armature.session_uid].asked) == 7
    healthy()


def test_joints_that_constraints_move_are_remembered_while_playing(empty_scene):
    _, source, rig = learned_bar(empty_scene)
    play_joints(source)
    follower = source.copy()
    follower.data = source.data.copy()
    follower.animation_data_clear()
    empty_scene.collection.objects.link(follower)
    for bone in follower.pose.bones:
        if "gaussianimate_joint" in bone.bone:
            constraint = bone.constraints.new("COPY_TRANSFORMS")
            constraint.target, constraint.subtarget = source, bone.name
    got = frames(empty_scene, range(1, FRAMES + 1), follower)
    np.testing.assert_allclose(got, rig.bone_transforms, atol=1e-3)
    assert len(SESSION.known[follower.session_uid].asked) == 7
    update()
    empty_scene.frame_set(4)  # a jump: nothing is known of before
    assert len(SESSION.known[follower.session_uid].asked) == 1
    healthy()


def test_a_cut_begins_anew(empty_scene):
    _, armature, rig = learned_bar(empty_scene)
    play_joints(armature)
    for curve in curves(armature):  # from frame 40 on the motion begins again, elsewhere
        keys = [point.co[:] for point in curve.keyframe_points]  # a new key moves those before in memory
        for frame, value in keys:
            curve.keyframe_points.insert(frame + 39, value).interpolation = "LINEAR"
        if "joint_2" in curve.data_path and curve.array_index == 0:
            curve.keyframe_points.insert(39, 0.1).interpolation = "CONSTANT"
    got = frames(empty_scene, range(40, 40 + FRAMES), armature)
    np.testing.assert_allclose(got, rig.bone_transforms, atol=1e-3)


def test_far_from_the_capture_bones_are_rigid(bar):
    armature, _ = bar
    turn(armature, Quaternion((1, 0, 0), 2.5))
    turn(armature, Quaternion((0, 0, 1), 2.5), index=2)
    assert np.degrees(SESSION.known[armature.session_uid].coverage).min() > 80
    np.testing.assert_allclose(residuals(armature)[1:], RIGID[1:], atol=0.02)
    near = []
    for angle in np.linspace(0, 2.5, 60):  # and smoothly so
        turn(armature, Quaternion((1, 0, 0), angle))
        near.append(residuals(armature))
    assert np.abs(np.diff(near, axis=0)).max() < 0.1


def test_the_replay_is_left_alone(empty_scene):
    _, armature, rig = learned_bar(empty_scene)
    before = [np.array([p.co for p in curve.keyframe_points]) for curve in curves(armature)]
    got = frames(empty_scene, range(1, FRAMES + 1), armature)
    np.testing.assert_allclose(got, rig.bone_transforms, atol=1e-5)
    object_notes(armature).secondary_motion = "OFF"
    np.testing.assert_allclose(frames(empty_scene, [7], armature)[0], rig.bone_transforms[6], atol=1e-5)
    after = [np.array([p.co for p in curve.keyframe_points]) for curve in curves(armature)]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert not any(curve.mute for curve in curves(armature)) and not SESSION.known


def test_undo_and_redo(bar):
    armature, _ = bar
    name = armature.name
    turn(armature)
    bpy.ops.ed.undo_push(message="turned")
    first = residuals(armature)
    turn(armature, Quaternion((1, 0, 0), 1.0))
    bpy.ops.ed.undo_push(message="turned again")
    second = residuals(armature)
    assert np.abs(second - first).max() > 0.05
    bpy.ops.ed.undo()
    np.testing.assert_allclose(residuals(bpy.data.objects[name]), first, atol=1e-6)
    bpy.ops.ed.redo()
    np.testing.assert_allclose(residuals(bpy.data.objects[name]), second, atol=1e-6)
    turn(bpy.data.objects[name])
    np.testing.assert_allclose(residuals(bpy.data.objects[name]), first, atol=1e-6)
    healthy()


def test_save_and_open(empty_scene, tmp_path):
    _, armature, rig = learned_bar(empty_scene)
    play_joints(armature)
    empty_scene.frame_set(5)
    path = str(tmp_path / "bar.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    armature = next(object for object in bpy.data.objects if object.type == "ARMATURE")
    got = frames(bpy.context.scene, range(9, 12), armature)
    np.testing.assert_allclose(got, rig.bone_transforms[8:11], atol=1e-4)
    healthy()


def saved(scene, tmp_path):
    _, armature, rig = learned_bar(scene)
    turn(play_joints(armature))
    path = str(tmp_path / "bar.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    return path, rig


def test_appended(empty_scene, tmp_path):
    path, rig = saved(empty_scene, tmp_path)
    with bpy.data.libraries.load(path) as (there, wanted):
        wanted.objects = there.objects
    for object in wanted.objects:
        bpy.context.scene.collection.objects.link(object)
    armature = next(object for object in wanted.objects if object.type == "ARMATURE")
    got = frames(bpy.context.scene, range(9, 12), armature)
    np.testing.assert_allclose(got, rig.bone_transforms[8:11], atol=1e-4)
    healthy()


def test_linked_stands_and_its_override_answers(empty_scene, tmp_path):
    path, rig = saved(empty_scene, tmp_path)
    scene = bpy.context.scene
    with bpy.data.libraries.load(path, link=True) as (there, wanted):
        wanted.objects = [name for name in there.objects if name.endswith("rig")]
    armature = wanted.objects[0]
    scene.collection.objects.link(armature)
    before = residuals(armature)
    scene.frame_set(12)
    np.testing.assert_array_equal(residuals(armature), before)
    override = armature.override_create(remap_local_usages=True)
    got = frames(scene, range(9, 12), override)
    np.testing.assert_allclose(got, rig.bone_transforms[8:11], atol=1e-4)
    healthy()


def test_copies_and_several_rigs(empty_scene):
    _, armature, rig = learned_bar(empty_scene)
    play_joints(armature)
    select(armature)
    bpy.ops.object.duplicate()
    copy = bpy.context.view_layer.objects.active
    assert copy != armature
    _, other, other_rig = learned_bar(empty_scene, seed=3)
    play_joints(other)
    for frame in (5, 12, 20):
        empty_scene.frame_set(frame)
        for each, truth in ((armature, rig), (copy, rig), (other, other_rig)):
            np.testing.assert_allclose(skin_motions(each), truth.bone_transforms[frame - 1], atol=1e-4)
    turn(copy)
    np.testing.assert_allclose(skin_motions(armature), rig.bone_transforms[19], atol=1e-4)
    assert np.abs(skin_motions(copy) - rig.bone_transforms[19]).max() > 0.05
    assert SESSION.known[copy.session_uid].live is not SESSION.known[other.session_uid].live
    healthy()


def test_a_hidden_armature_and_one_that_is_deleted(empty_scene):
    object, armature, rig = learned_bar(empty_scene)
    play_joints(armature)
    armature.hide_set(True)
    empty_scene.frame_set(8)
    np.testing.assert_allclose(skin_motions(armature), rig.bone_transforms[7], atol=1e-4)
    bpy.data.objects.remove(armature)
    empty_scene.frame_set(9)
    healthy()


def test_an_applied_transform_does_not_matter(bar):
    armature, rig = bar
    turn(armature)
    before, coverage = skin_motions(armature), SESSION.known[armature.session_uid].coverage
    posed = joint(armature, 1).rotation_quaternion.copy()
    applied = Matrix.LocRotScale((0.5, -1, 2), Euler((0.4, 0.9, -0.3)), (1.7, 1.7, 1.7))
    turn(armature, Quaternion())
    armature.data.transform(applied)  # what Apply does to an armature
    update()
    joint(armature, 1).rotation_quaternion = posed
    update()
    space = np.array(applied)
    after = np.tile(np.eye(4), (3, 1, 1))
    after[:, :3] = skin_motions(armature)
    np.testing.assert_allclose((np.linalg.inv(space) @ after @ space)[:, :3], before, atol=1e-4)
    np.testing.assert_allclose(SESSION.known[armature.session_uid].coverage, coverage, atol=1e-4)
    healthy()


def test_an_edited_skeleton_pauses_with_one_sentence(bar, capfd):
    armature, _ = bar
    turn(armature)
    bpy.ops.object.mode_set(mode="EDIT")
    armature.data.edit_bones["joint_1"].tail.z += 0.5
    update()  # nothing is answered in Edit Mode
    healthy()
    bpy.ops.object.mode_set(mode="OBJECT")
    for _ in range(3):
        turn(armature, Quaternion((0, 1, 0), 0.2))
        turn(armature, Quaternion((0, 1, 0), 0.3))
    (sentence,) = SESSION.failures.values()
    assert "was edited; refit it" in sentence
    assert capfd.readouterr().err.count("paused") == 1
    bpy.ops.object.mode_set(mode="EDIT")
    armature.data.edit_bones["joint_1"].tail.z -= 0.5
    bpy.ops.object.mode_set(mode="OBJECT")
    assert bpy.ops.gaussianimate.set_secondary_motion(mode="LIVE") == {"FINISHED"}
    update()
    turn(armature)
    healthy()
    assert np.abs(residuals(armature) - RIGID).max() > 0.05


def test_a_failure_is_told_once_and_other_rigs_go_on(empty_scene, monkeypatch, capfd):
    _, armature, _ = learned_bar(empty_scene)
    _, other, _ = learned_bar(empty_scene, seed=3)
    for each in (armature, other):
        pose_anew(each)
        turn(each)
    broken = SESSION.known[armature.session_uid].live

    def fail(*_):
        raise ZeroDivisionError("no way")

    monkeypatch.setattr(broken, "history", fail)
    for angle in (0.1, 0.2, 0.3):
        turn(armature, Quaternion((0, 1, 0), angle))
    assert "ZeroDivisionError: no way" in SESSION.failures[armature.session_uid]
    assert capfd.readouterr().err.count("paused") == 1
    before = residuals(other)
    turn(other, Quaternion((1, 0, 0), 0.4))
    assert np.abs(residuals(other) - before).max() > 0.01 and len(SESSION.failures) == 1


def test_bones_stay_where_they_are_without_the_extension(bar):
    armature, _ = bar
    turn(armature)
    before = residuals(armature)
    assert np.abs(before - RIGID).max() > 0.05
    addon_utils.disable("gaussianimate")
    try:
        turn(armature, Quaternion((1, 0, 0), 1.0))
        np.testing.assert_array_equal(residuals(armature), before)
    finally:
        addon_utils.enable("gaussianimate", default_set=True)
    turn(armature, Quaternion((1, 0, 0), 1.1))
    assert np.abs(residuals(armature) - before).max() > 0.01
