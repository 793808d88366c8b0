"""Captures kept as numpy archives."""

from pathlib import Path

import numpy as np
import pytest

from gaussianimate.core.errors import FormatError
from gaussianimate.core.formats import read_capture

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


def vertices(frames=4, count=6, seed=0):
    return np.random.default_rng(seed).normal(size=(frames, count, 3)).astype("f4")


def test_animated_mesh(tmp_path):
    points = vertices()
    faces = np.array([[0, 1, 2], [3, 4, 5]])
    colors = np.full((6, 3), 51, "u1")
    np.savez(tmp_path / "jump.npz", vertices=points, faces=faces, colors=colors, fps=24, up="Y", other=[1, 2])
    capture = read_capture(tmp_path / "jump.npz")
    np.testing.assert_array_equal(capture.positions, points)
    np.testing.assert_array_equal(capture.faces, faces)
    np.testing.assert_allclose(capture.colors, 0.2)
    assert (capture.fps, capture.up, capture.name, capture.load_cloud) == (24, "y", "jump", None)
    assert capture.positions.dtype == np.float32 and capture.faces.dtype == np.int32


def test_bare_trajectory_in_doubles(tmp_path):
    np.savez(tmp_path / "a.npz", vertices=vertices().astype("f8"), faces=np.zeros((0, 3), "i4"))
    capture = read_capture(tmp_path / "a.npz")
    assert capture.faces is None and capture.fps is None and capture.up is None
    assert capture.positions.dtype == np.float32


def test_unusable_points_and_frames_leave_no_nan(tmp_path):
    points = vertices()
    points[1, 2, 0] = np.nan
    points[2] = np.inf
    np.savez(tmp_path / "a.npz", vertices=points, faces=[[0, 1, 2], [3, 4, 5]], colors=np.zeros((6, 3)))
    capture = read_capture(tmp_path / "a.npz")
    np.testing.assert_array_equal(capture.frame_valid, [1, 1, 0, 1])
    np.testing.assert_array_equal(capture.positions[0], np.delete(points[0], 2, axis=0))
    assert np.isnan(capture.positions[2]).all() and np.isfinite(capture.positions[[0, 1, 3]]).all()
    np.testing.assert_array_equal(capture.faces, [[2, 3, 4]])
    assert len(capture.colors) == 5
    assert any("1 of 6 points were dropped" in n for n in capture.notes)
    assert any("1 of 4 frames are empty" in n for n in capture.notes)


def test_moving_gaussians(tmp_path):
    points = vertices()
    quaternions = np.random.default_rng(1).normal(size=(4, 6, 4)).astype("f2")
    quaternions[2, 3] = 0
    scales = np.full((6, 3), 0.1, "f4")
    scales[5, 1] = np.nan
    np.savez(tmp_path / "a.npz", vertices=points, quat_wxyz=quaternions, scales=scales, colors=np.eye(6, 3))
    capture = read_capture(tmp_path / "a.npz")
    assert capture.point_count == 4
    cloud = capture.load_cloud(2)
    np.testing.assert_array_equal(cloud.positions, points[2, [0, 1, 2, 4]])
    expected = quaternions[2, [0, 1, 2, 4]].astype("f8")
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(cloud.rotations, expected, atol=1e-6)
    np.testing.assert_allclose(cloud.sh[0, 0] * 0.28209479 + 0.5, [1, 0, 0], atol=1e-6)
    assert any("2 of 6 splats were dropped" in n for n in capture.notes)
    assert any("opaque" in n for n in capture.notes)


def dynamic_parameters(frames=3, count=5):
    rng = np.random.default_rng(2)
    return {
        "means3D": rng.normal(size=(frames, count, 3)).astype("f4"),
        "rgb_colors": rng.uniform(size=(frames, count, 3)).astype("f4"),
        "unnorm_rotations": rng.normal(size=(frames, count, 4)).astype("f4") * 5,
        "logit_opacities": rng.normal(size=(count, 1)).astype("f4"),
        "log_scales": rng.normal(size=(count, 3)).astype("f4") - 4,
        "seg_colors": np.zeros((count, 3), "f4"),
        "cam_m": np.zeros((50, 3), "f4"),
    }


def test_dynamic_3d_gaussians(tmp_path):
    values = dynamic_parameters()
    np.savez(tmp_path / "params.npz", **values)
    capture = read_capture(tmp_path / "params.npz")
    assert capture.positions.shape == (3, 5, 3) and capture.frame_valid.all()
    cloud = capture.load_cloud(1)
    np.testing.assert_allclose(cloud.scales, np.exp(values["log_scales"]), rtol=1e-6)
    np.testing.assert_allclose(cloud.opacities, 1 / (1 + np.exp(-values["logit_opacities"][:, 0])), rtol=1e-6)
    np.testing.assert_allclose(cloud.sh[:, 0] * 0.28209479 + 0.5, values["rgb_colors"][1], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(cloud.rotations, axis=1), 1, atol=1e-6)
    scale = values["unnorm_rotations"][1] / cloud.rotations
    np.testing.assert_allclose(scale, scale[:, :1] + np.zeros(4), rtol=1e-4)


def test_unusable_dynamic_gaussians_are_dropped_from_every_frame(tmp_path):
    values = dynamic_parameters()
    values["unnorm_rotations"][2, 1] = 0
    values["log_scales"][3, 0] = np.inf
    np.savez(tmp_path / "params.npz", **values)
    capture = read_capture(tmp_path / "params.npz")
    assert capture.point_count == 3
    np.testing.assert_array_equal(capture.load_cloud(0).positions, values["means3D"][0, [0, 2, 4]])


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"points": np.zeros(3)}, "neither vertices nor means3D, it holds points"),
        ({"vertices": np.zeros((3, 4))}, r"vertices has shape \(3, 4\)"),
        ({"vertices": np.zeros((0, 4, 3))}, "0 frames of 4 points"),
        ({"vertices": np.zeros((1, 0, 3))}, "1 frames of 0 points"),
        ({"vertices": np.full((2, 4, 3), np.nan)}, "no point has finite positions"),
        ({"vertices": np.zeros((2, 4, 3), "U3")}, "type <U3"),
        ({"vertices": np.zeros((2, 4, 3)), "faces": [[0, 1, 4]]}, "not among the 4"),
        ({"vertices": np.zeros((2, 4, 3)), "faces": [[0, 1, 2, 3]]}, "faces has shape"),
        ({"means3D": np.zeros((2, 4, 3))}, "unnorm_rotations is missing"),
        ({"vertices": np.array([{}, {}], dtype=object)}, "pickles"),
    ],
)
def test_other_arrays_are_refused_in_one_sentence(tmp_path, arrays, problem):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(FormatError, match=problem):
        read_capture(tmp_path / "a.npz")


def test_several_archives_are_not_one_capture(tmp_path):
    for name in "ab":
        np.savez(tmp_path / f"{name}.npz", vertices=vertices())
    with pytest.raises(FormatError, match="2 .npz archives were found"):
        read_capture(tmp_path)


@pytest.mark.parametrize("name", ["fox", "cesium-man", "kaykit-knight", "human-gs"])
def test_real_sequences(name):
    path = DATA / name / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{name} is not beside this checkout")
    capture = read_capture(path)
    with np.load(path) as archive:
        np.testing.assert_array_equal(capture.positions, archive["vertices"])
        assert capture.fps == archive["fps"] and capture.up == "y"
    if name == "human-gs":
        cloud = capture.load_cloud(10)
        np.testing.assert_array_equal(cloud.positions, capture.positions[10])
    else:
        assert capture.faces is not None
