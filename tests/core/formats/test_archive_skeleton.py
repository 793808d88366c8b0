"""Clips and skeletons in .npz captures."""

import numpy as np
import pytest

from gaussianimate.core.formats import mesh_to_splats, read_capture
from gaussianimate.core.rigging.skeleton.kinematics import joint_transforms
from gaussianimate.core.rotations import axis_angle_to_quaternion

PARENTS = np.array([-1, 0, 1, 1])
REST = np.array([[0, 0, 0], [0, 1, 0], [0.5, 2, 0], [-0.5, 2, 0.2]])


def motion(frames=6, seed=0):
    """Transforms (F, 4, 3, 4) of a small tree."""
    rng = np.random.default_rng(seed)
    turns = axis_angle_to_quaternion(rng.normal(size=(frames, 4, 3)), rng.uniform(-1, 1, (frames, 4)))
    return joint_transforms(PARENTS, REST, turns, rng.normal(size=(frames, 3)))


def archive(path, **arrays):
    values = {
        "vertices": np.random.default_rng(1).normal(size=(6, 9, 3)).astype("f4"),
        "joint_names": np.array(["hip", "chest", "left", "right"]),
        "joint_parents": PARENTS.astype("i4"),
        "joint_rest": REST.astype("f4"),
        "joint_mats": motion().astype("f4"),
        "clip": np.array([0, 0, 1, 1, 1, 3], "i4"),
        "clip_names": np.array(["walk", "run", "jump"]),
    }
    np.savez(
        path / "a.npz", **{name: value for name, value in (values | arrays).items() if value is not None}
    )
    return read_capture(path / "a.npz")


def test_skeleton_and_clips_are_read(tmp_path):
    capture = archive(tmp_path)
    assert capture.skeleton.names == ("hip", "chest", "left", "right")
    np.testing.assert_array_equal(capture.skeleton.parents, PARENTS)
    np.testing.assert_allclose(capture.skeleton.rest, REST, atol=1e-6)
    np.testing.assert_allclose(capture.skeleton.joint_mats, motion(), atol=1e-6)
    assert capture.clips.tolist() == [0, 0, 1, 1, 1, 3] and capture.clips.dtype == np.int32
    assert capture.clip_names == ("walk", "run", "jump") and capture.notes == ()


def test_archives_without_either_stay_as_they_were(tmp_path):
    none = dict.fromkeys(("joint_names", "joint_parents", "joint_rest", "joint_mats", "clip", "clip_names"))
    capture = archive(tmp_path, **none)
    assert capture.skeleton is None and capture.clips is None and capture.notes == ()


def test_both_survive_dropped_points_and_splats_on_the_mesh(tmp_path):
    points = np.random.default_rng(1).normal(size=(6, 9, 3)).astype("f4")
    points[2, 4] = np.nan
    capture = archive(tmp_path, vertices=points, faces=np.array([[0, 1, 2], [5, 6, 7]]))
    splats = mesh_to_splats(capture, 50)
    assert capture.point_count == 8 and splats.point_count == 50
    assert splats.skeleton is capture.skeleton is not None and splats.clips is capture.clips is not None


def test_moving_gaussians_bring_them_too(tmp_path):
    quaternions = np.tile(np.array([1, 0, 0, 0], "f4"), (6, 9, 1))
    capture = archive(tmp_path, quat_wxyz=quaternions, scales=np.full((9, 3), 0.1, "f4"))
    assert capture.load_cloud is not None and len(capture.skeleton) == 4 and len(capture.clips) == 6


@pytest.mark.parametrize(
    "arrays, text",
    [
        ({"joint_parents": None}, "the array joint_parents is missing"),
        ({"joint_mats": None}, "the array joint_mats is missing"),
        ({"joint_mats": motion(5)}, "it has 5 frames, the capture 6"),
        ({"joint_mats": motion()[:, :3]}, r"joint_mats has shape \(6, 3, 3, 4\), expected \(6, 4, 3, 4\)"),
        ({"joint_names": np.array(["a", "a", "b", "c"])}, "two joints are called 'a'"),
        ({"joint_parents": np.array(list("abcd"))}, "the array joint_parents does not hold numbers"),
        ({"joint_parents": np.array([1, 2, 3, 0])}, "form a circle"),
        ({"joint_mats": None, "joints": np.zeros((6, 3, 3))}, "the array joints has shape"),
        ({"clip": np.zeros(5, "i4")}, "The array clip was left out"),
        ({"clip": np.zeros(6, "f4")}, "The array clip was left out"),
    ],
)
def test_what_cannot_be_used_is_left_out_and_said(tmp_path, arrays, text):
    import re

    capture = archive(tmp_path, **arrays)
    assert (capture.clips is None) == ("clip" in arrays)
    assert (capture.skeleton is None) == ("clip" not in arrays)
    (note,) = capture.notes
    assert re.search(text, note) and note.endswith(".") and not note.endswith("..")


def test_joints_without_names_are_numbered(tmp_path):
    assert archive(tmp_path, joint_names=None).skeleton.names[3] == "joint_003"


def test_rotations_are_estimated_from_positions_where_these_tell(tmp_path):
    truth = motion()
    tracks = np.einsum("fjab,jb->fja", truth[..., :3], REST) + truth[..., 3]
    capture = archive(tmp_path, joint_mats=None, joints=tracks)
    np.testing.assert_allclose(capture.skeleton.positions(), tracks, atol=1e-5)
    # The chest has two children, which fix its rotation; of the hip the spine alone is known.
    chest = capture.skeleton.joint_mats[:, 1, :, :3] @ np.swapaxes(truth[:, 1, :, :3], -1, -2)
    assert np.trace(chest, axis1=1, axis2=2).min() > 2.99
    spine = np.array([0, 1.0, 0])
    np.testing.assert_allclose(
        capture.skeleton.joint_mats[:, 0, :, :3] @ spine, truth[:, 0, :, :3] @ spine, atol=0.02
    )
    np.testing.assert_allclose(
        capture.skeleton.joint_mats[:, 2, :, :3], capture.skeleton.joint_mats[:, 1, :, :3], atol=1e-6
    )
    assert any("estimated" in note for note in capture.notes)
