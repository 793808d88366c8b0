"""Coverage and the answers to one pose at a time."""

import numpy as np
import pytest

from gaussianimate.core.motion.coverage import coverage, pose_search
from gaussianimate.core.motion.database import extend_database
from gaussianimate.core.motion.geodesic import KeySearch, window_rows
from gaussianimate.core.motion.live import LiveMatcher, moment_weights
from gaussianimate.core.motion.so3 import geodesic_distance, quaternion_exp
from gaussianimate.core.rotations import normalize_quaternions, quaternion_multiply


def apart(a, b):
    return max(geodesic_distance(a.rotations, b.rotations).max(), np.abs(a.offsets - b.offsets).max())


def test_captured_poses_are_covered(puppet, one_limb_each):
    for limb in puppet.LIMBS:
        found = coverage(one_limb_each, puppet.clip(limb)[0])
        assert found.parts.shape == (80, len(one_limb_each.parts))
        assert found.overall.max() < 1e-5


def test_coverage_grows_along_a_geodesic(puppet):
    rest = np.tile([1.0, 0, 0, 0], (1, 7, 1))
    database = puppet.database([(rest, np.zeros((1, 3)))])
    angles = np.radians(np.arange(0, 180, 5))
    poses = np.tile(rest, (len(angles), 1, 1))
    poses[:, 3] = quaternion_exp(angles[:, None] * [0, 0.6, 0.8])
    found = coverage(database, poses)
    assert (np.diff(found.overall) > 0).all()
    leader = list(database.part_leaders).index(2)
    assert np.allclose(found.parts[:, leader], angles / np.sqrt(3), atol=1e-5)  # joints 1, 2 and 3
    assert found.parts[:, list(database.part_leaders).index(4)].max() < 1e-6


def test_the_root_does_not_count(puppet, one_limb_each):
    pose = puppet.clip(puppet.LIMBS[0])[0][20:21]
    pose[:, 0] = quaternion_exp(np.array([0, 2.0, 0]))
    assert coverage(one_limb_each, pose).overall[0] < 1e-5


def test_more_clips_never_worsen_coverage(puppet):
    rng = np.random.default_rng(3)
    queries = normalize_quaternions([1, 0, 0, 0] + 0.4 * rng.normal(size=(60, 7, 4)))
    database = puppet.database([puppet.clip([2, 3])])
    before = coverage(database, queries).parts
    for limb in ([4, 5], [6, 1], [2, 6]):
        motion = puppet.clip(limb, phase=0.4)
        database = extend_database(database, *motion, puppet.truth(*motion))
        after = coverage(database, queries).parts
        assert (after <= before).all()
        before = after


def test_the_search_finds_what_trying_all_finds(puppet):
    rng = np.random.default_rng(5)
    keys = normalize_quaternions([1, 0, 0, 0] + 0.7 * rng.normal(size=(400, 7, 4))).astype(np.float32)
    clips, parts = np.repeat([0, 1], 200), (np.array([1, 2, 3]), np.array([4]))
    offsets, weights = np.array([-1, 0, 1]), np.array([0.25, 0.5, 0.25])
    poses = normalize_quaternions([1, 0, 0, 0] + 0.7 * rng.normal(size=(30, 7, 4))).astype(np.float32)
    rows = window_rows(np.zeros(30), offsets)
    frames, distances = KeySearch(keys, clips, parts, offsets, weights).nearest(poses, rows, 3)
    windows = window_rows(clips, offsets)
    for part, joints in enumerate(parts):
        angles = geodesic_distance(
            poses[rows][:, None][..., joints, :].astype(float), keys[windows][..., joints, :].astype(float)
        )
        exact = np.sqrt((angles**2).mean(axis=-1) @ weights)
        assert np.allclose(distances[part], np.sort(exact, axis=1)[:, :3], atol=1e-5)
        assert np.array_equal(frames[part], np.argsort(exact, axis=1)[:, :3])


def test_equally_near_frames_come_in_order():
    keys = np.tile(np.array([1, 0, 0, 0], np.float32), (100, 2, 1))
    search = KeySearch(keys, np.zeros(100), (np.array([1]),), np.zeros(1, int), np.ones(1))
    frames, distances = search.nearest(keys[:1], np.zeros((1, 1), int), 3)
    assert frames.tolist() == [[[0, 1, 2]]] and distances.max() == 0


def test_a_live_answer_to_a_captured_pose_is_near_the_capture(puppet, one_limb_each):
    motion = puppet.clip([4, 5])
    matcher = LiveMatcher(one_limb_each)
    truth = puppet.truth(*motion)
    for frame in (0, 13, 40, 79):
        pose, history = motion[0][frame], motion[0][max(frame - 6, 0) : frame + 1]
        for answer in (matcher.pose(pose), matcher.history(history)):
            transforms = matcher.transforms(answer, pose, motion[1][frame])
            assert puppet.error(transforms[None], truth[frame, None]) < 2e-3
            assert answer.coverage.overall[0] < 1e-5


def test_a_live_answer_is_continuous_and_knows_no_past(puppet, one_limb_each):
    matcher = LiveMatcher(one_limb_each)
    pose = puppet.clip([2, 3])[0][17]
    start = matcher.pose(pose).residuals
    turn = quaternion_exp(np.radians(0.1) * np.array([0.3, 0.5, 0.8]) / np.linalg.norm([0.3, 0.5, 0.8]))
    before, largest = start, 0.0
    for _ in range(150):
        pose = pose.copy()
        pose[3] = quaternion_multiply(pose[3], turn)
        now = matcher.pose(pose).residuals
        largest = max(largest, float(geodesic_distance(before.rotations, now.rotations).max()))
        before = now
    assert np.degrees(largest) < 2
    assert apart(start, before) > 1e-3  # it did move
    again = matcher.pose(puppet.clip([2, 3])[0][17]).residuals
    assert np.array_equal(again.rotations, start.rotations) and np.array_equal(again.offsets, start.offsets)


def test_playback_of_a_history_has_no_pops(puppet, one_limb_each):
    rotations, _ = puppet.clip([2, 4, 6], frames=160, phase=0.3)
    matcher = LiveMatcher(one_limb_each)
    answers = [matcher.history(rotations[max(f - 6, 0) : f + 1]).residuals for f in range(160)]
    turns = np.concatenate([answer.rotations for answer in answers])
    steps = np.degrees(geodesic_distance(turns[1:], turns[:-1]))
    smooth = np.degrees(2 * np.pi / 160 * 0.9)  # how fast the joints turn, a frame
    assert steps.max() < 4 * smooth


def test_a_short_history_repeats_its_oldest_pose(puppet, one_limb_each):
    rotations, _ = puppet.clip([2, 3])
    matcher = LiveMatcher(one_limb_each)
    padded = np.concatenate([np.repeat(rotations[20:21], 4, axis=0), rotations[20:23]])
    assert apart(matcher.history(rotations[20:23]).residuals, matcher.history(padded).residuals) < 1e-12
    long = matcher.history(rotations[:23]).residuals
    assert apart(long, matcher.history(rotations[16:23]).residuals) < 1e-12


def test_one_captured_frame_and_broken_poses(puppet):
    rotations, roots = puppet.clip([2, 3])
    matcher = LiveMatcher(puppet.database([(rotations[20:21], roots[20:21])]))
    value = matcher.database.residuals
    pose = rotations[50].copy()
    pose[2] = np.nan
    for answer in (matcher.pose(pose), matcher.history(rotations[48:51])):
        assert apart(answer.residuals, value) < 1e-6


def test_weights_of_moments_fall_to_zero_with_distance():
    near = np.radians(np.array([[0.0, 1, 2.1, 5], [5, 5, 5, 5], [3, 3, 3, 60]], np.float32)) ** 2
    weights = moment_weights(near)
    assert np.allclose(weights.sum(axis=1), 1)
    assert weights[0, 0] > 0.99 and (weights[0, 2:] == 0).all()
    assert np.allclose(weights[1], 0.25)
    assert weights[2, 3] == 0 and np.allclose(weights[2, :3], 1 / 3)
    edge = np.radians(np.array([[0.0, 1.99], [0, 2.0], [0, 2.01]], np.float32)) ** 2
    assert 0 < moment_weights(edge)[0, 1] < 1e-6 and (moment_weights(edge)[1:, 1] < 1e-12).all()


def test_many_equal_poses_do_not_make_the_answer_jump(puppet):
    """Two still clips, each of one pose held for long; the query goes from one to the other."""
    rest = np.tile([1.0, 0, 0, 0], (50, 7, 1))
    bent = rest.copy()
    bent[:, 2] = quaternion_exp(np.array([0, 0, 0.6]))
    matcher = LiveMatcher(puppet.database([(rest, np.zeros((50, 3))), (bent, np.zeros((50, 3)))]))
    query = np.repeat(rest[:1], 600, axis=0)
    query[:, 2] = quaternion_exp(np.linspace(0, 0.6, 600)[:, None] * [0, 0, 1.0])
    turns = np.concatenate([matcher.pose(pose).residuals.rotations for pose in query])
    whole = geodesic_distance(turns[0], turns[-1]).max()
    assert whole > np.radians(3)
    assert geodesic_distance(turns[1:], turns[:-1]).max() < 0.02 * whole


def test_histories_at_another_rate(puppet):
    motion = puppet.clip([2, 3], frames=81)
    matcher = LiveMatcher(puppet.database([motion]), fps=12.0)
    assert matcher.history_length == 4
    rotations = motion[0][::2]
    answer = matcher.history(rotations[10:17])
    transforms = matcher.transforms(answer, rotations[16], motion[1][32])
    assert puppet.error(transforms[None], puppet.truth(*motion)[32, None]) < 2e-3


def test_a_finer_rate_compares_the_same_moments(puppet, one_limb_each):
    rotations, _ = puppet.clip([2, 4, 6], frames=161, phase=0.4)
    plain, fine = LiveMatcher(one_limb_each), LiveMatcher(one_limb_each, fps=48.0)
    assert (plain.history_length, fine.history_length) == (7, 13)
    for frame in (30, 80, 120):
        coarse = plain.history(rotations[frame - 12 : frame + 1 : 2]).residuals
        assert apart(coarse, fine.history(rotations[frame - 12 : frame + 1]).residuals) < 0.02


def test_a_search_is_shared(puppet, one_limb_each):
    poses = puppet.clip([2, 4], phase=0.3)[0]
    shared = coverage(one_limb_each, poses, pose_search(one_limb_each))
    assert np.array_equal(shared.parts, coverage(one_limb_each, poses).parts)
    assert shared.overall == pytest.approx(shared.parts.max(axis=1))
