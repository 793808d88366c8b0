"""Baking by the operator: names of files, ranges, refusals, cancelling, and what is left behind."""

import bpy
import numpy as np
import pytest

from gaussianimate.core.errors import Cancelled
from gaussianimate.core.formats import read_cloud
from gaussianimate.gaussianimate_addon.bake import pose_steps, rest_splats
from gaussianimate.gaussianimate_addon.capture_object import capture_from_point_cloud
from gaussianimate.gaussianimate_addon.point_cloud import point_cloud_to_cloud
from gaussianimate.gaussianimate_addon.properties import object_notes
from gaussianimate.operators.bake_files import Order, targets
from gaussianimate.operators.bake_ply import GAUSSIANIMATE_OT_bake_ply

ops = bpy.ops.gaussianimate


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
