"""Captures of one asset as one: common axes, common rate, clips apart."""

from dataclasses import replace

import numpy as np
import pytest

from gaussianimate.core.capture import Capture
from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.given_skeleton import GivenSkeleton
from gaussianimate.core.joined_capture import join_captures, moved_capture, resampled_capture


def cloud_of(positions):
    count = len(positions)
    turn = np.tile(np.float32([1, 0, 0, 0]), (count, 1))
    scales = np.tile(np.float32([1, 2, 3]), (count, 1))
    ones = np.ones(count, np.float32)
    return GaussianCloud(positions, turn, scales, ones, np.zeros((count, 1, 3), np.float32))


def capture(name="one", frames=4, points=5, **more):
    positions = np.random.default_rng(len(name)).normal(size=(frames, points, 3)).astype(np.float32)
    return Capture(
        name, positions, np.ones(frames, bool), lambda frame: cloud_of(positions[frame]), fps=10.0, **more
    )


def skeleton(frames, rest=((0.0, 0, 0), (1, 0, 0)), names=("a", "b")):
    mats = np.tile(np.eye(3, 4), (frames, len(names), 1, 1))
    mats[..., 3] = np.arange(frames)[:, None, None]
    return GivenSkeleton.make(names, [-1, 0], np.array(rest), mats)


def test_frames_follow_each_other_with_their_clouds_and_clips():
    first = capture("one", clips=np.int32([3, 3, 7, 7]), clip_names=("", "", "", "walk"))
    second = capture("second", 3)
    joined = join_captures(first, second)
    np.testing.assert_array_equal(joined.positions, np.concatenate([first.positions, second.positions]))
    for frame in range(7):
        np.testing.assert_array_equal(joined.load_cloud(frame).positions, joined.positions[frame])
    np.testing.assert_array_equal(joined.clips, [0, 0, 1, 1, 2, 2, 2])
    assert joined.clip_names == ("walk", "one", "second")


def test_another_up_axis_is_turned():
    first, second = capture("one", up="z"), capture("second", up="y")
    joined = join_captures(first, second)
    x, y, z = second.positions.transpose(2, 0, 1)
    np.testing.assert_allclose(joined.positions[4:], np.stack([x, -z, y], axis=-1), atol=1e-6)
    turned = joined.load_cloud(5)
    np.testing.assert_allclose(turned.positions, joined.positions[5], atol=1e-6)
    assert joined.up == "z" and any("turned" in note for note in joined.notes)


@pytest.mark.parametrize(("fps", "count"), [(20.0, 2), (5.0, 7)])
def test_another_rate_is_resampled(fps, count):
    second = replace(capture("second"), fps=fps)
    joined = join_captures(capture(), second)
    assert joined.frame_count == 4 + count and joined.fps == 10.0
    times = np.arange(count) / 10 * fps
    for time, points in zip(times, joined.positions[4:], strict=True):
        low = int(time)
        share = time - low
        expected = second.positions[low] if share == 0 else second.positions[low : low + 2].mean(axis=0)
        np.testing.assert_allclose(points, expected, atol=1e-6)
    np.testing.assert_array_equal(joined.load_cloud(5).positions, joined.positions[5])


def test_clips_are_resampled_apart_and_empty_frames_stay_empty():
    valid = np.array([True, True, True, False, True, True])
    source = replace(capture("source", 6), frame_valid=valid, clips=np.int32([0, 0, 0, 1, 1, 1]))
    source.positions[3] = np.nan
    source = replace(source, skeleton=skeleton(6))
    faster = resampled_capture(source, 20.0)
    np.testing.assert_array_equal(faster.clips, np.repeat([0, 1], 5))
    np.testing.assert_array_equal(faster.frame_valid, [True] * 5 + [False] * 2 + [True] * 3)
    assert np.isfinite(faster.positions[faster.frame_valid]).all()
    np.testing.assert_allclose(faster.skeleton.joint_mats[:, 0, 0, 3], [0, 0.5, 1, 1.5, 2, 3, 3.5, 4, 4.5, 5])


def test_skeletons_go_on_where_they_are_the_same():
    first, second = replace(capture(), skeleton=skeleton(4)), capture("second")
    assert join_captures(first, second).skeleton is None
    assert join_captures(first, replace(second, skeleton=skeleton(4, names=("a", "c")))).skeleton is None
    moved = skeleton(4, rest=((0.0, 0, 0), (2, 0, 0)))
    assert join_captures(first, replace(second, skeleton=moved)).skeleton is None
    joined = join_captures(first, replace(second, skeleton=skeleton(4))).skeleton
    assert joined is not None and joined.frame_count == 8
    np.testing.assert_array_equal(joined.joint_mats[4:], skeleton(4).joint_mats)


def test_a_moved_capture_has_its_clouds_and_joints_moved():
    source = replace(capture(), skeleton=skeleton(4))
    matrix = np.diag([2.0, 2, 2, 1])
    matrix[:3, 3] = 1, 2, 3
    moved = moved_capture(source, matrix)
    np.testing.assert_allclose(moved.positions, 2 * source.positions + [1, 2, 3], atol=1e-5)
    np.testing.assert_allclose(moved.load_cloud(1).scales, 2 * source.load_cloud(1).scales, atol=1e-5)
    np.testing.assert_allclose(
        moved.skeleton.positions(), 2 * source.skeleton.positions() + [1, 2, 3], atol=1e-9
    )
