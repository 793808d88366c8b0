"""The default predictor: exact where captured, as good as the kernel elsewhere, rigid far away, no pops."""

from dataclasses import replace

import numpy as np
import pytest

from gaussianimate.core.errors import RigError
from gaussianimate.core.motion.auto import KNOWN, LEAST_CLIPS, AutoLive, AutoPredictor, blend, scaled
from gaussianimate.core.motion.coverage import Coverage, coverage
from gaussianimate.core.motion.database import Residuals, bone_transforms, extend_database
from gaussianimate.core.motion.kernel_fit import fit_kernel
from gaussianimate.core.motion.match import match_motion
from gaussianimate.core.motion.so3 import geodesic_distance, quaternion_exp
from gaussianimate.core.rotations import quaternion_multiply

CLIPS = 12


@pytest.fixture(scope="module")
def base(puppet, swaying):
    return swaying.database(puppet, range(CLIPS))


@pytest.fixture(scope="module")
def auto(base):
    return AutoPredictor.of(base, fit_kernel(base, steps=15))


def test_a_captured_motion_replays_though_the_kernel_alone_does_not(puppet, base):
    """Also what looks like noise in the capture: wrinkles that no pose explains."""
    random = np.random.default_rng(4)
    wrinkles = 0.03 * random.normal(size=base.residual_offsets.shape)
    base = replace(base, residual_offsets=(base.residual_offsets + wrinkles).astype(np.float32))
    kernel = fit_kernel(base, steps=5)
    auto = AutoPredictor.of(base, kernel)
    for clip in (0, 5, 11):
        rows = np.flatnonzero(base.clips == clip)
        pose = base.rotations[rows], base.root_translations[rows]
        captured = bone_transforms(base, base.residuals[rows], *pose)
        replay, smooth = (
            puppet.error(bone_transforms(base, answer, *pose), captured)
            for answer in (auto.predict(*pose), kernel.predict(*pose, base.fps))
        )
        assert replay < 1e-3 < smooth


def test_unseen_motions_are_predicted_as_by_the_kernel(puppet, swaying, base, auto):
    for seed in (200, 201):
        pose = swaying.motion(seed)
        kernel = auto.kernel.predict(*pose, swaying.FPS)
        one, other = (swaying.error(puppet, base, r, *pose) for r in (auto.predict(*pose), kernel))
        assert one < 1.03 * other


def test_frames_between_captured_ones_are_better_than_by_the_kernel_or_by_matching(puppet, swaying):
    whole = swaying.database(puppet, range(CLIPS))
    frames = np.arange(whole.frame_count)
    kept = frames % 5 != 4
    empty = replace(
        whole,
        **{
            name: getattr(whole, name)[:0]
            for name in (
                "rotations",
                "root_translations",
                "clips",
                "captured",
                "residual_rotations",
                "residual_offsets",
            )
        },
    )
    transforms = bone_transforms(whole, whole.residuals, whole.rotations, whole.root_translations)
    gaps = extend_database(
        empty,
        whole.rotations[kept],
        whole.root_translations[kept],
        transforms[kept],
        whole.clips[kept],
        frames[kept],
    )
    kernel = fit_kernel(gaps, steps=15)
    query = whole.rotations, whole.root_translations
    answers = {
        "auto": AutoPredictor.of(gaps, kernel).predict(*query, clips=whole.clips),
        "kernel": kernel.predict(*query, whole.fps, whole.clips),
        "match": match_motion(gaps, whole.rotations, whole.clips),
    }
    errors = {
        name: puppet.error(
            bone_transforms(whole, answer, *query)[~kept],
            transforms[~kept],
        )
        for name, answer in answers.items()
    }
    assert errors["auto"] < errors["kernel"]
    assert errors["auto"] < 1.05 * errors["match"]


def test_with_few_clips_it_is_the_match(puppet, swaying):
    base = swaying.database(puppet, range(LEAST_CLIPS - 1), frames=30)
    auto = AutoPredictor.of(base)
    assert auto.kernel is None
    turns, root = swaying.motion(2, frames=30)
    turns = quaternion_multiply(turns, quaternion_exp(np.full((7, 3), np.radians(3))))
    assert 0.01 < coverage(base, turns).overall.max() < KNOWN
    np.testing.assert_allclose(
        auto.predict(turns, root).offsets, match_motion(base, turns).offsets, atol=1e-9
    )


def test_with_enough_clips_it_fits_a_kernel(puppet, swaying):
    stages = []
    base = swaying.database(puppet, range(LEAST_CLIPS), frames=12)
    auto = AutoPredictor.of(base, progress=lambda stage, fraction: stages.append(stage))
    assert auto.kernel is not None and "Motion kernel" in stages


def far_pose(angle):
    """All joints but the root turned by an angle about different axes."""
    axes = np.random.default_rng(8).normal(size=(7, 3))
    pose = quaternion_exp(angle * axes / np.linalg.norm(axes, axis=-1, keepdims=True))
    pose[0] = [1, 0, 0, 0]
    return pose


def test_far_from_all_that_was_captured_bones_follow_their_joints(base, auto):
    pose = np.repeat(far_pose(np.radians(175))[None], 8, axis=0)
    assert coverage(base, pose).parts.min() > np.radians(80)
    answer = auto.predict(pose, np.zeros((8, 3)))
    rigid = Residuals.rigid(8, base.bone_count)
    assert geodesic_distance(answer.rotations, rigid.rotations).max() < np.radians(1)
    assert np.abs(answer.offsets).max() < 0.02 * np.abs(base.residual_offsets).max()


def test_the_way_out_has_no_step(base, auto):
    """From a captured pose to far outside in quarter degrees: no bone jumps."""
    angles = np.radians(np.arange(0, 175, 0.25))
    live = AutoLive(auto)
    answers = [live.history(far_pose(a)[None], np.zeros((1, 3))).residuals for a in angles]
    offsets = np.concatenate([a.offsets for a in answers])
    turns = np.concatenate([a.rotations for a in answers])
    assert np.linalg.norm(np.diff(offsets, axis=0), axis=-1).max() < 0.02
    assert geodesic_distance(turns[1:], turns[:-1]).max() < np.radians(3)


def test_coverage_decides_how_much_of_the_correction_counts(base):
    parts = len(base.parts)
    correction = Residuals(
        np.tile(quaternion_exp(np.array([0.2, 0, 0])), (3, base.bone_count, 1)),
        np.ones((3, base.bone_count, 3)),
    )
    none = Residuals.rigid(3, base.bone_count)
    distances = np.radians(np.array([0.0, 2.0, 20.0]))
    covered = Coverage(np.repeat(distances[:, None], parts, axis=1).astype(np.float32))
    answer = blend(base, covered, correction, none)
    np.testing.assert_allclose(answer.offsets[:, 0, 0], [1, np.exp(-1), np.exp(-100)], atol=1e-4)


def test_the_fade_begins_smoothly(base):
    parts = len(base.parts)
    near = KNOWN + np.radians(np.array([-1.0, -0.01, 0.01, 1.0]))
    covered = Coverage(np.repeat(near[:, None], parts, axis=1).astype(np.float32))
    matched = Residuals(np.tile([1.0, 0, 0, 0], (4, base.bone_count, 1)), np.ones((4, base.bone_count, 3)))
    answer = blend(base, covered, matched, None)
    np.testing.assert_allclose(answer.offsets[:, 0, 0], [1, 1, 1, np.exp(-1 / 400)], atol=1e-5)


def test_scaling_by_one_and_zero(base):
    values = base.residuals[:4]
    whole, none = (scaled(values, np.full((4, base.bone_count), share)) for share in (1.0, 0.0))
    assert geodesic_distance(whole.rotations, values.rotations.astype(float)).max() < 1e-3
    np.testing.assert_allclose(none.rotations[..., 0], 1)
    np.testing.assert_array_equal(none.offsets, 0)


def test_live_with_history_replays_a_captured_motion(puppet, swaying, base, auto):
    rotations, root = swaying.motion(4)
    live = AutoLive(auto)
    for frame in (0, 15, 40):
        past = slice(max(0, frame - 12), frame + 1)
        answer = live.history(rotations[past], root[past]).residuals
        true = swaying.residuals(puppet, rotations, root)[frame : frame + 1]
        assert np.abs(answer.offsets - true.offsets).max() < 0.02


def test_live_keeps_nothing_between_calls(swaying, auto):
    rotations, root = swaying.motion(205)
    live = AutoLive(auto)
    first = live.history(rotations[:20], root[:20])
    live.history(rotations[20:40], root[20:40])
    again = live.history(rotations[:20], root[:20])
    np.testing.assert_array_equal(first.residuals.offsets, again.residuals.offsets)
    np.testing.assert_array_equal(first.residuals.rotations, again.residuals.rotations)


def test_a_kernel_of_another_rig_is_refused(base, auto):
    fewer = replace(
        base,
        bone_joints=base.bone_joints[:5],
        residual_rotations=base.residual_rotations[:, :5],
        residual_offsets=base.residual_offsets[:, :5],
    )
    with pytest.raises(RigError, match="another rig"):
        AutoPredictor.of(fewer, auto.kernel)


def test_another_capture_joins_without_a_new_fit(puppet, swaying, base, auto):
    """The kernel stays; what it misses on the new motion is corrected by the new motion."""
    pose = swaying.motion(300)
    true = swaying.residuals(puppet, *pose)
    more = extend_database(base, *pose, bone_transforms(base, true, *pose))
    answer = AutoPredictor.of(more, auto.kernel).predict(*pose)
    assert swaying.error(puppet, base, answer, *pose) < 1e-3
    assert swaying.error(puppet, base, auto.predict(*pose), *pose) > 2e-3
