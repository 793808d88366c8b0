"""Splats on the surface of a mesh capture."""

import numpy as np
import pytest

from gaussianimate.core.capture import Capture
from gaussianimate.core.errors import CaptureError
from gaussianimate.core.formats import mesh_to_splats
from gaussianimate.core.rotations import quaternion_to_matrix


def capture_of(positions, faces, colors=None, valid=None):
    positions = np.asarray(positions, np.float32)
    valid = np.ones(len(positions), bool) if valid is None else np.asarray(valid)
    return Capture("mesh", positions, valid, faces=np.asarray(faces, np.int32), colors=colors, fps=24, up="y")


@pytest.fixture
def sheet():
    """A square of 2 x 2 m in the plane z = 0 as two triangles, then turned upright, then stretched in x."""
    flat = np.array([[0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 2, 0]], float)
    upright = flat[:, [0, 2, 1]]
    return capture_of([flat, upright, flat * [3, 1, 1]], [[0, 1, 2], [0, 2, 3]])


def covariances(cloud):
    axes = quaternion_to_matrix(cloud.rotations.astype(float)) * cloud.scales[:, None, :]
    return axes @ axes.transpose(0, 2, 1)


def test_count_and_what_is_kept(sheet):
    splats = mesh_to_splats(sheet, 500)
    assert splats.positions.shape == (3, 500, 3) and splats.faces is None
    assert (splats.fps, splats.up, splats.name) == (24, "y", "mesh")
    for frame in range(3):
        np.testing.assert_array_equal(splats.load_cloud(frame).positions, splats.positions[frame])
    assert splats.load_cloud(0).opacities.min() > 0.99


def test_samples_are_uniform_over_the_area():
    big = [[0, 0, 0], [3, 0, 0], [0, 3, 0]]
    small = [[0, 0, 1], [1, 0, 1], [0, 1, 1]]
    splats = mesh_to_splats(capture_of([big + small], [[0, 1, 2], [3, 4, 5]]), 10_000)
    points = splats.positions[0]
    assert abs((points[:, 2] > 0.5).mean() - 0.1) < 0.001
    # a triangle similar to the large one with half its sides covers a quarter of it wherever it lies
    large = points[points[:, 2] < 0.5]
    inner = (large[:, 0] < 1.5) & (large[:, 1] < 1.5) & (large[:, 0] + large[:, 1] > 1.5)
    assert abs(inner.mean() - 0.25) < 0.02


def test_splats_follow_their_triangles(sheet):
    splats = mesh_to_splats(sheet, 300)
    flat, upright, stretched = splats.positions
    np.testing.assert_allclose(upright, flat[:, [0, 2, 1]], atol=1e-6)
    np.testing.assert_allclose(stretched, flat * [3, 1, 1], atol=1e-5)


def test_splats_are_flat_and_face_along_the_normal_in_every_frame(sheet):
    splats = mesh_to_splats(sheet, 300)
    for frame, normal in enumerate([[0, 0, 1], [0, -1, 0], [0, 0, 1]]):
        cloud = splats.load_cloud(frame)
        axes = quaternion_to_matrix(cloud.rotations.astype(float))
        assert np.abs(axes[:, :, 2] @ normal).min() > 0.9999
        assert (cloud.scales[:, 2] < 0.2 * cloud.scales[:, :2].min(axis=1)).all()
        np.testing.assert_allclose(np.linalg.norm(cloud.rotations, axis=1), 1, atol=1e-6)


def test_discs_are_as_wide_as_the_sample_spacing_and_stretch_with_the_surface(sheet):
    splats = mesh_to_splats(sheet, 400)
    spacing = 2 / 20
    rest = splats.load_cloud(0)
    np.testing.assert_allclose(rest.scales[:, 0], rest.scales[:, 1], rtol=1e-5)
    assert (0.5 * spacing < rest.scales[:, 0]).all() and (rest.scales[:, 0] < spacing).all()
    stretch = np.diag([3.0, 1, 1])
    expected = stretch @ covariances(rest) @ stretch
    np.testing.assert_allclose(covariances(splats.load_cloud(2)), expected, atol=1e-8)


def test_covariance_is_carried_by_any_affine_motion():
    rng = np.random.default_rng(4)
    points = rng.normal(size=(9, 3))
    faces = np.arange(9).reshape(3, 3)
    matrix = rng.normal(size=(3, 3))
    splats = mesh_to_splats(capture_of([points, points @ matrix.T], faces), 50)
    rest, moved = splats.load_cloud(0), splats.load_cloud(1)
    normal = quaternion_to_matrix(rest.rotations.astype(float))[:, :, 2]
    flat = covariances(rest) - (rest.scales[:, 2] ** 2)[:, None, None] * normal[:, :, None] * normal[:, None]
    new_normal = quaternion_to_matrix(moved.rotations.astype(float))[:, :, 2]
    new_flat = covariances(moved) - (moved.scales[:, 2] ** 2)[:, None, None] * (
        new_normal[:, :, None] * new_normal[:, None]
    )
    np.testing.assert_allclose(new_flat, matrix @ flat @ matrix.T, atol=1e-5 * np.abs(new_flat).max())


def test_colours_are_interpolated_display_values(sheet):
    colors = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], np.float32)
    splats = mesh_to_splats(Capture(**{**sheet.__dict__, "colors": colors}), 200)
    cloud = splats.load_cloud(1)
    expected = np.c_[splats.positions[0][:, :2] / 2, np.zeros(200)]
    np.testing.assert_allclose(cloud.sh[:, 0] * 0.28209479 + 0.5, expected, atol=1e-5)
    grey = mesh_to_splats(sheet, 5).load_cloud(0)
    assert np.abs(grey.sh).max() == 0


def test_same_seed_same_splats(sheet):
    first, again, other = (mesh_to_splats(sheet, 50, seed=s).positions for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_degenerate_triangles_get_no_splats_and_make_no_nan():
    rest = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [5, 5, 5], [6, 6, 6], [7, 7, 7], [9, 9, 9]]
    faces = [[3, 4, 5], [0, 1, 2], [6, 6, 6], [0, 0, 1]]
    collapsed = np.array(rest, float)
    collapsed[:3] = 4  # the good triangle shrinks to a point, then to a line
    line = np.array(rest, float)
    line[:3] = [[0, 0, 0], [1, 1, 1], [2, 2, 2]]
    splats = mesh_to_splats(capture_of([rest, collapsed, line], faces), 100)
    assert (splats.positions[0].sum(axis=1) <= 1.0001).all()
    for frame in range(3):
        cloud = splats.load_cloud(frame)
        for values in (cloud.positions, cloud.rotations, cloud.scales, cloud.sh):
            assert np.isfinite(values).all()
        np.testing.assert_allclose(np.linalg.norm(cloud.rotations, axis=1), 1, atol=1e-6)
        assert (cloud.scales >= 0).all()


def test_empty_frames_stay_empty(sheet):
    positions = sheet.positions.copy()
    positions[0] = np.nan
    splats = mesh_to_splats(capture_of(positions, sheet.faces, valid=[False, True, True]), 20)
    assert np.isnan(splats.positions[0]).all() and np.isfinite(splats.positions[1:]).all()
    with pytest.raises(CaptureError, match="frame 0 is empty"):
        splats.load_cloud(0)


def test_what_cannot_be_covered_is_told(sheet):
    with pytest.raises(CaptureError, match="no area"):
        mesh_to_splats(capture_of([[[0, 0, 0], [1, 1, 1], [2, 2, 2]]], [[0, 1, 2]]), 10)
    with pytest.raises(CaptureError, match="no faces"):
        mesh_to_splats(Capture("cloud", sheet.positions, sheet.frame_valid), 10)
    with pytest.raises(CaptureError, match="0 splats"):
        mesh_to_splats(sheet, 0)
    with pytest.raises(CaptureError, match="frame 7"):
        mesh_to_splats(sheet, 10, canonical_frame=7)
