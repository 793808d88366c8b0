"""Refit Skeleton: nothing of the animator's own is lost, whatever mode, failure or transform there was."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Quaternion
from refitting import delete, edit, error, joints, leave, notes, rigged_bar, shown

from gaussianimate.gaussianimate_addon import motion_store, refit_apply
from gaussianimate.gaussianimate_addon.armature import JOINT
from gaussianimate.gaussianimate_addon.deformer import bind_is_stale
from gaussianimate.gaussianimate_addon.job import running
from gaussianimate.gaussianimate_addon.motion_store import kept_rests, load_motion, stored_rig
from gaussianimate.gaussianimate_addon.motion_switch import REPLAY, is_replaying, pose_anew, replay
from gaussianimate.gaussianimate_addon.secondary.live import SESSION
from gaussianimate.gaussianimate_addon.secondary.rig_bones import rig_bones
from gaussianimate.gaussianimate_addon.skeleton_bones import skeleton_is_edited

ops = bpy.ops.gaussianimate


@pytest.fixture
def rigged(empty_scene):
    return rigged_bar()


# What is the animator's own


def test_actions_constraints_shapes_and_rolls_are_kept(rigged):
    object, armature = rigged
    pose_anew(armature)
    walk = armature.animation_data.action
    for name in ("joint_1", "joint_2"):
        bone = armature.pose.bones[name]
        bone.rotation_quaternion = Quaternion((0, 1, 0), 0.5)
        bone.keyframe_insert("rotation_quaternion", frame=3)
    armature.pose.bones["skin_003"].keyframe_insert("location", frame=3)  # as a bake does
    edit(armature, lambda bones: setattr(bones["joint_3"], "roll", 0.7))
    leave()
    shape = bpy.data.objects.new("shape", None)
    tip = armature.pose.bones["joint_3"]
    tip.custom_shape, tip.rotation_mode = shape, "XYZ"
    for target in ("joint_2", "joint_1"):
        copy = tip.constraints.new("COPY_ROTATION")
        copy.target, copy.subtarget, copy.influence, copy.name = armature, target, 0, f"like {target}"
    edit(armature, delete("joint_2"))
    assert ops.refit_skeleton() == {"FINISHED"}
    assert armature.animation_data.action == walk and not is_replaying(armature)
    tip = armature.pose.bones["joint_3"]
    assert tip.custom_shape == shape and tip.rotation_mode == "XYZ" and len(tip.constraints) == 2
    edit(armature, lambda bones: None)
    assert armature.data.edit_bones["joint_3"].roll == pytest.approx(0.7, abs=1e-5)
    leave()
    assert f"Keys of 'joint_2' in action '{walk.name}' play nothing now." in notes(object)
    assert "Constraint 'like joint_2' of 'joint_3' follows 'joint_2', which is gone." in notes(object)
    assert "'joint_1'" not in notes(object)
    assert f"Secondary motion baked in action '{walk.name}' was made for the joints before" in notes(object)
    bpy.context.scene.frame_set(3)
    assert armature.pose.bones["joint_1"].rotation_quaternion.angle == pytest.approx(0.5, abs=1e-5)


def test_the_replay_is_keyed_anew_in_its_own_action(rigged):
    object, armature = rigged
    action, before = armature[REPLAY], shown(object)
    pose_anew(armature)
    edit(armature, delete("joint_2"))
    ops.refit_skeleton()
    assert armature[REPLAY] == action and not is_replaying(armature)
    assert [a.name for a in bpy.data.actions if a.name.endswith("replay")] == ["bar rig replay"]
    replay(armature)
    np.testing.assert_allclose(shown(object), before, atol=1e-4)
    bpy.data.actions.remove(action)
    edit(armature, delete("joint_3"))
    assert ops.refit_skeleton() == {"FINISHED"}
    replay(armature)
    np.testing.assert_allclose(shown(object), before, atol=1e-4)


def test_controls_are_left_alone(rigged):
    object, armature = rigged
    before = shown(object)

    def control(bones):
        for name, parent in (("target", None), ("master", None), ("handle", "joint_0")):
            bone = bones.new(name)
            bone.head, bone.tail = (0, 1, 0), (0, 1, 1)
            bone.parent = bones[parent] if parent else None
        armature.data.collections.new("Controls").assign(bones["handle"])
        armature.data.collections["Controls"].assign(bones["master"])
        bones["joint_0"].parent = bones["master"]

    edit(armature, control)
    assert skeleton_is_edited(armature) is None
    assert ops.refit_skeleton() == {"FINISHED"}
    assert [name for name, _ in joints(armature)] == ["joint_0", "joint_1", "joint_2", "joint_3"]
    assert armature.data.bones["joint_0"].parent.name == "master"
    assert all(JOINT not in armature.data.bones[name] for name in ("target", "master", "handle"))
    np.testing.assert_allclose(shown(object), before, atol=1e-5)


# Applied transforms


def test_after_the_transform_of_the_armature_was_applied(rigged):
    object, armature = rigged
    turn = Matrix.LocRotScale((1, 2, 3), Quaternion((1, 2, 3), 0.8), (2, 2, 2))
    armature.matrix_world = turn
    bpy.context.view_layer.update()
    before = shown(object)
    bpy.ops.object.transform_apply(location=True, rotation=True, scale=True)
    assert skeleton_is_edited(armature) is None
    edit(armature, delete("joint_2"))
    assert "(1 removed)" in skeleton_is_edited(armature)
    assert ops.refit_skeleton() == {"FINISHED"}
    assert bind_is_stale(object) is None and skeleton_is_edited(armature) is None
    np.testing.assert_allclose(shown(object), before, atol=1e-3)
    assert error(object)[1] < 0.01
    rig = stored_rig(object, armature)
    np.testing.assert_allclose(rig.joint_positions, [[0, 0, 0], [1, 0, 0], [3, 0, 0], [4, 0, 0]], atol=1e-4)
    learned, _ = kept_rests(armature)
    np.testing.assert_allclose([learned[j][:3, 3] for j in (0, 1, 2)], rig.joint_positions[:3], atol=1e-4)
    # A pose of the armature reads as the pose it replays.
    bpy.context.scene.frame_set(5)
    posed = armature.evaluated_get(bpy.context.evaluated_depsgraph_get())
    database = load_motion(armature).predictor.database
    pose = rig_bones(armature, database, "").pose(posed)
    alike = np.abs((pose.rotations[0] * database.rotations[4]).sum(axis=-1))
    np.testing.assert_allclose(alike, 1, atol=1e-5)
    np.testing.assert_allclose(pose.root_translations[0], database.root_translations[4], atol=1e-3)


def test_after_the_transform_of_the_splats_was_applied(rigged):
    object, armature = rigged
    object.matrix_basis = Matrix.LocRotScale((0, 0, 1), Quaternion((0, 1, 1), 0.6), (2, 1, 1))
    bpy.context.view_layer.update()
    bpy.context.view_layer.objects.active = object
    moved = shown(object)
    assert ops.apply_transform() == {"FINISHED"}
    np.testing.assert_allclose(shown(object), moved, atol=1e-4)
    edit(armature, delete("joint_2"))
    assert ops.refit_skeleton() == {"FINISHED"}
    np.testing.assert_allclose(shown(object), moved, atol=1e-4)
    assert error(object)[1] < 0.01
    np.testing.assert_allclose(stored_rig(object, armature).joint_positions[2], (3, 0, 0), atol=1e-4)
    edit(armature, delete("joint_3"))
    assert ops.refit_skeleton() == {"FINISHED"}


# Modes, undo, failure


@pytest.mark.parametrize("mode", ["OBJECT", "POSE"])
def test_the_mode_is_as_before(rigged, mode):
    object, armature = rigged
    edit(armature, delete("joint_2"))
    bpy.ops.object.mode_set(mode=mode)
    ops.refit_skeleton()
    assert armature.mode == mode and bpy.context.active_object == armature
    bpy.ops.object.mode_set(mode="EDIT", toggle=True)  # as Tab does
    delete("joint_3")(armature.data.edit_bones)
    assert ops.refit_skeleton() == {"FINISHED"}
    assert armature.mode == mode and len(joints(armature)) == 2


def test_with_the_splats_active_and_the_armature_hidden(rigged):
    object, armature = rigged
    edit(armature, delete("joint_2"))
    leave()
    armature.hide_set(True)
    bpy.context.view_layer.objects.active = object
    assert ops.refit_skeleton() == {"FINISHED"}
    assert armature.hide_get() and bpy.context.active_object == object and len(joints(armature)) == 3


@pytest.mark.parametrize("mode", ["OBJECT", "POSE", "EDIT"])
def test_hidden_in_any_mode(rigged, mode):
    object, armature = rigged
    edit(armature, delete("joint_2"))
    bpy.ops.object.mode_set(mode=mode)
    armature.hide_viewport = True
    assert ops.refit_skeleton() == {"FINISHED"}
    assert armature.hide_viewport and armature.mode == ("POSE" if mode == "POSE" else "OBJECT")
    assert len(joints(armature)) == 3


def told(object, armature):
    rests = {b.name: np.array(b.matrix_local).round(5).tolist() for b in armature.data.bones}
    motion_store.unregister(), motion_store.register()  # nothing is remembered but what is stored
    curves = armature[REPLAY].layers[0].strips[0].channelbags[0].fcurves
    return (
        rests,
        {b.name: (b.parent.name if b.parent else None, dict(b.items())) for b in armature.data.bones},
        load_motion(armature).joint_names,
        sorted({curve.data_path for curve in curves}),
        notes(object),
        (armature.data.name, len(bpy.data.armatures), len(bpy.data.actions), len(bpy.data.texts)),
        skeleton_is_edited(armature),
    )


def test_it_is_one_undo_step(rigged):
    names = [each.name for each in rigged]

    def state():
        return told(*(bpy.data.objects[name] for name in names))

    edit(rigged[1], delete("joint_2"))
    leave()
    before = state()
    bpy.ops.ed.undo_push(message="before")
    assert ops.refit_skeleton("EXEC_DEFAULT", True) == {"FINISHED"}
    after = state()
    assert after != before
    bpy.ops.ed.undo()
    assert state() == before
    bpy.ops.ed.redo()
    assert state() == after


@pytest.mark.parametrize("broken", ["store_motion", "follow_armature", "dress"])
def test_a_failure_leaves_the_rig_as_it_was(rigged, monkeypatch, broken):
    object, armature = rigged
    armature.pose.bones["joint_3"].constraints.new("LIMIT_ROTATION")
    edit(armature, delete("joint_2"))
    leave()
    before, seen = told(object, armature), shown(object)

    def fail(*_):
        raise ValueError("something broke")

    monkeypatch.setattr(refit_apply, broken, fail)
    with pytest.raises(RuntimeError, match="something broke"):
        ops.refit_skeleton()
    assert told(object, armature) == before and running() is None
    assert len(armature.pose.bones["joint_3"].constraints) == 1
    np.testing.assert_allclose(shown(object), seen, atol=1e-6)
    monkeypatch.undo()
    assert ops.refit_skeleton() == {"FINISHED"}


def test_bones_edited_while_it_ran(rigged, monkeypatch):
    object, armature = rigged
    edit(armature, delete("joint_2"))
    leave()
    original = refit_apply.leave_edit_mode

    def meanwhile(armature):
        edit(armature, delete("joint_3"))
        return original(armature)

    monkeypatch.setattr("gaussianimate.gaussianimate_addon.refit_apply.leave_edit_mode", meanwhile)
    with pytest.raises(RuntimeError, match="edited while the refit ran"):
        ops.refit_skeleton()
    monkeypatch.setattr(
        "gaussianimate.gaussianimate_addon.refit_apply.leave_edit_mode", motion_store.forget_motion
    )
    motion = load_motion(armature)
    with pytest.raises(RuntimeError, match="edited while the refit ran"):
        ops.refit_skeleton()
    motion_store.store_motion(armature, motion)
    assert load_motion(armature).joint_names[2] == "joint_2"


# What cannot be


def test_pieces_are_named(rigged):
    object, armature = rigged
    edit(armature, lambda bones: setattr(bones["joint_2"], "parent", None))
    with pytest.raises(RuntimeError, match=r"2 pieces, as 'joint_0', 'joint_2' hang on no joint; .*Ctrl\+P"):
        ops.refit_skeleton()


def test_a_skeleton_without_bones_is_said(rigged):
    object, armature = rigged

    def clear(bones):
        for j in range(4):
            bones.remove(bones[f"joint_{j}"])

    edit(armature, clear)
    with pytest.raises(RuntimeError, match="has no joints left"):
        ops.refit_skeleton()


def test_without_the_capture_the_replay_is_solved(rigged):
    object, armature = rigged
    del object["gaussianimate_frames"]
    edit(armature, delete("joint_2"))
    assert ops.refit_skeleton() == {"FINISHED"}
    assert "The capture's frames are gone" in notes(object) and error(object)[0] > 1


def test_skin_bones_moved_all_over_the_place(rigged):
    object, armature = rigged

    def harm(bones):
        for b in range(1, 5):
            bones[f"skin_00{b}"].head.z += 0.2 * b

    edit(armature, harm)
    with pytest.raises(RuntimeError, match="Many skin bones of 'bar rig' were moved"):
        ops.refit_skeleton()


def test_splats_applied_natively_are_repaired_first(rigged):
    object, armature = rigged
    for point in object.data.points:
        point.co *= 2
    with pytest.raises(RuntimeError, match="repair it to fit again"):
        ops.refit_skeleton()


def test_rigs_that_learned_nothing_say_so(rigged):
    object, armature = rigged
    del armature.data["gaussianimate_motion"]
    assert skeleton_is_edited(armature) is None
    with pytest.raises(RuntimeError, match="has learned no motion"):
        ops.refit_skeleton()


def test_copies_that_share_the_bones_answer_again(rigged):
    object, armature = rigged
    pose_anew(armature)
    copy = armature.copy()
    bpy.context.scene.collection.objects.link(copy)
    bpy.context.view_layer.update()
    edit(armature, delete("joint_2"))
    leave()
    bpy.context.view_layer.update()
    assert {armature.session_uid, copy.session_uid} == SESSION.failures.keys()
    assert ops.refit_skeleton() == {"FINISHED"}
    bpy.context.scene.frame_set(5)
    assert not SESSION.failures and copy.session_uid in SESSION.known
    SESSION.forget()
