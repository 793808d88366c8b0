"""The operators, called as scripts call them: files in, rig, poses, files out, undo, and errors."""

import bpy
import numpy as np
import pytest
from mathutils import Vector

from gaussianimate.core.formats import read_cloud, write_sequence
from gaussianimate.gaussianimate_addon.deformer import deformer_armature
from gaussianimate.gaussianimate_addon.preferences import preferences
from gaussianimate.gaussianimate_addon.properties import object_notes

FRAMES = 8  # of the sequence (conftest.py)
ops = bpy.ops.gaussianimate


def names():
    kinds = (
        bpy.data.objects,
        bpy.data.pointclouds,
        bpy.data.armatures,
        bpy.data.actions,
        bpy.data.node_groups,
    )
    return [sorted(block.name for block in kind) for kind in kinds]


# Import


def test_import_a_folder(imported, sequence):
    scene = bpy.context.scene
    assert len(imported.data.points) == 500
    assert imported.select_get() and bpy.context.active_object == imported
    assert (scene.frame_start, scene.frame_end, scene.frame_current) == (1, FRAMES, 1)


def test_import_files_of_a_directory_in_natural_order(empty_scene, sequence):
    files = [{"name": path.name} for path in sorted(sequence.iterdir())]  # bar_10 before bar_5
    ops.import_capture(directory=str(sequence), files=files, up="Z")
    object = bpy.context.active_object
    first = read_cloud(sequence / "bar_5.ply")[0]
    position = np.empty(3 * 500, np.float32)
    object.data.attributes["position"].data.foreach_get("vector", position)
    assert np.array_equal(position.reshape(-1, 3), first.positions)
    assert bpy.context.scene.frame_end == FRAMES


def test_import_one_file_or_the_sequence_it_belongs_to(empty_scene, sequence):
    ops.import_capture(filepath=str(sequence / "bar_7.ply"))
    assert bpy.context.scene.frame_end == 250, "a still leaves the scene's time alone"
    ops.import_capture(filepath=str(sequence / "bar_7.ply"), detect_sequence=True)
    assert bpy.context.scene.frame_end == FRAMES


@pytest.mark.parametrize("up, z", [("Z", (0, 0, 1)), ("Y", (0, 1, 0)), ("NEG_Y", (0, -1, 0))])
def test_up_axis_is_turned_by_the_object_and_remembered(empty_scene, sequence, up, z):
    ops.import_capture(filepath=str(sequence), up=up)
    ops.import_capture(filepath=str(sequence))
    for object in [o for o in bpy.context.scene.objects if o.type == "POINTCLOUD"]:
        upwards = object.matrix_world.to_3x3() @ Vector(z)
        assert (upwards - Vector((0, 0, 1))).length < 1e-6
    assert preferences(bpy.context).up_axis == up


def test_import_takes_the_frame_rate_of_the_first_capture_only(empty_scene, sequence, tmp_path):
    points = np.random.default_rng(0).normal(size=(5, 40, 3)).astype(np.float32)
    np.savez(tmp_path / "dots.npz", vertices=points, fps=30000 / 1001, up="z")
    ops.import_capture(filepath=str(tmp_path / "dots.npz"))
    render = bpy.context.scene.render
    assert render.fps == 30 and render.fps / render.fps_base == pytest.approx(30000 / 1001)
    np.savez(tmp_path / "dots.npz", vertices=points, fps=60.0, up="z")
    ops.import_capture(filepath=str(tmp_path / "dots.npz"))
    assert render.fps == 30 and bpy.context.scene.frame_end == 5


def test_a_mesh_becomes_as_many_splats_as_wanted(empty_scene, tmp_path):
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)
    np.savez(tmp_path / "tetra.npz", vertices=np.stack([corners, 2 * corners]), faces=faces, up="z")
    ops.import_capture(filepath=str(tmp_path / "tetra.npz"), splat_count=300)
    object = bpy.context.active_object
    assert len(object.data.points) == 300
    assert "300 splats cover the 4 triangles" in object_notes(object).import_notes


def test_a_damaged_file_leaves_nothing_behind(empty_scene, sequence, tmp_path):
    broken = tmp_path / "broken.ply"
    broken.write_bytes((sequence / "bar_5.ply").read_bytes()[:-100])
    before = names()
    with pytest.raises(RuntimeError, match="broken.ply"):
        ops.import_capture(filepath=str(broken))
    assert names() == before


def test_nothing_there(empty_scene, tmp_path):
    with pytest.raises(RuntimeError, match="there is no such file or folder"):
        ops.import_capture(filepath=str(tmp_path / "none.ply"))
    with pytest.raises(RuntimeError, match="there is no such file or folder"):
        ops.import_capture(filepath=str(tmp_path / f"{300 * 'x'}.ply"), detect_sequence=True)
    with pytest.raises(RuntimeError, match="no file or folder was given"):
        ops.import_capture()
    with pytest.raises(RuntimeError, match="none_1.ply.*cannot be opened"):
        ops.import_capture(directory=str(tmp_path), files=[{"name": f"none_{i}.ply"} for i in (1, 2)])


# Rig


def test_build_rig(rigged):
    splats, armature = rigged
    assert deformer_armature(splats) == armature
    assert {"Skeleton", "Skin bones"} <= {collection.name for collection in armature.data.collections}
    assert "replay error" in object_notes(splats).rig_notes
    assert armature.animation_data.action is not None


def test_build_rig_says_what_is_missing(empty_scene):
    with pytest.raises(RuntimeError, match="Select a capture; import one first"):
        ops.build_rig()


def test_build_rig_refuses_a_rest_frame_that_is_not_there(imported):
    before = names()
    with pytest.raises(RuntimeError, match=f"frames 0 to {FRAMES - 1}"):
        ops.build_rig(canonical_frame=99)
    assert names() == before


def test_building_again_replaces_the_rig(rigged):
    splats, armature = rigged
    before = names()
    assert ops.build_rig(max_bones=4) == {"FINISHED"}
    assert [len(kind) for kind in names()] == [len(kind) for kind in before]


# Pose


def test_pose_anew_and_back_to_the_replay(rigged):
    splats, armature = rigged
    replay = armature.animation_data.action
    ops.set_motion(motion="POSE")
    assert bpy.context.mode == "POSE" and armature.animation_data.action != replay
    assert all(bone.matrix_basis.is_identity for bone in armature.pose.bones)
    bone = armature.pose.bones[0]
    bone.rotation_quaternion = (0.8, 0.6, 0, 0)
    bone.keyframe_insert("rotation_quaternion", frame=1)
    ops.set_motion(motion="REPLAY")
    assert armature.animation_data.action == replay
    ops.set_motion(motion="POSE")
    bpy.context.scene.frame_set(1)
    assert tuple(armature.pose.bones[0].rotation_quaternion) == pytest.approx((0.8, 0.6, 0, 0))
    ops.reset_pose()
    assert all(bone.matrix_basis.is_identity for bone in armature.pose.bones)


def pose_of(armature):
    evaluated = armature.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return np.array([bone.matrix for bone in evaluated.pose.bones])


def test_switching_shows_at_once_and_survives_other_rotation_modes(rigged):
    splats, armature = rigged
    bpy.context.scene.frame_set(4)
    replayed = pose_of(armature)
    ops.set_motion(motion="POSE")
    rest = pose_of(armature)
    assert np.abs(rest - replayed).max() > 0.01
    assert np.allclose(rest, [bone.matrix_local for bone in armature.data.bones], atol=1e-5)
    bone = armature.pose.bones[0]
    bone.rotation_mode, bone.rotation_euler, bone.scale = "XYZ", (0.7, 0, 0), (2, 2, 2)
    bone.keyframe_insert("rotation_euler", frame=4)
    ops.set_motion(motion="REPLAY")
    assert np.allclose(pose_of(armature), replayed, atol=1e-5), "nothing of the pose stays"
    ops.set_motion(motion="POSE")
    assert bone.rotation_mode == "XYZ" and bone.rotation_euler.x == pytest.approx(0.7)


def test_posing_needs_a_rig(imported):
    for operator in (ops.set_motion, ops.reset_pose):
        with pytest.raises(RuntimeError, match="build a rig first"):
            operator()


def test_a_deleted_replay_is_told(rigged):
    ops.set_motion(motion="POSE")
    bpy.data.actions.remove(rigged[1]["gaussianimate_replay"])
    with pytest.raises(RuntimeError, match="replay of 'bar rig' was deleted; build the rig again"):
        ops.set_motion(motion="REPLAY")


def test_posing_a_hidden_armature_shows_it(rigged):
    bpy.context.view_layer.objects.active = rigged[0]
    rigged[1].hide_set(True)
    assert ops.set_motion(motion="POSE") == {"FINISHED"}
    assert rigged[1].visible_get() and rigged[1].mode == "POSE"


def test_posing_an_excluded_armature_is_refused(rigged):
    splats, armature = rigged
    collection = bpy.data.collections.new("off")
    bpy.context.scene.collection.children.link(collection)
    collection.objects.link(armature)
    bpy.context.scene.collection.objects.unlink(armature)
    bpy.context.view_layer.layer_collection.children["off"].exclude = True
    bpy.context.view_layer.objects.active = splats
    with pytest.raises(RuntimeError, match="'bar rig' is not in this view layer; enable its collection"):
        ops.set_motion(motion="POSE")


# Transforms


def test_apply_transform_and_rebind(imported):
    imported.scale = (2, 2, 2)
    bpy.context.view_layer.update()
    scale = np.empty(3 * 500, np.float32)
    imported.data.attributes["scale"].data.foreach_get("vector", scale)
    assert ops.apply_transform() == {"FINISHED"}
    after = np.empty_like(scale)
    imported.data.attributes["scale"].data.foreach_get("vector", after)
    assert np.allclose(after, 2 * scale, rtol=1e-4)
    with pytest.raises(RuntimeError, match="nothing was applied since"):
        ops.rebind()
    imported.scale = (0.5, 0.5, 0.5)
    bpy.ops.object.transform_apply(location=False, rotation=False, scale=True)
    assert ops.rebind() == {"FINISHED"}
    imported.data.attributes["scale"].data.foreach_get("vector", after)
    assert np.allclose(after, scale, rtol=1e-4)


# Paths, and meshes of the scene


def test_paths_beside_a_file_that_is_not_saved(imported):
    for operator in (ops.bake_ply, ops.import_capture):
        with pytest.raises(RuntimeError, match="save it first"):
            operator(filepath="//bake/")


def test_non_ascii_paths(empty_scene, sequence, tmp_path):
    folder = tmp_path / "кадр 東京 #1"
    clouds = [read_cloud(sequence / f"bar_{i}.ply")[0] for i in (5, 6)]
    write_sequence(iter(clouds), folder, "ünï", 1, 2)
    ops.import_capture(filepath=str(folder))
    assert bpy.context.active_object.name == "ünï"
    ops.bake_ply(filepath=str(folder / "выход") + "/", frame_start=1, frame_end=2)
    assert len(list((folder / "выход").iterdir())) == 2


# From a mesh in the scene


@pytest.mark.parametrize("start", [1, 3])
def test_capture_from_object(empty_scene, start):
    bpy.ops.mesh.primitive_cube_add()
    cube = bpy.context.active_object
    for frame, x in ((1, 0.0), (5, 2.0)):
        cube.location.x = x
        cube.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_set(4)
    assert ops.capture_from_object(frame_start=start, frame_end=5, splat_count=200) == {"FINISHED"}
    splats = bpy.context.active_object
    assert splats.type == "POINTCLOUD" and len(splats.data.points) == 200
    assert cube.hide_get() and bpy.context.scene.frame_current == 4
    evaluated = splats.evaluated_get(bpy.context.evaluated_depsgraph_get())
    position = np.empty(600, np.float32)
    evaluated.data.attributes["position"].data.foreach_get("vector", position)
    centre = 0.5 * (position.reshape(-1, 3).min(0) + position.reshape(-1, 3).max(0))
    cube_x = cube.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world.translation.x
    assert centre[0] == pytest.approx(cube_x, abs=0.05) and abs(centre[1]) < 0.05


def test_capture_from_object_needs_a_mesh(empty_scene):
    bpy.ops.object.camera_add()
    with pytest.raises(RuntimeError, match="Select an animated mesh object"):
        ops.capture_from_object()
