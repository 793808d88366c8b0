"""Motion of another armature on a rig: the action, the map, and what can go wrong."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Vector
from retargeting import body, curves, key_turn, make_mixamo, mixamo_name, posed, source_of, t_pose, values
from sources import Y_UP, make_armature

from gaussianimate.gaussianimate_addon.armature import JOINT, SKIN_BONE, indexed_bones
from gaussianimate.gaussianimate_addon.motion_switch import POSE, REPLAY, is_replaying
from gaussianimate.gaussianimate_addon.retarget_map import retarget_settings
from gaussianimate.gaussianimate_addon.retarget_sampling import sample_motion_steps

ops = bpy.ops.gaussianimate


@pytest.fixture
def scene(empty_scene):
    return empty_scene


@pytest.fixture
def mixamo(scene):
    return make_mixamo()


def test_a_copy_moves_as_the_original(scene):
    armature = body("human")
    source = source_of("human")
    assert ops.retarget_action(source="source") == {"FINISHED"}
    bones = [bone.name for bone in indexed_bones(armature, JOINT)]
    pairs = {pair.name: pair.source for pair in retarget_settings(armature).bones}
    assert all(pairs[name] == name for name in bones)
    # The source's own rest pose is another than the rig's: turns are told from that of the first frame on.
    start = posed(armature, 1), posed(source, 1)
    for frame in (3, 7, 12):
        mine, theirs = posed(armature, frame), posed(source, frame)
        for name in bones:
            turns = [p[name][:3, :3] @ q[name][:3, :3].T for p, q in ((mine, start[0]), (theirs, start[1]))]
            assert np.linalg.norm(turns[0] - turns[1]) / np.sqrt(2) < 1e-4  # radians
            np.testing.assert_allclose(mine[name][:3, 3], theirs[name][:3, 3], atol=2e-3)


def test_the_new_action_is_keyed_on_whole_frames_and_played(scene):
    armature = body("human")
    replayed = armature.animation_data.action
    source_of("human").animation_data.action.name = "Dance"
    scene.frame_set(5)
    ops.retarget_action(source="source")
    action = armature.animation_data.action
    assert action.name == "Dance on human rig" and armature[POSE] == action and action.use_fake_user
    assert armature[REPLAY] == replayed and not is_replaying(armature)
    assert (scene.frame_current, len(bpy.data.scenes)) == (5, 1)
    found = curves(armature)
    frames = {tuple(x for x, _ in points) for points in found.values()}
    assert frames == {tuple(range(1, 14))}
    skin = {f'pose.bones["{bone.name}"]' for bone in indexed_bones(armature, SKIN_BONE)}
    assert not any(path.rpartition(".")[0] in skin for path, _ in found)
    assert len({path for path, _ in found if path.endswith("location")}) == 1
    for bone in indexed_bones(armature, JOINT):
        path = f'pose.bones["{bone.name}"].rotation_quaternion'
        turns = np.array([[y for _, y in found[path, index]] for index in range(4)]).T
        np.testing.assert_allclose(np.linalg.norm(turns, axis=1), 1, atol=1e-5)
        assert (turns[1:] * turns[:-1]).sum(axis=1).min() > 0


def test_a_part_of_the_source_is_taken(scene):
    armature = body("human")
    source_of("human")
    assert ops.retarget_action(source="source", frame_start=4, frame_end=6) == {"FINISHED"}
    assert {tuple(x for x, _ in points) for points in curves(armature).values()} == {(4, 5, 6)}


def test_what_the_armature_was_posed_with_is_kept(scene):
    armature = body("human")
    ops.set_motion(motion="POSE")
    own = armature.animation_data.action
    armature.pose.bones["head"].keyframe_insert("rotation_quaternion", frame=1)
    source_of("human")
    ops.retarget_action(source="source")
    first = armature.animation_data.action
    ops.retarget_action(source="source", in_place=True)
    assert {own, first} < set(bpy.data.actions) and own.use_fake_user and first.use_fake_user
    assert first != armature.animation_data.action
    ops.set_motion(motion="REPLAY")
    assert is_replaying(armature)
    ops.set_motion(motion="POSE")
    assert armature.animation_data.action.name.startswith("sourceAction on human rig")


@pytest.mark.parametrize(
    "matrix",
    [
        Matrix.LocRotScale(Vector((3, 1, 2)), Matrix.Rotation(0.8, 3, "Z").to_quaternion(), (1, 1, 1)),
        Matrix.LocRotScale(Vector((0, 0, 5)), Matrix.Rotation(2.0, 3, (1, 2, 3)).to_quaternion(), (2.5,) * 3),
    ],
    ids=["turned about up", "tumbled and scaled"],
)
def test_it_does_not_matter_where_the_source_stands(scene, matrix):
    armature = body("cesium")
    source = source_of("human", frames=4)
    ops.retarget_action(source="source")
    expected = values(armature)
    source.matrix_world = matrix @ Y_UP
    ops.retarget_action(source="source")
    got = values(armature)
    assert got.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(got[key], value, atol=2e-5)


def test_a_source_object_that_moves_itself_carries_the_body_along(scene):
    armature = body("human")
    source = source_of("human", frames=3)
    for frame, x in ((1, 0.0), (3, 2.0)):
        source.location.x = x
        source.keyframe_insert("location", frame=frame)
    ops.retarget_action(source="source")
    for frame in (1, 3):
        gap = posed(armature, frame)["pelvis"][:3, 3] - posed(source, frame)["pelvis"][:3, 3]
        np.testing.assert_allclose(gap, 0, atol=0.01)  # steps scaled by two rest poses' leg lengths


def test_bones_the_user_set_to_euler_angles_stay_so(scene):
    armature = body("human")
    source_of("human", frames=5)
    ops.retarget_action(source="source")
    expected = posed(armature, 4)
    ops.set_motion(motion="POSE")
    modes = {"head": "XYZ", "upperarm_l": "ZYX", "calf_r": "AXIS_ANGLE"}
    for name, mode in modes.items():
        armature.pose.bones[name].rotation_mode = mode
    ops.set_motion(motion="REPLAY")
    ops.retarget_action(source="source")
    assert {name: armature.pose.bones[name].rotation_mode for name in modes} == modes
    got = posed(armature, 4)
    for name, matrix in expected.items():
        np.testing.assert_allclose(got[name], matrix, atol=1e-4)


# The map


def test_the_suggested_map_is_kept_in_the_file_and_survives_renaming(scene, tmp_path):
    armature = body("human")
    source = source_of("human", frames=3)
    assert ops.suggest_bone_map(source="source") == {"FINISHED"}
    before = values_after(armature)
    armature.data.bones["head"].name = "skull"
    source.data.bones["calf_l"].name = "left shin"
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "a.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "a.blend"))
    armature = bpy.data.objects["human rig"]
    bpy.context.view_layer.objects.active = armature
    after = values_after(armature)
    for (path, index), value in before.items():
        np.testing.assert_allclose(after[path.replace('"head"', '"skull"'), index], value, atol=1e-5)
    pairs = {pair.name: pair.source for pair in retarget_settings(armature).bones}
    assert pairs["calf_l"] == "left shin"


def values_after(armature):
    assert ops.retarget_action(source="source") == {"FINISHED"}
    return values(armature)


def test_what_the_user_chooses_is_taken_and_marked(scene):
    armature = body("human")
    source_of("human", frames=3)
    ops.suggest_bone_map(source="source")
    pairs = retarget_settings(armature).bones
    pairs["head"].source = ""
    pairs["neck_01"].source = "upperarm_l"
    assert pairs["neck_01"].confidence == 2.0
    ops.retarget_action()  # the sidebar's source
    turns = []
    for object, name in ((bpy.data.objects["source"], "upperarm_l"), (armature, "neck_01")):
        start, now = posed(object, 1)[name], posed(object, 3)[name]
        turns.append(now[:3, :3] @ start[:3, :3].T)
    np.testing.assert_allclose(turns[0], turns[1], atol=2e-3)
    head, neck = (armature.pose.bones[name].matrix_basis for name in ("head", "neck_01"))
    np.testing.assert_allclose(head, np.eye(4), atol=1e-6)
    assert not np.allclose(neck, np.eye(4), atol=1e-2)


def test_a_map_is_kept_for_sources_with_the_same_bones(scene):
    """Corrected once, it serves a whole folder of motions."""
    armature = body("human")
    source_of("human", frames=2)
    other = source_of("human", frames=3, name="other")
    ops.suggest_bone_map(source="source")
    settings = retarget_settings(armature)
    settings.bones["head"].source = "neck_01"
    ops.retarget_action(source="other")
    assert settings.source == other and settings.bones["head"].source == "neck_01"
    settings.source = bpy.data.objects["source"]
    assert settings.bones["head"].source == "neck_01"
    settings.source = make_armature("still", *t_pose(mixamo_name))
    assert not len(settings.bones)


def test_another_source_gets_a_map_of_its_own(mixamo):
    armature = body("human")
    source_of("human", frames=3)
    ops.suggest_bone_map(source="source")
    ops.retarget_action(source="mixamo")
    settings = retarget_settings(armature)
    assert settings.source == mixamo and settings.bones["head"].source == "mixamorig:Head"


# What can go wrong


def failing(text, **options):
    scenes, actions = len(bpy.data.scenes), len(bpy.data.actions)
    with pytest.raises(RuntimeError, match=text):
        ops.retarget_action(**options)
    assert (len(bpy.data.scenes), len(bpy.data.actions)) == (scenes, actions)


def test_errors_say_what_is_wrong(scene):
    armature = body("human")
    source = make_armature("still", *t_pose(mixamo_name))
    failing("'still' has no action", source="still")
    failing("no armature called 'nobody'", source="nobody")
    failing("No source is chosen")
    failing("'human rig' is the rig itself", source="human rig")
    failing("no armature called 'human'", source="human")  # the splats
    key_turn(source, "mixamorig:Head", "X", 0.5)
    failing("The last frame, 3, comes before the first, 9", source="still", frame_start=9, frame_end=3)
    failing("none of number 2147483647", source="still", frame_start=9, frame_end=2**31 - 1)
    source.scale.y = 0
    failing("'still' is scaled to nothing", source="still")
    source.scale.y = 1
    ops.suggest_bone_map(source="still")
    pairs = retarget_settings(armature).bones
    source.data.bones["mixamorig:Head"].name = "skull"
    pairs["head"].source_head = (9, 9, 9)
    failing("The bone 'mixamorig:Head' that moves 'head' is not in 'still'", source="still")
    for pair in pairs:
        pair.source = ""
    failing("No bone is mapped", source="still")
    empty = bpy.data.objects.new("empty", bpy.data.armatures.new("empty"))
    scene.collection.objects.link(empty)
    with pytest.raises(RuntimeError, match="'empty' has no bones"):
        ops.suggest_bone_map(source="empty")
    hidden = bpy.data.objects.new("hidden", source.data)
    failing("'hidden' is not in this view layer", source=hidden.name)


def test_sources_that_nothing_moves_are_said(scene):
    armature = body()
    source = source_of("human", frames=4)
    action, select = source.animation_data.action, bpy.context.view_layer.objects
    source.animation_data.action_slot = action.slots.new("OBJECT", "other")
    failing("'source' has no slot with keys in 'sourceAction'", source="source")
    source.animation_data.action_slot = action.slots[0]
    source.data.pose_position = "REST"
    failing("'source' stands in its rest position", source="source")
    source.data.pose_position = "POSE"
    select.active = source
    bpy.ops.object.mode_set(mode="EDIT")
    select.active = armature
    failing("'source' stands in its rest position", source="source")
    select.active = source
    bpy.ops.object.mode_set(mode="OBJECT")
    select.active = armature
    track = source.animation_data.nla_tracks.new()
    track.strips.new("walk", 1, action)
    source.animation_data.action, track.mute = None, True
    failing("'source' has no action", source="source")
    source.animation_data.action, source.animation_data.action_slot = action, action.slots[0]
    source.pose.bones[0].location.x = float("nan")
    source.pose.bones[0].keyframe_insert("location", frame=3)
    failing("'source' has no finite pose in frame 3; mend its keys there", source="source", frame_start=3)


def test_a_disabled_source_and_a_target_in_edit_mode(scene):
    armature = body()
    source = source_of("human", frames=4)
    assert ops.retarget_action(source="source") == {"FINISHED"}
    wanted = curves(armature)
    source.hide_viewport = True
    bpy.ops.object.mode_set(mode="EDIT")
    assert ops.retarget_action(source="source") == {"FINISHED"}
    assert source.hide_viewport and armature.mode == "OBJECT" and curves(armature) == wanted


def test_a_baked_rig_answers_the_new_motion_live(empty_scene):
    from answering import learned_bar, play_joints, residuals

    _, armature, _ = learned_bar(empty_scene)
    play_joints(armature)
    ops.bake_partmm(frame_start=1, frame_end=9)
    heads = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0]])
    source = make_armature("source", ["joint_0", "joint_1", "joint_2"], [-1, 0, 1], heads)
    bone = source.pose.bones["joint_1"]
    for frame, angle in ((1, 0), (9, 0.7)):
        bone.rotation_quaternion = Matrix.Rotation(angle, 3, "Z").to_quaternion()
        bone.keyframe_insert("rotation_quaternion", frame=frame)
    assert ops.retarget_action(source="source") == {"FINISHED"}
    assert armature.gaussianimate.secondary_motion == "LIVE"
    empty_scene.frame_set(8)
    assert np.abs(residuals(armature)[:, :3]).max() > 0.01


def test_a_rig_linked_from_another_file_is_refused(scene, tmp_path):
    body("human")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "rig.blend"))
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    with bpy.data.libraries.load(str(tmp_path / "rig.blend"), link=True) as (there, here):
        here.objects = there.objects
    for object in here.objects:
        if object is not None and object.name in ("human", "human rig"):
            bpy.context.scene.collection.objects.link(object)
    bpy.context.view_layer.objects.active = bpy.data.objects["human rig"]
    with pytest.raises(RuntimeError, match="linked from another file"):
        ops.retarget_action(source="anything")


def test_without_a_rig_the_button_says_why(scene):
    assert not ops.retarget_action.poll() and not ops.suggest_bone_map.poll()


def test_an_interrupted_sampling_leaves_nothing_behind(scene):
    source = source_of("human", frames=5)
    scene.frame_set(3)
    steps = sample_motion_steps(bpy.context, source, ["pelvis", "head"], 1, 5)
    next(steps)
    next(steps)
    assert len(bpy.data.scenes) == 2 and scene.frame_current == 3
    steps.close()
    assert len(bpy.data.scenes) == 1 and source.name in scene.objects
