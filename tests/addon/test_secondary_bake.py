"""Baked secondary motion: keys that play anywhere; the switch between live, baked and off; renders."""

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
    skin_curves,
    skin_motions,
)
from mathutils import Quaternion

from gaussianimate.gaussianimate_addon.armature import JOINT, SKIN_BONE
from gaussianimate.gaussianimate_addon.motion_store import forget_motion
from gaussianimate.gaussianimate_addon.motion_switch import REPLAY, pose_anew
from gaussianimate.gaussianimate_addon.properties import object_notes
from gaussianimate.gaussianimate_addon.secondary.bake import query_steps
from gaussianimate.gaussianimate_addon.secondary.bone_colours import coverage_colours
from gaussianimate.gaussianimate_addon.secondary.live import SESSION
from gaussianimate.gaussianimate_addon.subject import find_object

ops = bpy.ops.gaussianimate
RIGID = np.tile([0.0, 0, 0, 1, 0, 0, 0], (3, 1))


@pytest.fixture
def bar(empty_scene):
    """Armature and rig, playing the captured joints."""
    _, armature, rig = learned_bar(empty_scene)
    yield play_joints(armature), rig
    SESSION.forget()


def keys(armature):
    return {(c.data_path, c.array_index): [tuple(p.co) for p in c.keyframe_points] for c in curves(armature)}


@pytest.mark.parametrize("method", ["AUTO", "MATCH", "FULL", "KERNEL"])
def test_a_bake_gives_the_capture_back(bar, method):
    armature, rig = bar
    assert ops.bake_partmm(frame_start=1, frame_end=FRAMES, method=method) == {"FINISHED"}
    assert object_notes(armature).secondary_motion == "BAKED" and len(skin_curves(armature)) == 21
    SESSION.paused = True  # as where the extension is not installed
    try:
        got = frames(bpy.context.scene, range(1, FRAMES + 1), armature)
    finally:
        SESSION.paused = False
    size = np.linalg.norm(np.ptp(rig.rest, axis=0))
    error = np.sqrt(((got - rig.bone_transforms) ** 2).mean()) / size
    assert error < (1e-3 if method != "KERNEL" else 0.05)
    assert {p.interpolation for c in skin_curves(armature) for p in c.keyframe_points} == {"LINEAR"}


def test_only_the_range_is_replaced(bar):
    armature, _ = bar
    ops.bake_partmm(frame_start=1, frame_end=FRAMES)
    curve = skin_curves(armature)[0]
    curve.keyframe_points[2].interpolation = "BEZIER"
    curve.keyframe_points.insert(10.5, 7.0)
    before = keys(armature)
    joint(armature, 2).rotation_quaternion = Quaternion((0, 1, 0), 0.4)
    joint(armature, 2).keyframe_insert("rotation_quaternion", frame=12)
    assert ops.bake_partmm(frame_start=8, frame_end=14) == {"FINISHED"}
    after = keys(armature)
    changed = 0
    for key, points in before.items():
        if SKIN_BONE not in armature.data.bones[key[0].split('"')[1]]:
            continue
        assert [p[0] for p in after[key]] == list(range(1, FRAMES + 1))
        outside = [p for p in points if not 8 <= p[0] <= 14]
        assert outside == [p for p in after[key] if not 8 <= p[0] <= 14]
        changed += outside != points and [p for p in points if p[0] == 12] != [after[key][11]]
    assert changed > 3
    curve = skin_curves(armature)[0]
    assert [p.interpolation for p in curve.keyframe_points][:4] == ["LINEAR", "LINEAR", "BEZIER", "LINEAR"]


def test_a_bake_of_the_scene_s_range_without_an_action(empty_scene):
    _, armature, _ = learned_bar(empty_scene)
    pose_anew(armature)
    armature.animation_data.action = None
    joint(armature, 1).rotation_quaternion = Quaternion((1, 0, 0), 0.3)
    bpy.context.view_layer.update()
    live = residuals(armature)
    empty_scene.frame_start, empty_scene.frame_end = 3, 5
    assert ops.bake_partmm() == {"FINISHED"}
    assert [point[0] for point in next(iter(keys(armature).values()))] == [3, 4, 5]
    assert armature.animation_data.action == armature["gaussianimate_pose"]
    bpy.context.scene.frame_set(4)
    np.testing.assert_allclose(residuals(armature), live, atol=0.1)


def test_a_bake_of_what_constraints_move(empty_scene):
    _, source, rig = learned_bar(empty_scene)
    play_joints(source)
    follower = source.copy()
    follower.data = source.data.copy()
    follower.animation_data_clear()
    empty_scene.collection.objects.link(follower)
    _, splats_armature, _ = learned_bar(empty_scene, seed=3)
    modifier = splats_armature.children[0].modifiers["Deform"]
    from gaussianimate.gaussianimate_addon.modifiers import set_input

    set_input(modifier, "Armature", follower)
    for bone in follower.pose.bones:
        if "gaussianimate_joint" in bone.bone:
            constraint = bone.constraints.new("COPY_TRANSFORMS")
            constraint.target, constraint.subtarget = source, bone.name
    select(follower)
    empty_scene.frame_set(17)
    assert ops.bake_partmm(frame_start=5, frame_end=FRAMES - 4) == {"FINISHED"}
    assert empty_scene.frame_current == 17 and modifier.show_viewport and not SESSION.paused
    got = frames(empty_scene, range(5, FRAMES - 3), follower)
    np.testing.assert_allclose(got, rig.bone_transforms[4 : FRAMES - 4], atol=1e-3)


def test_what_cannot_be_baked_is_said(bar):
    armature, _ = bar
    with pytest.raises(RuntimeError, match="The last frame, 3, comes before the first, 9"):
        ops.bake_partmm(frame_start=9, frame_end=3)
    with pytest.raises(RuntimeError, match="and none of number 1048575"):
        ops.bake_partmm(frame_start=1048570, frame_end=1048575)
    with pytest.raises(RuntimeError, match="has no baked secondary motion; bake it first"):
        ops.set_secondary_motion(mode="BAKED")
    assert object_notes(armature).secondary_motion == "LIVE"
    ops.set_motion(motion="REPLAY")
    with pytest.raises(RuntimeError, match="press Pose Anew to bake"):
        ops.bake_partmm(frame_start=1, frame_end=3)
    ops.set_motion(motion="POSE")
    forget_motion(armature)
    for operator in (ops.bake_partmm, ops.set_secondary_motion):
        with pytest.raises(RuntimeError, match="has learned no motion yet; build it again"):
            operator()
    healthy()


def test_a_scene_of_absurd_rate_is_said_and_no_keys_mean_no_frames_around(bar):
    armature, _ = bar
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base = 32767, 1e-5
    with pytest.raises(RuntimeError, match="runs at 3.27.* frames a second, the capture at 24; lower"):
        ops.bake_partmm(frame_start=1, frame_end=2)
    scene.render.fps, scene.render.fps_base = 4000, 1
    armature.animation_data_clear()
    steps = query_steps(bpy.context, armature, 1, 2, "AUTO")
    assert [stage for stage, _ in steps] == ["Reading poses"] * 2
    assert ops.bake_partmm(frame_start=1, frame_end=2) == {"FINISHED"}
    healthy()


def test_a_rig_that_nothing_poses_is_said(bar):
    armature, _ = bar
    target = bpy.data.objects.new("target", None)
    joint(armature, 1).constraints.new("COPY_ROTATION").target = target
    bpy.ops.object.mode_set(mode="POSE")
    armature.data.pose_position = "REST"
    with pytest.raises(RuntimeError, match="stands in its rest position; leave Edit Mode and choose Pose"):
        ops.bake_partmm(frame_start=1, frame_end=2)
    armature.data.pose_position = "POSE"
    others = [child for child in armature.children if child.type == "POINTCLOUD"]
    for each in (armature, *others):
        each.hide_viewport = True
    with pytest.raises(RuntimeError, match="is disabled in viewports, so nothing poses it; enable it"):
        ops.bake_partmm(frame_start=1, frame_end=2)
    others[0].hide_viewport = False  # posed for the sake of what it deforms
    assert ops.bake_partmm(frame_start=1, frame_end=2) == {"FINISHED"}


def test_a_bake_into_a_linked_action_stays_in_this_file(bar, tmp_path):
    armature, rig = bar
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "lib.blend"), copy=True)
    name = armature.animation_data.action.name
    bpy.data.actions.remove(armature.animation_data.action)
    with bpy.data.libraries.load(str(tmp_path / "lib.blend"), link=True) as (_, wanted):
        wanted.actions = [name]
    linked = armature.animation_data_create().action = wanted.actions[0]
    armature.animation_data.action_slot = linked.slots[0]
    assert ops.bake_partmm(frame_start=1, frame_end=FRAMES) == {"FINISHED"}
    assert armature.animation_data.action.library is None
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "here.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "here.blend"))
    armature = next(object for object in bpy.data.objects if object.type == "ARMATURE")
    got = frames(bpy.context.scene, range(1, FRAMES + 1), armature)
    np.testing.assert_allclose(got, rig.bone_transforms, atol=2e-3)
    assert object_notes(armature).secondary_motion == "BAKED" and len(skin_curves(armature)) == 21


@pytest.mark.parametrize("change", ["replay", "bones", "motion"])
def test_a_rig_that_changes_while_a_bake_runs_gets_no_keys(bar, monkeypatch, change):
    armature, _ = bar
    captured = armature[REPLAY]
    before = {(c.data_path, c.array_index, len(c.keyframe_points)) for c in _curves_of(captured)}

    def meanwhile(*_):
        if change == "replay":
            ops.set_motion(motion="REPLAY")
        elif change == "motion":
            forget_motion(armature)
        else:
            bpy.ops.object.mode_set(mode="EDIT")
            bones = armature.data.edit_bones
            bones.remove(next(bone for bone in bones if SKIN_BONE in bone))
            bpy.ops.object.mode_set(mode="OBJECT")
        return find_object(*_)

    monkeypatch.setattr("gaussianimate.operators.bake_partmm.find_object", meanwhile)
    with pytest.raises(RuntimeError, match="result was dropped; bake again"):
        ops.bake_partmm(frame_start=3, frame_end=5)
    assert {(c.data_path, c.array_index, len(c.keyframe_points)) for c in _curves_of(captured)} == before
    assert object_notes(armature).secondary_motion == "LIVE"


def _curves_of(action):
    return action.layers[0].strips[0].channelbags[0].fcurves


def test_lost_skin_bones_are_said(bar):
    armature, _ = bar
    bpy.ops.object.mode_set(mode="EDIT")
    for bone in list(armature.data.edit_bones):
        if SKIN_BONE in bone:
            armature.data.edit_bones.remove(bone)
    bpy.ops.object.mode_set(mode="OBJECT")
    with pytest.raises(RuntimeError, match="lost all its skin bones; undo that"):
        ops.bake_partmm(frame_start=1, frame_end=2)
    assert "lost all its skin bones" in SESSION.failures[armature.session_uid]


def test_the_switch_keeps_the_bake(bar):
    armature, rig = bar
    scene = bpy.context.scene
    scene.frame_set(9)
    ops.bake_partmm(frame_start=1, frame_end=FRAMES)
    before = keys(armature)
    for mode in ("OFF", "LIVE", "BAKED", "OFF", "BAKED", "LIVE"):
        assert ops.set_secondary_motion(mode=mode) == {"FINISHED"}
        assert {curve.mute for curve in skin_curves(armature)} == {mode != "BAKED"}
        assert keys(armature) == before
        for frame in (9, 12):
            bpy.context.view_layer.update()
            if mode == "OFF":
                np.testing.assert_allclose(residuals(armature), RIGID, atol=1e-6)
            else:
                truth = rig.bone_transforms[scene.frame_current - 1]
                np.testing.assert_allclose(skin_motions(armature), truth, atol=1e-3)
            scene.frame_set(frame + 3 if frame == 9 else 9)
    healthy()


def test_a_pose_without_keys_outlives_the_switch(empty_scene):
    _, armature, _ = learned_bar(empty_scene)
    pose_anew(armature)
    joint(armature, 1).rotation_quaternion = Quaternion((1, 0, 0), 0.3)
    bpy.context.view_layer.update()
    live = residuals(armature)
    for mode in ("OFF", "LIVE"):
        ops.set_secondary_motion(mode=mode)
        bpy.context.view_layer.update()
        assert joint(armature, 1).rotation_quaternion.angle > 0.29
    np.testing.assert_allclose(residuals(armature), live, atol=1e-6)


def test_an_action_with_a_bake_is_muted_when_it_is_played_live(bar):
    armature, _ = bar
    own = armature.animation_data.action
    ops.bake_partmm(frame_start=1, frame_end=FRAMES)
    baked = own.copy()
    ops.set_secondary_motion(mode="LIVE")
    armature.animation_data.action = baked
    armature.animation_data.action_slot = baked.slots[0]
    bpy.context.scene.frame_set(7)
    assert all(curve.mute for curve in skin_curves(armature))


def test_a_bake_is_one_undo_step(bar):
    armature, _ = bar
    name, before = armature.name, keys(armature)
    bpy.ops.ed.undo_push(message="before")
    ops.bake_partmm("EXEC_DEFAULT", True, frame_start=1, frame_end=FRAMES)
    bpy.ops.ed.undo()
    armature = bpy.data.objects[name]
    assert keys(armature) == before and object_notes(armature).secondary_motion == "LIVE"
    bpy.ops.ed.redo()
    assert len(skin_curves(bpy.data.objects[name])) == 21


def test_colours_of_bones_follow_the_pose_and_are_given_back(empty_scene):
    _, armature, _ = learned_bar(empty_scene)
    pose_anew(armature)
    bones = [joint(armature, index) for index in range(3)]
    bones[0].color.palette = "THEME01"
    bones[2].color.palette = "CUSTOM"
    bones[2].color.custom.normal = (0.1, 0.2, 0.3)
    for mode in ("LIVE", "OFF"):
        ops.set_secondary_motion(mode=mode)
        object_notes(armature).colour_bones = True
        bpy.context.view_layer.update()
        assert bones[1].color.palette == "CUSTOM" and bones[1].color.custom.normal.g > 0.6
        bones[1].rotation_quaternion = Quaternion((0, 1, 0), 2.5)
        bpy.context.view_layer.update()
        red = bones[1].color.custom.normal
        assert red.r > 0.8 and red.g < 0.2
        bones[1].rotation_quaternion = Quaternion()
        object_notes(armature).colour_bones = False
        assert [bone.color.palette for bone in bones] == ["THEME01", "DEFAULT", "CUSTOM"]
        np.testing.assert_allclose(bones[2].color.custom.normal, (0.1, 0.2, 0.3), atol=5e-3)
        bpy.context.view_layer.update()


def test_colours_are_given_back_to_bones_that_were_renamed_or_added(bar):
    armature, _ = bar
    bone = joint(armature, 1)
    bone.color.palette = "THEME03"
    object_notes(armature).colour_bones = True
    bpy.context.view_layer.update()
    assert bone.color.palette == "CUSTOM"
    bone.bone.name = "elbow"
    bpy.ops.object.mode_set(mode="EDIT")
    for name in ("tip", "copy"):
        added = armature.data.edit_bones.new(name)
        added.head, added.tail = (3, 0, 0), (4, 0, 0)
        added[JOINT] = 2
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.scene.frame_set(9)
    object_notes(armature).colour_bones = False
    assert {b.name: b.color.palette for b in armature.pose.bones if JOINT in b.bone} == {
        "joint_0": "DEFAULT",
        "elbow": "THEME03",
        "joint_2": "DEFAULT",
        "tip": "DEFAULT",
        "copy": "DEFAULT",
    }


def test_colours_go_from_green_over_amber_to_red():
    green, amber, red = coverage_colours(np.radians([0.0, 25, 60]))
    assert green[1] > 2 * green[0] and red[0] > 5 * red[1]
    assert amber[0] > amber[1] > 3 * amber[2]


class Engine(bpy.types.RenderEngine):
    """Renders nothing, but notes how skin bones stand in what it is given to render."""

    bl_idname = "TEST_SECONDARY"
    bl_label = "Test"
    seen: list = []

    def render(self, depsgraph):
        armature = next(o for o in depsgraph.scene.objects if o.type == "ARMATURE")
        self.seen.append(skin_motions(armature, depsgraph))


@pytest.fixture
def engine(bar):
    bpy.utils.register_class(Engine)
    scene = bpy.context.scene
    camera = bpy.data.objects.new("camera", bpy.data.cameras.new("camera"))
    scene.collection.objects.link(camera)
    scene.camera, scene.render.engine = camera, "TEST_SECONDARY"
    scene.render.resolution_x = scene.render.resolution_y = 16
    Engine.seen.clear()
    yield Engine.seen
    scene.render.engine = "BLENDER_WORKBENCH"
    bpy.utils.unregister_class(Engine)


def test_renders_show_what_viewports_show(bar, engine, tmp_path):
    armature, rig = bar
    scene = bpy.context.scene
    for curve in curves(armature):  # nothing captured
        if "joint_2" in curve.data_path and curve.array_index:
            for point in curve.keyframe_points:
                point.co[1] *= 0.6
            curve.update()
    shown = frames(scene, (8, 9, 10), armature)
    assert np.abs(shown - rig.bone_transforms[7:10]).max() > 0.01
    scene.frame_set(1)
    scene.frame_start, scene.frame_end, scene.render.filepath = 8, 10, str(tmp_path / "frame_")
    bpy.ops.render.render(animation=True)
    np.testing.assert_array_equal(engine, shown)
    engine.clear()
    for frame in (9, 8):
        scene.frame_set(frame)
        bpy.ops.render.render()
    np.testing.assert_array_equal(engine, shown[[1, 0]])
    engine.clear()
    ops.bake_partmm(frame_start=1, frame_end=FRAMES)
    baked = frames(scene, (8, 9, 10), armature)
    assert np.abs(baked - shown).max() < 0.1  # a bake sees what comes too
    bpy.ops.render.render(animation=True)
    np.testing.assert_array_equal(engine, baked)
    healthy()
