"""Partwise motion matching: replay, invariances, recombination, iteration, odd queries."""

from dataclasses import replace

import numpy as np
import pytest

from gaussianimate.core.errors import Cancelled, CaptureError
from gaussianimate.core.motion.database import Residuals, bone_transforms, full_body
from gaussianimate.core.motion.match import MatchOptions, at_rate, match_motion
from gaussianimate.core.motion.so3 import geodesic_distance, quaternion_exp
from gaussianimate.core.rotations import normalize_quaternions, quaternion_multiply

CENTRE = MatchOptions(window="centre")


def answer(database, motion, options=None, **keywords):
    return bone_transforms(database, match_motion(database, motion[0], options=options, **keywords), *motion)


def apart(a, b):
    return max(geodesic_distance(a.rotations, b.rotations).max(), np.abs(a.offsets - b.offsets).max())


@pytest.mark.parametrize("limb", [0, 1, 2])
@pytest.mark.parametrize("whole_body", [False, True])
def test_a_captured_motion_comes_back(puppet, one_limb_each, limb, whole_body):
    database = full_body(one_limb_each) if whole_body else one_limb_each
    motion = puppet.clip(puppet.LIMBS[limb])
    truth = puppet.truth(*motion)
    assert puppet.error(answer(database, motion, CENTRE), truth) < 1e-6
    assert puppet.error(answer(database, motion), truth) < 1e-3
    assert puppet.error(answer(database, motion, MatchOptions(blend="paper", steps=12)), truth) < 1e-3


def test_the_motion_of_the_root_moves_everything_along(puppet, one_limb_each):
    rotations, roots = puppet.clip([2, 3, 4], phase=0.3)
    turn = quaternion_exp(np.array([0.4, 1.3, -0.2]))
    turned = rotations.copy()
    turned[:, 0] = quaternion_multiply(turn, rotations[:, 0])
    from gaussianimate.core.rotations import quaternion_to_matrix

    matrix, pivot = quaternion_to_matrix(turn), puppet.JOINTS[0]
    shift = np.array([3.0, -1, 2])
    before = answer(one_limb_each, (rotations, roots))
    after = answer(one_limb_each, (turned, roots @ matrix.T + shift))
    expected = matrix @ before
    expected[..., 3] += pivot + shift - matrix @ pivot
    assert np.abs(after - expected).max() < 1e-5


@pytest.mark.parametrize("step", [0.25, 0.5, 1.0])
def test_each_step_goes_its_share_of_the_way(puppet, one_limb_each, step):
    rotations, _ = puppet.clip([2, 4, 6], phase=0.5)
    start = Residuals(quaternion_exp(np.full((80, 11, 3), 0.2)), np.full((80, 11, 3), 0.1))
    goal = match_motion(one_limb_each, rotations)
    options = MatchOptions(blend="paper", levels=1, step=step, steps=6)
    end = match_motion(one_limb_each, rotations, options=options, initial=start)
    left = (1 - step) ** 6
    assert np.allclose(
        geodesic_distance(end.rotations, goal.rotations),
        left * geodesic_distance(start.rotations, goal.rotations),
        atol=1e-6,
    )
    assert np.abs(end.offsets - goal.offsets - left * (start.offsets - goal.offsets)).max() < 1e-6


def test_no_step_leaves_the_initial_guess(puppet, one_limb_each):
    rotations, _ = puppet.clip([2, 4])
    options = MatchOptions(blend="paper", step=0.0)
    rigid = match_motion(one_limb_each, rotations, options=options)
    assert np.array_equal(rigid.offsets, np.zeros((80, 11, 3)))
    assert np.array_equal(rigid.rotations, Residuals.rigid(80, 11).rotations)


def test_the_pyramid_ends_where_the_closed_form_is(puppet, one_limb_each):
    rotations, _ = puppet.clip([2, 4], phase=0.2)
    far = match_motion(one_limb_each, rotations, options=MatchOptions(blend="paper", steps=40))
    assert apart(far, match_motion(one_limb_each, rotations)) < 1e-6


def test_parts_recombine_what_was_never_seen_together(puppet):
    """The less a bone listens to its neighbours' parts the better, as here it depends on its joint alone."""
    motion = puppet.clip([2, 3])
    for limb in puppet.LIMBS[1:]:
        motion[0][:, limb] = puppet.clip(limb)[0][:, limb]
    truth = puppet.truth(*motion)
    motions = [puppet.clip(limb) for limb in puppet.LIMBS]
    hard, soft, softer = (puppet.database(motions, softness=softness) for softness in (0.0, 0.25, 0.5))
    whole = puppet.error(answer(full_body(soft), motion), truth)
    rigid = puppet.error(bone_transforms(soft, Residuals.rigid(80, 11), *motion), truth)
    assert puppet.error(answer(hard, motion), truth) < 1e-6
    assert puppet.error(answer(soft, motion), truth) < min(whole / 3, rigid / 5)
    assert puppet.error(answer(softer, motion), truth) < min(whole / 2.5, rigid / 3.5)


def test_one_part_is_the_whole_body(puppet, one_limb_each):
    single = replace(
        one_limb_each,
        parts=(np.arange(1, 7, dtype=np.int32),),
        part_leaders=np.zeros(1, np.int32),
        bone_parts=np.ones((1, 11), np.float32),
    )
    rotations, _ = puppet.clip([2, 4, 6], phase=0.4)
    a, b = match_motion(single, rotations), match_motion(full_body(one_limb_each), rotations)
    assert np.array_equal(a.rotations, b.rotations) and np.array_equal(a.offsets, b.offsets)


def test_signs_of_quaternions_do_not_matter(puppet, one_limb_each):
    rng = np.random.default_rng(1)
    rotations, _ = puppet.clip([2, 4, 6], phase=0.4)

    def flipped(q):
        return q * np.where(rng.random((*q.shape[:2], 1)) < 0.5, -1, 1).astype(q.dtype)

    other = replace(
        one_limb_each,
        rotations=flipped(one_limb_each.rotations),
        residual_rotations=flipped(one_limb_each.residual_rotations),
    )
    for options in (None, MatchOptions(blend="paper"), CENTRE):
        plain = match_motion(one_limb_each, rotations, options=options)
        assert apart(plain, match_motion(other, flipped(rotations), options=options)) < 1e-6


def test_it_is_deterministic_and_blocks_do_not_show(puppet, one_limb_each):
    rotations, _ = puppet.clip([2, 4, 6], frames=150, phase=0.4)
    first, second = (match_motion(one_limb_each, rotations) for _ in range(2))
    assert np.array_equal(first.rotations, second.rotations)
    tail = match_motion(one_limb_each, rotations[40:])
    assert apart(tail[slice(10, None)], first[slice(50, None)]) < 1e-12


def test_clips_of_a_query_do_not_touch(puppet, one_limb_each):
    one, other = puppet.clip([2], phase=0.3)[0], puppet.clip([4, 6], frames=50, phase=1.0)[0]
    both = match_motion(one_limb_each, np.concatenate([one, other]), clips=np.repeat([5, 2], [80, 50]))
    assert apart(both[slice(80)], match_motion(one_limb_each, one)) < 1e-12
    assert apart(both[slice(80, None)], match_motion(one_limb_each, other)) < 1e-12


def test_outputs_are_rigid_whatever_is_asked(puppet, one_limb_each):
    rng = np.random.default_rng(2)
    wild = normalize_quaternions(rng.normal(size=(40, 7, 4)))
    transforms = answer(one_limb_each, (wild, rng.normal(size=(40, 3))))
    assert np.isfinite(transforms).all()
    turn = transforms[..., :3]
    assert np.abs(turn @ np.swapaxes(turn, -1, -2) - np.eye(3)).max() < 1e-5
    assert np.abs(np.linalg.det(turn) - 1).max() < 1e-5


def test_rotations_that_are_not_finite_take_the_pose_before(puppet, one_limb_each):
    rotations, _ = puppet.clip([2, 3])
    held = rotations.copy()
    held[30:33, 2] = held[29, 2]
    broken = rotations.copy()
    broken[30:33, 2] = np.nan
    assert apart(match_motion(one_limb_each, broken), match_motion(one_limb_each, held)) < 1e-12


def test_a_database_of_one_frame_gives_its_value_everywhere(puppet):
    pose = puppet.clip([2, 3])[0][20:21]
    database = puppet.database([(pose, np.zeros((1, 3)))])
    rotations, _ = puppet.clip([4, 6])
    for options in (None, MatchOptions(blend="paper", steps=60)):
        values = match_motion(database, rotations, options=options)
        assert apart(values, Residuals(*(np.repeat(v, 80, 0) for v in parts(database)))) < 1e-6


def parts(database):
    return database.residual_rotations.astype(float), database.residual_offsets.astype(float)


def test_clips_and_queries_shorter_than_a_patch(puppet):
    rotations, roots = puppet.clip([2, 3])
    database = puppet.database([(rotations[:4], roots[:4]), (rotations[10:13], roots[10:13])])
    motion = rotations[:4], roots[:4]
    assert puppet.error(answer(database, motion), puppet.truth(*motion)) < 1e-3
    assert (
        puppet.error(answer(database, motion, MatchOptions(blend="paper", steps=12)), puppet.truth(*motion))
        < 1e-3
    )
    for count in (0, 1, 2):
        assert len(match_motion(database, rotations[:count])) == count


def test_a_skeleton_of_one_joint_answers_the_first_frame(puppet):
    rig = puppet.rig(*puppet.clip([2]))
    from gaussianimate.core.motion.database import build_database

    single = replace(
        rig,
        joint_names=("root",),
        joint_parents=rig.joint_parents[:1],
        joint_positions=rig.joint_positions[:1],
        bone_joints=np.zeros(11, np.int32),
        joint_rotations=rig.joint_rotations[:, :1],
    )
    database = build_database(single)
    values = match_motion(database, rig.joint_rotations[5:8, :1], options=CENTRE)
    assert apart(values, Residuals(*(np.repeat(v[:1], 3, 0) for v in parts(database)))) < 1e-6


def test_no_pops_where_patches_of_different_clips_meet(puppet):
    """Two clips whose bones sit apart; the query goes from the poses of one to those of the other."""
    rotations, roots = puppet.clip([2, 3], amplitude=0.6)
    away = puppet.truth(rotations, roots)
    away[..., 1, 3] += 0.5
    clips = np.repeat([0, 1], 80)
    from gaussianimate.core.motion.database import build_database

    other = rotations.copy()
    other[:, 6] = quaternion_exp(np.array([0, 0, 0.8]))
    turned = puppet.truth(other, roots)
    turned[..., 1, 3] += 0.5
    rig = puppet.rig(
        np.concatenate([rotations, other]),
        np.concatenate([roots, roots]),
        np.concatenate([puppet.truth(rotations, roots), turned]),
        np.tile(np.arange(80), 2),
    )
    database = full_body(build_database(rig, clips))
    query = rotations.copy()
    query[:, 6] = quaternion_exp(np.linspace(0, 1, 80)[:, None] * [0, 0, 0.8])

    def heights(options):
        joint = replace(database, rotations=database.rotations)  # offsets of a still bone: the root's
        return match_motion(joint, query, options=options).offsets[:, 0, 1]

    smooth, jumping = heights(None), heights(CENTRE)
    assert np.ptp(smooth) > 0.45 and np.ptp(jumping) > 0.45  # it goes from one clip to the other
    assert np.abs(np.diff(jumping)).max() > 0.45
    assert np.abs(np.diff(smooth)).max() < 0.5 * 0.27  # spread over the patch: at most its largest weight
    assert np.abs(np.diff(smooth, 2)).max() < 0.5 * 0.07  # and velocity changes by at most 1/16 of the jump


def test_another_rate_is_the_same_motion(puppet):
    """A query at half the capture's frames finds the capture."""
    motion = puppet.clip([2, 3], frames=81)
    database = puppet.database([motion])
    slow = motion[0][::2], motion[1][::2]
    assert puppet.error(answer(database, slow, fps=12.0), puppet.truth(*slow)) < 1e-3
    finer = at_rate(database, 2.0)
    assert finer.frame_count == 161 and finer.fps == 48
    assert np.array_equal(finer.rotations[::2], database.rotations)
    assert finer.captured.all()


def test_patches_last_as_long_at_any_rate(puppet, one_limb_each):
    """Between two captured poses that a longer patch tells apart, the rate of the query does not matter."""
    rotations, roots = puppet.clip([2, 4, 6], frames=161, phase=0.4)
    plain = bone_transforms(
        one_limb_each, match_motion(one_limb_each, rotations[::2]), rotations[::2], roots[::2]
    )
    fine = match_motion(one_limb_each, rotations, fps=48.0)
    doubled = bone_transforms(one_limb_each, fine, rotations, roots)[::2]
    moved = puppet.error(
        plain, bone_transforms(one_limb_each, Residuals.rigid(81, 11), rotations[::2], roots[::2])
    )
    assert puppet.error(plain, doubled) < 0.05 * moved


def test_options_out_of_range_are_named(puppet, one_limb_each):
    rotations, _ = puppet.clip([2])
    for options, text in (
        (MatchOptions(patch_length=4), "odd"),
        (MatchOptions(levels=0), "level"),
        (MatchOptions(step=1.5), "step"),
    ):
        with pytest.raises(CaptureError, match=text):
            match_motion(one_limb_each, rotations, options=options)


def test_it_can_be_cancelled(puppet, one_limb_each):
    def cancel(stage, fraction):
        raise Cancelled("stop")

    with pytest.raises(Cancelled):
        match_motion(one_limb_each, puppet.clip([2])[0], progress=cancel)
