"""What is written is what others expect, and it is written whole or not at all."""

import os
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from gaussianimate.core.errors import Cancelled, FormatError
from gaussianimate.core.formats import ply_writer, read_capture, read_cloud, write_cloud, write_sequence
from gaussianimate.core.formats.frame_names import is_sibling, natural_key


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_round_trip_in_standard_order(splats, tmp_path, same_clouds, degree):
    plyfile = import_module("plyfile")
    cloud, _ = read_cloud(splats.write(columns=splats.columns(50, degree)))
    path = tmp_path / "out.ply"
    assert write_cloud(cloud, path) == 0
    vertex = plyfile.PlyData.read(str(path))["vertex"]
    assert [p.name for p in vertex.properties] == splats.names(degree)
    again, notes = read_cloud(path)
    assert notes == () and again.sh_degree == degree
    np.testing.assert_array_equal(again.positions, cloud.positions)
    np.testing.assert_array_equal(again.sh, cloud.sh)
    same_clouds(again, cloud, 1e-6)
    np.testing.assert_allclose(again.scales, cloud.scales, rtol=2e-6)


def test_blender_reads_what_is_written(splats, tmp_path):
    bpy = import_module("bpy")
    if bpy.app.version < (5, 3):
        pytest.skip("native splats are new in Blender 5.3")
    cloud, _ = read_cloud(splats.write(columns=splats.columns(20, 2)))
    write_cloud(cloud, tmp_path / "out.ply")
    before = set(bpy.data.pointclouds)
    bpy.ops.wm.ply_import(filepath=str(tmp_path / "out.ply"))
    (points,) = set(bpy.data.pointclouds) - before
    values = np.empty(60, "f4")
    points.attributes["scale"].data.foreach_get("vector", values)
    np.testing.assert_allclose(values.reshape(20, 3), cloud.scales, rtol=1e-5)
    points.attributes["radiance:sh_7"].data.foreach_get("vector", values)
    np.testing.assert_allclose(values.reshape(20, 3), cloud.sh[:, 8], atol=1e-6)
    bpy.data.pointclouds.remove(points)


def test_full_and_zero_opacity_and_flat_splats_have_finite_logs(splats, tmp_path):
    cloud, _ = read_cloud(splats.write(columns=splats.columns(4)))
    cloud.opacities[:2] = [0, 1]
    cloud.scales[2] = 0
    write_cloud(cloud, tmp_path / "out.ply")
    data = (tmp_path / "out.ply").read_bytes()
    body = data[data.index(b"end_header\n") + 11 :]
    assert np.isfinite(np.frombuffer(body, "<f4")).all()
    again, _ = read_cloud(tmp_path / "out.ply")
    np.testing.assert_allclose(again.opacities, cloud.opacities, atol=1e-6)
    np.testing.assert_allclose(again.scales, cloud.scales, atol=1e-30, rtol=1e-5)


def test_rows_that_are_not_finite_are_left_out_of_all_columns(splats, tmp_path, same_clouds):
    cloud, _ = read_cloud(splats.write(columns=splats.columns(7, 1)))
    cloud.positions[0, 1] = np.nan
    cloud.rotations[1, 2] = np.inf
    cloud.rotations[2] = 0
    cloud.scales[3, 0] = np.nan
    cloud.opacities[4] = np.nan
    cloud.sh[5, 3, 2] = -np.inf
    assert write_cloud(cloud, tmp_path / "out.ply") == 6
    same_clouds(read_cloud(tmp_path / "out.ply")[0], cloud.take(np.array([6])), 1e-6)


def test_nothing_to_write_leaves_nothing(splats, tmp_path):
    cloud, _ = read_cloud(splats.write("in/a.ply", splats.columns(2)))
    cloud.positions[:] = np.nan
    with pytest.raises(FormatError, match="no splat to write whose values are finite"):
        write_cloud(cloud, tmp_path / "out.ply")
    with pytest.raises(FormatError, match="no splat to write"):
        write_cloud(cloud.take(np.zeros(2, bool)), tmp_path / "out.ply")
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


def test_a_failing_write_keeps_the_old_file_and_no_temporary(splats, tmp_path, monkeypatch):
    cloud, _ = read_cloud(splats.write("in/a.ply"))
    path = tmp_path / "out.ply"
    path.write_bytes(b"the old one")

    def fail(cloud, stream):
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ply_writer, "_write", fail)
    with pytest.raises(FormatError, match="out.ply: the file cannot be written.*No space left"):
        write_cloud(cloud, path)
    assert path.read_bytes() == b"the old one"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "out.ply"]


def test_missing_folder_is_told(splats, tmp_path):
    cloud, _ = read_cloud(splats.write())
    with pytest.raises(FormatError, match="cannot be written"):
        write_cloud(cloud, tmp_path / "nowhere" / "out.ply")


def test_a_name_that_is_too_long_is_told(splats, tmp_path):
    cloud, _ = read_cloud(splats.write("in/a.ply"))
    with pytest.raises(FormatError, match="File name too long"):
        write_cloud(cloud, tmp_path / f"{300 * 'x'}.ply")


def test_file_keeps_ordinary_permissions(splats, tmp_path):
    cloud, _ = read_cloud(splats.write())
    write_cloud(cloud, tmp_path / "out.ply")
    (tmp_path / "plain").write_bytes(b"")
    assert os.stat(tmp_path / "out.ply").st_mode == os.stat(tmp_path / "plain").st_mode


def test_sequence_names_are_padded_and_read_back_in_order(splats, tmp_path):
    cloud, _ = read_cloud(splats.write("in/a.ply", splats.columns(4, 1)))

    def frames():
        for frame in range(12):
            moved = cloud.take(np.arange(4))
            moved.positions[:] = frame
            yield moved

    stages = []
    paths, left_out = write_sequence(
        frames(), tmp_path / "кадр 東京", "frame", 9995, 12, lambda stage, fraction: stages.append(fraction)
    )
    assert left_out == 0
    assert [p.name for p in paths[:6]] == [f"frame_{n:05d}.ply" for n in range(9995, 10001)]
    assert stages == sorted(stages) and stages[-1] == 1
    capture = read_capture(tmp_path / "кадр 東京")
    np.testing.assert_array_equal(capture.positions[:, 0, 0], np.arange(12))


@pytest.mark.parametrize("first, count", [(-12, 15), (-3, 3), (-10001, 3), (9998, 4)])
def test_negative_frames_are_read_back_in_order(splats, tmp_path, first, count):
    cloud, _ = read_cloud(splats.write("in/a.ply"))
    numbers = range(first, first + count)
    clouds = (replace(cloud, positions=np.full_like(cloud.positions, number)) for number in numbers)
    paths, _ = write_sequence(clouds, tmp_path / "out", "walk-2 take_3", first, count)
    assert all(is_sibling(paths[0].name, path.name) for path in paths)
    capture = read_capture(tmp_path / "out")
    assert capture.positions[:, 0, 0].tolist() == list(numbers)
    assert capture.name == "walk-2 take_3"


def test_only_a_minus_after_an_underscore_is_a_sign():
    days = ["scan 2024-05-02", "scan 2024-05-10", "scan-3", "scan-12", "scan_-7", "scan_-6", "scan_5"]
    assert sorted(map(Path, reversed(days)), key=natural_key) == list(map(Path, days))
    assert not is_sibling("scan_5.ply", "scan-5.ply") and not is_sibling("scan-5.ply", "scan--5.ply")
    assert is_sibling("scan_5.ply", "scan_-0005.ply") and not is_sibling("scan.ply", "scan.ply")


@pytest.mark.parametrize("failing", [0, 1])
def test_a_sequence_that_fails_leaves_no_empty_folder(splats, tmp_path, failing):
    cloud, _ = read_cloud(splats.write("in/a.ply"))
    clouds = [cloud] * failing + [cloud.take(np.zeros(0, int))]
    with pytest.raises(FormatError, match="no splat to write"):
        write_sequence(clouds, tmp_path / "deep" / "out", "f", 1, 2)
    written = [path.name for path in tmp_path.glob("deep/out/*")]
    assert written == ["f_0001.ply"] * failing and (tmp_path / "deep").exists() == bool(failing)


def test_cancelled_sequence_leaves_whole_files_only(splats, tmp_path):
    cloud, _ = read_cloud(splats.write("in/a.ply"))

    def cancel(stage, fraction):
        if fraction >= 0.5:
            raise Cancelled("cancelled")

    with pytest.raises(Cancelled):
        write_sequence([cloud] * 4, tmp_path / "out", "f", 1, 4, cancel)
    names = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert names == ["f_0001.ply", "f_0002.ply"]
    assert all(len(read_cloud(tmp_path / "out" / name)[0]) == len(cloud) for name in names)
