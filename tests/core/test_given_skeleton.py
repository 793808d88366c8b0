"""Skeletons that captures bring: order, checks, frames, transforms."""

import numpy as np
import pytest

from gaussianimate.core.capture import Capture
from gaussianimate.core.errors import CaptureError
from gaussianimate.core.given_skeleton import GivenSkeleton
from gaussianimate.core.rotations import affine_multiply, axis_angle_to_quaternion, quaternion_to_matrix


def mats(frames=5, joints=3, seed=0):
    rng = np.random.default_rng(seed)
    turns = axis_angle_to_quaternion(
        rng.normal(size=(frames, joints, 3)), rng.uniform(0, 2, (frames, joints))
    )
    return np.concatenate([quaternion_to_matrix(turns), rng.normal(size=(frames, joints, 3, 1))], axis=-1)


def skeleton(frames=5):
    rest = np.arange(9.0).reshape(3, 3)
    return GivenSkeleton.make(["hip", "knee", "foot"], [-1, 0, 1], rest, mats(frames))


def test_joints_are_ordered_parents_before_children():
    rest, moved = np.arange(12.0).reshape(4, 3), mats(joints=4)
    found = GivenSkeleton.make(["toe", "hip", "foot", "tail"], [2, -1, 1, 1], rest, moved)
    assert found.names == ("hip", "foot", "tail", "toe")
    np.testing.assert_array_equal(found.parents, [-1, 0, 0, 1])
    order = [1, 2, 3, 0]
    np.testing.assert_array_equal(found.rest, rest[order])
    np.testing.assert_array_equal(found.joint_mats, moved[:, order])


def test_an_order_that_will_do_is_kept_and_a_last_row_is_cut_off():
    four = np.concatenate([mats(joints=4), np.broadcast_to([0, 0, 0, 1.0], (5, 4, 1, 4))], axis=2)
    found = GivenSkeleton.make("abcd", [-1, 0, 1, 0], np.zeros((4, 3)), four)
    assert found.names == tuple("abcd") and found.joint_mats.shape == (5, 4, 3, 4)


@pytest.mark.parametrize(
    "change, text",
    [
        ({"names": ()}, "no joints"),
        ({"names": ("a", "b", "a")}, "two joints are called 'a'"),
        ({"parents": [-1, 0]}, r"parents has shape \(2,\), expected \(3,\)"),
        ({"parents": [-1, 0, 3]}, "parents name joints outside 0..2"),
        ({"parents": [-1, 2, 1]}, "form a circle"),
        ({"parents": [2, 0, 1]}, "form a circle"),
        ({"rest": np.full((3, 3), np.nan)}, "rest holds values that are not finite"),
        ({"joint_mats": np.zeros((5, 3, 3))}, "joint_mats has shape"),
        ({"joint_mats": np.zeros((5, 3, 3, 4))}, "scales a joint to nothing"),
    ],
)
def test_what_is_no_skeleton_is_said_in_one_sentence(change, text):
    values = {"names": "abc", "parents": [-1, 0, 1], "rest": np.zeros((3, 3)), "joint_mats": mats()}
    with pytest.raises(CaptureError, match=text) as raised:
        GivenSkeleton.make(**values | change)
    assert str(raised.value).count(".") - str(raised.value).count("..") * 2 == 1


def test_a_moved_capture_has_a_moved_skeleton():
    before, matrix = skeleton(), np.eye(4)
    matrix[:3] = mats(1, 1, seed=4)[0, 0]
    matrix[:3, :3] *= 2.5
    after = before.moved(matrix)
    np.testing.assert_allclose(
        after.positions(), before.positions() @ matrix[:3, :3].T + matrix[:3, 3], atol=1e-12
    )
    point = np.array([0.3, -1, 2])
    posed = before.joint_mats[2, 1] @ [*point, 1]
    np.testing.assert_allclose(
        after.joint_mats[2, 1] @ [*(matrix @ [*point, 1])[:3], 1], (matrix @ [*posed, 1])[:3], atol=1e-12
    )
    np.testing.assert_allclose(
        affine_multiply(matrix[:3], before.joint_mats[0, 0])[:3, 3],
        (matrix @ [*before.joint_mats[0, 0, :, 3], 1])[:3],
    )


def test_some_frames_of_a_capture_are_in_step():
    positions = np.random.default_rng(0).normal(size=(5, 4, 3)).astype(np.float32)
    capture = Capture(
        "c",
        positions,
        np.array([1, 1, 0, 1, 1], bool),
        load_cloud=lambda frame: frame,
        clips=np.array([0, 0, 1, 1, 2], np.int32),
        clip_names=("a", "b", "c"),
        skeleton=skeleton(),
    )
    some = capture.take_frames(np.array([4, 2]))
    np.testing.assert_array_equal(some.positions, positions[[4, 2]])
    assert some.frame_valid.tolist() == [True, False] and some.clips.tolist() == [2, 1]
    assert some.load_cloud(0) == 4 and some.clip_names == ("a", "b", "c")
    np.testing.assert_array_equal(some.skeleton.joint_mats, capture.skeleton.joint_mats[[4, 2]])
    assert capture.take_frames(np.array([1])).take_frames(np.array([0])).load_cloud(0) == 1
