"""Add Capture: further captures refine a rig in place, and nothing of the user's own is lost."""

from dataclasses import replace

import bpy
import numpy as np
import pytest
from drawn_panels import draw, said
from rigs import make_capture, make_cloud, make_rig, make_skin_of

from gaussianimate.core.formats.mesh_splats import mesh_samples, mesh_to_splats
from gaussianimate.core.motion.learned import learn_motion
from gaussianimate.core.rigging.posing import joint_motions
from gaussianimate.core.rotations import axis_angle_to_quaternion
from gaussianimate.gaussianimate_addon.armature import JOINT, SKIN_BONE, indexed_bones
from gaussianimate.gaussianimate_addon.attributes import read_attribute
from gaussianimate.gaussianimate_addon.capture_frames import frames_object
from gaussianimate.gaussianimate_addon.capture_object import capture_from_point_cloud, create_capture_object
from gaussianimate.gaussianimate_addon.deformer import bind_is_stale
from gaussianimate.gaussianimate_addon.motion_store import load_motion, stored_rig
from gaussianimate.gaussianimate_addon.motion_switch import REPLAY, is_replaying, pose_anew
from gaussianimate.gaussianimate_addon.properties import object_notes
from gaussianimate.gaussianimate_addon.rig_object import apply_rig, show_playback
from gaussianimate.gaussianimate_addon.skeleton_bones import skeleton_is_edited
from gaussianimate.gaussianimate_addon.skeleton_store import load_samples, store_samples

ops = bpy.ops.gaussianimate
FRAMES = 10


def true_rig(reach, stiff=(), count=400, joints=4):
    """A bar of parts that only turn, as far as ``reach`` radians; joints ``stiff`` do not. Ends count too."""
    cloud = make_cloud(count, joints=joints, degree=0)
    rig = make_rig(cloud, joints=joints, frames=FRAMES)
    angles = reach * np.sin(np.linspace(0, 3, FRAMES))[:, None] * np.array([0.2, 1, -1, 1])
    angles[:, list(stiff)] = 0
    turns = axis_angle_to_quaternion(np.broadcast_to([0.0, 1, 0], (FRAMES, joints, 3)), angles)
    still = np.tile([1.0, 0, 0, 0], (FRAMES, 1, 1))
    rig = replace(
        rig,
        joint_names=(*rig.joint_names, "end"),
        joint_parents=np.arange(-1, joints).astype(np.int32),
        joint_positions=np.concatenate([rig.joint_positions, [[joints, 0, 0]]]),
        joint_rotations=np.concatenate([turns, still], axis=1),
        root_translations=np.zeros((FRAMES, 3)),
    )
    rig.bone_transforms[:] = joint_motions(rig)[:, rig.bone_joints]
    return cloud, rig


def two_bones(rig):
    """The rig without its last joint: the last two parts are one bone."""
    weights = np.zeros((len(rig.rest), 4))
    np.put_along_axis(weights, rig.indices.astype(int), rig.weights, axis=1)
    weights = np.column_stack([weights[:, :2], weights[:, 2:].sum(axis=1)])
    order = np.argsort(-weights, axis=1)
    return replace(
        rig,
        indices=order.astype(np.int32),
        weights=np.take_along_axis(weights, order, axis=1).astype(np.float32),
        bone_transforms=rig.bone_transforms[:, :3].copy(),
        bone_joints=np.arange(3, dtype=np.int32),
        joint_names=(*rig.joint_names[:3], "end"),
        joint_parents=np.arange(-1, 3).astype(np.int32),
        joint_positions=rig.joint_positions[[0, 1, 2, 4]],
        joint_rotations=rig.joint_rotations[:, [0, 1, 2, 4]],
    )


def add_object(cloud, rig, name):
    capture = replace(make_capture(cloud, rig), name=name)
    return create_capture_object(bpy.context, capture, capture.load_cloud(0), "z")


@pytest.fixture
def scene(empty_scene):
    """A rigged bar whose last joint was stiff, and a second capture that bends it."""
    cloud, rig = true_rig(0.6, stiff=(3,))
    rig = two_bones(rig)
    object = add_object(cloud, rig, "bar")
    armature = apply_rig(bpy.context, object, rig, make_skin_of(rig), learn_motion(rig))
    armature[REPLAY] = armature.animation_data.action
    other = add_object(*true_rig(0.9), "more")
    bpy.context.view_layer.objects.active = armature
    armature.select_set(True)
    return object, armature, other


def evaluated(object):
    graph = bpy.context.evaluated_depsgraph_get()
    return read_attribute(object.evaluated_get(graph).data, "position")


def error(object, capture, frames):
    """Largest distance of the splats shown from the captured ones, over some frames, of the size."""
    scene, size = bpy.context.scene, np.linalg.norm(np.ptp(capture.positions[0], axis=0))
    worst = 0.0
    for frame in frames:
        scene.frame_set(scene.frame_start + frame)
        worst = max(worst, np.abs(evaluated(object) - capture.positions[frame]).max() / size)
    return worst


def rests(armature):
    return {bone.name: np.array(bone.matrix_local) for bone in armature.data.bones}


def test_the_rig_is_refined_and_replays_both_captures(scene):
    object, armature, other = scene
    assert ops.add_capture(source=other.name, max_bones=6) == {"FINISHED"}
    capture = capture_from_point_cloud(object)
    assert capture.frame_count == 2 * FRAMES
    assert capture.clip_names == ("bar", "more")
    np.testing.assert_array_equal(capture.clips, np.repeat([0, 1], FRAMES))
    np.testing.assert_allclose(
        capture.positions[FRAMES:], capture_from_point_cloud(other).positions, atol=1e-6
    )
    assert bpy.context.scene.frame_end >= 2 * FRAMES
    assert is_replaying(armature) and error(object, capture, range(0, 2 * FRAMES, 3)) < 0.02
    assert len(indexed_bones(armature, JOINT)) == 4
    assert bind_is_stale(object) is None and skeleton_is_edited(armature) is None
    motion = load_motion(armature)
    assert motion.predictor.database.clip_count == 2 and len(motion.frames) == 2 * FRAMES
    assert stored_rig(object, armature).frame_count == 2 * FRAMES
    assert other.hide_render and not object.hide_render
    summary, *lines = object_notes(object).rig_notes.splitlines()
    assert "3 to 4 joints" in summary and any("degrees" in line for line in lines)


def test_what_is_the_users_own_stays(scene):
    object, armature, other = scene
    armature.data.bones["joint_1"].name = "elbow"
    shape = bpy.data.objects.new("shape", None)
    armature.pose.bones["elbow"].custom_shape = shape
    constraint = armature.pose.bones["joint_2"].constraints.new("LIMIT_ROTATION").name
    pose_anew(armature)
    bone = armature.pose.bones["elbow"]
    bone.rotation_quaternion = (0.9, 0.1, 0.3, 0.2)
    bone.keyframe_insert("rotation_quaternion", frame=3)
    mine, before, own = armature.animation_data.action, rests(armature), armature.data.name
    assert ops.add_capture(source=other.name, max_bones=6) == {"FINISHED"}
    after = rests(armature)
    assert set(before) <= set(after)
    for name, rest in before.items():
        np.testing.assert_allclose(after[name], rest, atol=1e-6, err_msg=name)
    assert armature.animation_data.action == mine and armature.data.name == own
    assert armature.pose.bones["elbow"].custom_shape == shape
    assert constraint in armature.pose.bones["joint_2"].constraints
    new = next(bone for bone in indexed_bones(armature, JOINT) if bone.name not in before)
    assert new.parent.name == "joint_2" and armature.pose.bones[new.name].rotation_mode == "QUATERNION"
    assert new.collections[0].name == "Skeleton"
    skin = indexed_bones(armature, SKIN_BONE)
    assert [bone[SKIN_BONE] for bone in skin] == list(range(len(skin)))


def test_the_panel_offers_files_or_the_selected_capture_and_says_what_it_bought(scene):
    _, _, other = scene
    other.select_set(False)
    assert draw("rig").buttons["Add Capture"].source == ""
    other.select_set(True)
    button = draw("rig").buttons[f"Add '{other.name}'"]
    assert button.source == other.name
    ops.add_capture(source=button.source, max_bones=6)
    assert "3 to 4 joints" in said("rig") and "by the skeleton alone" in said("rig")


def test_a_second_addition_goes_on_from_the_first(scene):
    object, armature, other = scene
    third = add_object(*true_rig(0.5), "third")
    bpy.context.view_layer.objects.active = armature
    assert ops.add_capture(source=other.name, max_bones=6) == {"FINISHED"}
    joints = [bone.name for bone in indexed_bones(armature, JOINT)]
    assert ops.add_capture(source=third.name, max_bones=6) == {"FINISHED"}
    assert [bone.name for bone in indexed_bones(armature, JOINT)] == joints
    capture = capture_from_point_cloud(object)
    assert capture.frame_count == 3 * FRAMES and load_motion(armature).predictor.database.clip_count == 3
    assert error(object, capture, range(1, 3 * FRAMES, 7)) < 0.02
    assert "nothing new" in object_notes(object).rig_notes


def test_looks_that_vary_in_one_capture_only_play_in_both(scene):
    object, _, other = scene
    holder = frames_object(other)
    cloud_count = len(object.data.points)
    shades = np.random.default_rng(1).uniform(0, 1, (FRAMES * cloud_count, 4)).astype(np.float32)
    attribute = holder.data.attributes.get("radiance:base") or holder.data.attributes.new(
        "radiance:base", "FLOAT4", "POINT"
    )
    attribute.data.foreach_set("vector", shades.ravel())
    base = read_attribute(object.data, "radiance:base")
    ops.add_capture(source=other.name, max_bones=6)
    capture = capture_from_point_cloud(object)
    np.testing.assert_allclose(capture.load_cloud(2).opacities, base[:, 3], atol=1e-6)
    np.testing.assert_allclose(
        capture.load_cloud(FRAMES + 2).opacities,
        shades.reshape(FRAMES, -1, 4)[2, :, 3],
        atol=1e-6,
    )
    show_playback(object, True)
    object.modifiers["Deform"].show_viewport = False
    scene = bpy.context.scene
    scene.frame_set(scene.frame_start + FRAMES + 2)
    graph = bpy.context.evaluated_depsgraph_get()
    played = read_attribute(object.evaluated_get(graph).data, "radiance:base")
    np.testing.assert_allclose(played[:, 3], shades.reshape(FRAMES, -1, 4)[2, :, 3], atol=1e-5)


def test_what_does_not_fit_is_refused_in_one_sentence(scene):
    object, armature, other = scene
    before = rests(armature)
    few = add_object(*true_rig(0.9, count=300), "few")
    shuffled = add_object(*true_rig(0.9), "shuffled")
    holder = frames_object(shuffled).data
    points = read_attribute(holder, "position").reshape(FRAMES, -1, 3)
    mixed = points[:, np.random.default_rng(0).permutation(points.shape[1])]
    holder.attributes["position"].data.foreach_set("vector", mixed.ravel())
    bpy.context.view_layer.objects.active = armature
    for source, message in {
        few.name: "300 points",
        shuffled.name: "same order",
        object.name: "what the rig was built from",
        "nobody": "no capture object",
    }.items():
        with pytest.raises(RuntimeError, match=message):
            ops.add_capture(source=source)
    with pytest.raises(RuntimeError, match="nowhere"):
        ops.add_capture(filepath="/nowhere/at_all.npz")
    bpy.ops.object.mode_set(mode="EDIT")
    armature.data.edit_bones["joint_2"].head.x += 0.3
    bpy.ops.object.mode_set(mode="OBJECT")
    with pytest.raises(RuntimeError, match="refit the skeleton"):
        ops.add_capture(source=other.name)
    assert set(rests(armature)) == set(before)


def test_a_failure_on_the_way_leaves_all_as_it_was(scene, monkeypatch):
    object, armature, other = scene

    def fail(*_, **__):
        raise ValueError("on purpose")

    before, data = rests(armature), len(bpy.data.pointclouds)
    weights, held = read_attribute(object.data, "skin:weight_0"), frames_object(object)
    monkeypatch.setattr("gaussianimate.gaussianimate_addon.refined_apply.add_deformer", fail)
    with pytest.raises(RuntimeError, match="on purpose"):
        ops.add_capture(source=other.name, max_bones=6)
    after = rests(armature)
    assert set(after) == set(before) and len(bpy.data.pointclouds) == data
    np.testing.assert_array_equal(read_attribute(object.data, "skin:weight_0"), weights)
    assert frames_object(object) == held and bind_is_stale(object) is None
    assert capture_from_point_cloud(object).frame_count == FRAMES
    assert error(object, capture_from_point_cloud(object), (0, 5)) < 1e-3


def test_a_mesh_is_sampled_where_its_splats_were(empty_scene):
    from gaussianimate.core.capture import Capture

    rng = np.random.default_rng(0)
    vertices = rng.normal(size=(2, 30, 3)).astype(np.float32)
    faces = rng.permuted(np.tile(np.arange(30), (40, 1)), axis=1)[:, :3].astype(np.int32)
    first = mesh_to_splats(Capture("a", vertices[:1], np.ones(1, bool), faces=faces), 200)
    samples = mesh_samples(first)
    holder = bpy.data.objects.new("holder", None)
    store_samples(holder, samples)
    kept = load_samples(holder)
    second = Capture("b", vertices[1:], np.ones(1, bool), faces=faces)
    follow = mesh_to_splats(second, 1, samples=kept)
    corners = vertices[1][faces[samples.triangle]]
    expected = np.einsum("kc,kcd->kd", samples.barycentric, corners)
    np.testing.assert_allclose(follow.positions[0], expected, atol=1e-6)
    assert np.abs(follow.positions[0] - mesh_to_splats(second, 200).positions[0]).max() > 0.1
    with pytest.raises(Exception, match="same mesh"):
        mesh_to_splats(replace(second, faces=faces[:-1]), 1, samples=kept)


@pytest.mark.parametrize("degrees", [(1, 0), (0, 2)])
def test_captures_of_other_bands_of_colour(empty_scene, degrees):
    (cloud, rig), (more, moved) = true_rig(0.6), true_rig(0.9)
    captures = []
    for name, degree, each, posed in (("bar", degrees[0], cloud, rig), ("more", degrees[1], more, moved)):
        colours = make_cloud(len(each.positions), joints=4, degree=degree).sh
        captures.append(add_object(replace(each, sh=colours), posed, name))
    object, other = captures
    apply_rig(bpy.context, object, rig, make_skin_of(rig), learn_motion(rig))
    bpy.context.view_layer.objects.active = object
    assert ops.add_capture(source=other.name) == {"FINISHED"}
    first, added = (capture_from_point_cloud(object).load_cloud(f).sh for f in (2, FRAMES + 2))
    assert first.shape == added.shape == (len(cloud.positions), (degrees[0] + 1) ** 2, 3)
    assert np.abs(first[:, 1:]).sum() > 0 or degrees[0] == 0
    assert not added[:, 1:].any()  # none were given
    assert ("were cut" in object_notes(object).rig_notes) == (degrees[0] < degrees[1])


def test_frames_that_are_deleted_while_it_ran(scene, monkeypatch):
    object, armature, other = scene
    name = frames_object(object).name

    def meanwhile(_):
        bpy.data.objects.remove(bpy.data.objects[name])

    monkeypatch.setattr("gaussianimate.gaussianimate_addon.refined_apply.leave_edit_mode", meanwhile)
    with pytest.raises(RuntimeError, match="changed while the capture was added, so the result was dropped"):
        ops.add_capture(source=other.name, max_bones=6)
