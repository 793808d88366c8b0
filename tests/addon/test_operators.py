"""The operators, called as scripts call them: files in, rig, poses, files out, undo, and errors."""

import bpy
import numpy as np
import pytest
from mathutils import Vector
from rigs import make_capture, make_cloud, make_rig

from gaussianimate.core.errors import Cancelled
from gaussianimate.core.formats import read_cloud, write_cloud, write_sequence
from gaussianimate.gaussianimate_addon.bake import pose_steps, rest_splats
from gaussianimate.gaussianimate_addon.capture_object import capture_from_point_cloud
from gaussianimate.gaussianimate_addon.deformer import deformer_armature
from gaussianimate.gaussianimate_addon.point_cloud import point_cloud_to_cloud
from gaussianimate.gaussianimate_addon.preferences import preferences
from gaussianimate.gaussianimate_addon.properties import object_notes
from gaussianimate.operators.bake_files import Order, targets
from gaussianimate.operators.bake_ply import GAUSSIANIMATE_OT_bake_ply

FRAMES = 8
ops = bpy.ops.gaussianimate


@pytest.fixture(scope="module")
def sequence(tmp_path_factory):
    """A folder of PLY frames of a bending bar whose last numbers are not padded."""
    cloud = make_cloud(count=500, degree=1)
    capture = make_capture(cloud, make_rig(cloud, frames=FRAMES))
    folder = tmp_path_factory.mktemp("bar")
    for frame in range(FRAMES):
        write_cloud(capture.load_cloud(frame), folder / f"bar_{frame + 5}.ply")
    return folder


@pytest.fixture
def imported(empty_scene, sequence):
    ops.import_capture(filepath=str(sequence), up="Z")
    return bpy.context.active_object


@pytest.fixture(scope="module")
def rigged_file(addon, sequence, tmp_path_factory):
    """A file with a rigged capture, built once by the operators."""
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    ops.import_capture(filepath=str(sequence), up="Z")
    assert ops.build_rig(max_bones=4) == {"FINISHED"}
    path = tmp_path_factory.mktemp("rigged") / "bar.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


@pytest.fixture
def rigged(rigged_file):
    """The splats and the armature of the rigged file, the armature active."""
    bpy.ops.wm.open_mainfile(filepath=str(rigged_file))
    armature = bpy.context.active_object
    return next(child for child in armature.children if child.type == "POINTCLOUD"), armature


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


# Bake


def test_bake_a_range_to_a_folder(rigged, sequence, tmp_path):
    assert ops.bake_ply(filepath=str(tmp_path) + "/", frame_start=2, frame_end=3) == {"FINISHED"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bar_0002.ply", "bar_0003.ply"]
    baked, truth = read_cloud(tmp_path / "bar_0003.ply")[0], read_cloud(sequence / "bar_7.ply")[0]
    size = np.linalg.norm(np.ptp(truth.positions, axis=0))
    assert baked.sh_degree == 1
    assert np.sqrt(((baked.positions - truth.positions) ** 2).sum(1).mean()) < 0.02 * size


def test_bake_the_current_frame_to_one_file(rigged, rigged_file, tmp_path):
    bpy.context.scene.frame_set(4)
    assert ops.bake_ply(filepath=str(tmp_path / "deep" / "pose.ply")) == {"FINISHED"}
    assert (tmp_path / "deep" / "pose.ply").exists()
    assert ops.bake_ply(filepath="//beside") == {"FINISHED"}
    assert (rigged_file.parent / "beside.ply").exists()
    assert bpy.context.scene.frame_current == 4


def test_a_file_name_numbers_the_frames_of_a_range(rigged, tmp_path):
    ops.bake_ply(filepath=str(tmp_path / "kick.ply"), frame_start=1, frame_end=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kick_0001.ply", "kick_0002.ply"]


def test_an_untouched_import_is_baked_as_it_came(imported, sequence, tmp_path):
    ops.bake_ply(filepath=str(tmp_path / "same.ply"))
    baked, source = read_cloud(tmp_path / "same.ply")[0], read_cloud(sequence / "bar_5.ply")[0]
    assert np.array_equal(baked.positions, source.positions)


def test_a_bake_never_writes_over_the_capture(imported, sequence):
    before = {path: path.read_bytes() for path in sequence.iterdir()}
    with pytest.raises(RuntimeError, match="folder of the imported capture"):
        ops.bake_ply(filepath=str(sequence / "bar_7.ply"))
    with pytest.raises(RuntimeError, match="folder of the imported capture"):
        ops.bake_ply(
            filepath=f"{sequence}/", frame_start=1, frame_end=3
        )  # new names among the captured frames
    assert {path: path.read_bytes() for path in sequence.iterdir()} == before


def test_bake_refuses(rigged, tmp_path):
    with pytest.raises(RuntimeError, match="the last frame, 1, comes before the first, 5"):
        ops.bake_ply(filepath=str(tmp_path / "x.ply"), frame_start=5, frame_end=1)
    with pytest.raises(RuntimeError, match="no file or folder"):
        ops.bake_ply()
    with pytest.raises(RuntimeError, match="File name too long"):
        ops.bake_ply(filepath=str(tmp_path / f"{300 * 'x'}.ply"))
    (tmp_path / "taken").write_text("a file where a folder is wanted")
    with pytest.raises(RuntimeError, match="the folder cannot be made"):
        ops.bake_ply(filepath=str(tmp_path / "taken" / "x.ply"))
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    with pytest.raises(RuntimeError, match="Select Gaussian splats"):
        ops.bake_ply(filepath=str(tmp_path / "x.ply"))


def test_negative_frames_come_back_in_order(rigged, tmp_path):
    _, armature = rigged
    for frame in range(-11, 2):
        armature.location.x = 10 * frame
        armature.keyframe_insert("location", frame=frame)
    assert ops.bake_ply(filepath=f"{tmp_path}/", frame_start=-11, frame_end=1) == {"FINISHED"}
    names = {path.name for path in tmp_path.iterdir()}
    assert {"bar_-0011.ply", "bar_-0001.ply", "bar_0000.ply", "bar_0001.ply"} < names and len(names) == 13
    places = [read_cloud(tmp_path / f"bar_{n}.ply")[0].positions[:, 0].mean() for n in ("-0011", "0001")]
    assert places[1] - places[0] > 100
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    for one in ("bar_-0004.ply", "bar_0001.ply"):
        ops.import_capture(filepath=str(tmp_path / one), detect_sequence=True, up="Z")
        capture = capture_from_point_cloud(bpy.context.active_object)
        assert capture.frame_count == 13
        assert (np.diff(capture.positions[:, :, 0].mean(axis=1)) > 5).all()


def test_a_pose_that_is_not_finite_is_told(rigged, tmp_path, capfd):
    splats, armature = rigged
    armature.animation_data_clear()
    for bone in armature.pose.bones:
        bone.matrix_basis.identity()
    armature.pose.bones[0].location.x = float("nan")
    armature.keyframe_insert('pose.bones["root"].location', frame=3)
    for frame in (2, 4):
        armature.pose.bones[0].location.x = 0.1
        armature.keyframe_insert('pose.bones["root"].location', frame=frame)
    assert ops.bake_ply(filepath=f"{tmp_path}/", frame_start=1, frame_end=5, space="OBJECT") == {"FINISHED"}
    assert "left at rest in frames 3" in capfd.readouterr().out
    rest = point_cloud_to_cloud(splats.data).positions
    np.testing.assert_allclose(read_cloud(tmp_path / "bar_0003.ply")[0].positions, rest, atol=1e-5)
    assert np.abs(read_cloud(tmp_path / "bar_0004.ply")[0].positions - rest).max() > 0.05


def test_many_frames_are_named_in_short():
    from gaussianimate.operators.bake_files import named

    assert named((3, 7)) == "3, 7" and named(range(10)).endswith("8, 9")
    assert named(range(-1, 2000)) == "-1, 0, 1, 2, 3, 4, 5, 6, 7, 8 and 1,991 more"


def test_a_bake_that_is_refused_leaves_no_folder(imported, rigged_file, sequence, tmp_path):
    object_notes(imported).source_folder = str(tmp_path / "new" / "deep")
    with pytest.raises(RuntimeError, match="folder of the imported capture"):
        ops.bake_ply(filepath=str(tmp_path / "new" / "deep" / "x.ply"))
    imported.hide_viewport = True  # found out when the first frame is read
    with pytest.raises(RuntimeError, match="disabled in viewports"):
        ops.bake_ply(filepath=str(tmp_path / "new" / "x"), frame_start=1, frame_end=2)
    bpy.ops.wm.open_mainfile(filepath=str(rigged_file))
    splats = next(object for object in bpy.data.objects if object.type == "POINTCLOUD")
    splats.scale.x = 0.0
    with pytest.raises(RuntimeError, match="scaled to nothing"):
        ops.bake_ply(filepath=str(tmp_path / "new" / "x"), frame_start=1, frame_end=2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("after, kept", [(0.0, []), (0.3, ["bar_0001.ply"])])
def test_a_cancelled_bake_leaves_whole_frames_or_no_folder(rigged, tmp_path, after, kept):
    splats, _ = rigged
    steps = pose_steps(bpy.context, splats, 1, 3)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            poses = stop.value
            break
    order = Order(rest_splats(splats), poses, "WORLD", targets(f"{tmp_path}/a/b/", "bar", 1, 3))

    def cancel(_stage, fraction):
        if fraction >= after:
            raise Cancelled("cancelled")

    with pytest.raises(Cancelled):
        GAUSSIANIMATE_OT_bake_ply.work(order, cancel)
    assert [path.name for path in tmp_path.glob("a/b/*")] == kept
    assert (tmp_path / "a").exists() == bool(kept)


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
