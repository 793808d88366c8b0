"""The motion kernel: what its keys ignore, what it learns, and that it never runs away."""

from dataclasses import replace

import numpy as np
import pytest

from gaussianimate.core.errors import RigError
from gaussianimate.core.motion.database import Residuals
from gaussianimate.core.motion.kernel import KernelModel
from gaussianimate.core.motion.kernel_fit import CORRELATED, LASTING, add_noise, fit_kernel
from gaussianimate.core.motion.keys import (
    key_groups,
    mirrored_joints,
    motion_keys,
    moving_layout,
)
from gaussianimate.core.motion.match import match_motion
from gaussianimate.core.motion.so3 import geodesic_distance, quaternion_exp
from gaussianimate.core.motion.values import ValueSpace
from gaussianimate.core.rotations import (
    axis_angle_to_quaternion,
    normalize_quaternions,
    quaternion_multiply,
    quaternion_to_matrix,
)

UP = np.array([0.0, 1.0, 0.0])


@pytest.fixture(scope="module")
def base(puppet, swaying):
    return swaying.database(puppet, range(14))


@pytest.fixture(scope="module")
def model(base):
    return fit_kernel(base, steps=20)


def apart(one, other):
    """Largest difference of two answers: radians of turns, metres of offsets."""
    turns = geodesic_distance(one.rotations, other.rotations).max()
    return max(float(turns), float(np.abs(one.offsets - other.offsets).max()))


def test_unseen_motions_are_predicted_better_than_by_the_nearest_captured(puppet, swaying, base, model):
    kernel, nearest, rigid = [], [], []
    for seed in (100, 101, 102):
        pose = swaying.motion(seed)
        answers = (
            model.predict(*pose, swaying.FPS),
            match_motion(base, pose[0]),
            Residuals.rigid(len(pose[0]), base.bone_count),
        )
        for errors, answer in zip((kernel, nearest, rigid), answers, strict=True):
            errors.append(swaying.error(puppet, base, answer, *pose))
    assert np.mean(kernel) < 0.6 * np.mean(nearest)
    assert np.mean(kernel) < 0.4 * np.mean(rigid)


def test_velocity_is_learned(puppet, swaying, base, model):
    """The same pose, entered at different speeds, gets the sway of its speed."""
    pose = swaying.motion(7)
    still = model.predict(pose[0][20:21], pose[1][20:21], swaying.FPS)
    moving = model.predict(*pose, swaying.FPS, rows=[20])
    true = swaying.residuals(puppet, *pose)[20:21]
    assert np.abs(moving.offsets - true.offsets).mean() < 0.5 * np.abs(still.offsets - true.offsets).mean()


def test_signs_of_quaternions_do_not_matter(swaying, model):
    rotations, root = swaying.motion(103)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(*rotations.shape[:2], 1))
    answers = [model.predict(q, root, swaying.FPS) for q in (rotations, rotations * signs)]
    assert apart(*answers) < 1e-6


def test_where_a_motion_happens_and_which_way_it_faces_do_not_matter(puppet, swaying, model):
    rotations, root = swaying.motion(104)
    turn = axis_angle_to_quaternion(UP, np.array(2.1))
    elsewhere = swaying.turned(rotations, root, turn, puppet.JOINTS[0])
    moved = elsewhere[1] + [30.0, -2.0, 7.0]
    answer = model.predict(rotations, root, swaying.FPS)
    assert apart(answer, model.predict(elsewhere[0], moved, swaying.FPS)) < 1e-4


def test_tilting_the_whole_body_is_noticed(puppet, swaying, model):
    """World up is part of the key: lying down is not standing."""
    pose = swaying.motion(104)
    tilted = swaying.turned(*pose, axis_angle_to_quaternion(np.array([1.0, 0, 0]), 1.5), puppet.JOINTS[0])
    layout = model.layout
    times = np.arange(len(pose[0])) / swaying.FPS
    change = motion_keys(layout, *tilted, times) - motion_keys(layout, *pose, times)
    assert np.abs(change).max() > 0.5


def test_the_axes_of_the_capture_do_not_matter(puppet, swaying, base):
    """A capture with z up is learned as the same with y up."""
    to_z = axis_angle_to_quaternion(np.array([1.0, 0, 0]), np.array(np.pi / 2))
    matrix = quaternion_to_matrix(to_z)

    def conjugated(q):
        return np.concatenate([q[..., :1], q[..., 1:] @ matrix.T], axis=-1)

    other = replace(
        base,
        joint_positions=base.joint_positions @ matrix.T,
        rotations=conjugated(base.rotations).astype(np.float32),
        root_translations=base.root_translations @ matrix.T,
        up=matrix @ base.up,
        pivots=base.pivots @ matrix.T,
        spreads=matrix @ base.spreads @ matrix.T,
        residual_rotations=conjugated(base.residual_rotations).astype(np.float32),
        residual_offsets=(base.residual_offsets @ matrix.T).astype(np.float32),
    )
    rotations, root = swaying.motion(105)
    expected = fit_kernel(base, steps=1).predict(rotations, root, swaying.FPS)
    found = fit_kernel(other, steps=1).predict(conjugated(rotations), root @ matrix.T, swaying.FPS)
    assert np.abs(found.offsets - expected.offsets @ matrix.T).max() < 2e-3


def test_the_future_does_not_matter_and_a_live_pose_is_answered_as_in_the_sequence(swaying, model):
    rotations, root = swaying.motion(106)
    whole = model.predict(rotations, root, swaying.FPS)
    history = int(np.ceil(model.layout.history * swaying.FPS)) + 1
    for frame in (0, 3, 25, 59):
        past = slice(max(frame - history, 0), frame + 1)
        live = model.predict(rotations[past], root[past], swaying.FPS, rows=[-1])
        assert apart(live, whole[frame : frame + 1]) < 1e-5


def test_clips_do_not_look_into_each_other(swaying, model):
    one, two = swaying.motion(107), swaying.motion(108, frames=40)
    joined = [np.concatenate(parts) for parts in zip(one, two, strict=True)]
    answer = model.predict(*joined, swaying.FPS, clips=np.repeat([4, 9], [60, 40]))
    assert apart(answer[60:], model.predict(*two, swaying.FPS)) < 1e-6


def test_the_frame_rate_of_the_query_does_not_matter(swaying, model):
    coarse, fine = swaying.motion(109), swaying.motion(109, frames=237, fps=4 * swaying.FPS)
    answer = model.predict(*fine, 4 * swaying.FPS)[::4]
    assert apart(answer, model.predict(*coarse, swaying.FPS)) < 0.05


def test_small_changes_of_a_pose_change_the_answer_little(swaying, model):
    rotations, root = swaying.motion(110)
    random = np.random.default_rng(1)
    before = model.predict(rotations, root, swaying.FPS, rows=[30])
    for _ in range(10):
        nudged = rotations.copy()
        tenth_degrees = quaternion_exp(np.radians(0.1) * random.normal(size=(7, 3)))
        nudged[30] = quaternion_multiply(rotations[30], tenth_degrees)
        assert apart(model.predict(nudged, root, swaying.FPS, rows=[30]), before) < np.radians(2)


@pytest.mark.parametrize("seed", range(3))
def test_any_poses_give_finite_moderate_motion(swaying, model, base, seed):
    """Jumps look like enormous velocities; they must not throw the bones away."""
    random = np.random.default_rng(seed)
    rotations = normalize_quaternions(random.normal(size=(50, 7, 4)))
    root = 10.0 ** random.uniform(-2, 6) * random.normal(size=(50, 3))
    answer = model.predict(rotations, root, 240.0)
    assert np.isfinite(answer.rotations).all() and np.isfinite(answer.offsets).all()
    np.testing.assert_allclose(np.linalg.norm(answer.rotations, axis=-1), 1, atol=1e-6)
    assert np.abs(answer.offsets).max() < 20 * np.abs(base.residual_offsets).max()


def test_poses_that_are_not_finite_are_survived(swaying, model):
    rotations, root = swaying.motion(111)
    rotations[7, 2], root[9, 1] = np.nan, np.inf
    answer = model.predict(rotations, root, swaying.FPS)
    assert np.isfinite(answer.rotations).all() and np.isfinite(answer.offsets).all()


def test_the_same_database_gives_the_same_model(base, model):
    again = fit_kernel(base, steps=20)
    for name, array in model.to_arrays().items():
        np.testing.assert_array_equal(array, again.to_arrays()[name], err_msg=name)


def test_without_a_step_all_of_a_key_matters_alike(swaying, base):
    model = fit_kernel(base, steps=0)
    assert np.ptp(model.relevances) == 0
    answer = model.predict(*swaying.motion(100), swaying.FPS)
    assert np.isfinite(answer.offsets).all() and np.isfinite(answer.rotations).all()


def test_a_model_survives_a_file(swaying, model, tmp_path):
    np.savez(tmp_path / "kernel.npz", **model.to_arrays())
    with np.load(tmp_path / "kernel.npz") as arrays:
        again = KernelModel.from_arrays(arrays)
    pose = swaying.motion(112)
    one, two = (m.predict(*pose, swaying.FPS) for m in (model, again))
    np.testing.assert_array_equal(one.rotations, two.rotations)
    np.testing.assert_array_equal(one.offsets, two.offsets)


def test_a_model_that_is_not_whole_or_not_of_this_version_is_refused(model):
    arrays = model.to_arrays()
    with pytest.raises(RigError, match="lacks blend"):
        KernelModel.from_arrays({name: a for name, a in arrays.items() if name != "kernel_blend"})
    with pytest.raises(RigError, match="another version"):
        columns = ("key_means", "key_scales", "key_groups", "relevances", "linear")
        fewer = {f"kernel_{name}": arrays[f"kernel_{name}"][:-3] for name in columns}
        KernelModel.from_arrays({**arrays, **fewer, "kernel_centres": arrays["kernel_centres"][:, :-3]})
    with pytest.raises(RigError, match="do not fit together"):
        KernelModel.from_arrays({**arrays, "kernel_relevances": arrays["kernel_relevances"][:-3]})


@pytest.mark.parametrize("clips, frames", [(1, 60), (1, 3), (1, 1), (2, 1), (3, 10)])
def test_few_clips_and_frames_are_enough_to_fit(puppet, swaying, clips, frames):
    model = fit_kernel(swaying.database(puppet, range(clips), frames=frames), steps=3)
    answer = model.predict(*swaying.motion(113), swaying.FPS)
    assert np.isfinite(answer.rotations).all() and np.isfinite(answer.offsets).all()


def test_a_database_that_never_moves(puppet, swaying):
    base = swaying.database(puppet, range(2), frames=8)
    still = replace(
        base,
        rotations=np.repeat(base.rotations[:1], 16, axis=0),
        root_translations=np.zeros((16, 3)),
        residual_rotations=np.repeat(base.residual_rotations[:1], 16, axis=0),
        residual_offsets=np.repeat(base.residual_offsets[:1], 16, axis=0),
    )
    answer = fit_kernel(still, steps=2).predict(*swaying.motion(1), swaying.FPS)
    np.testing.assert_allclose(answer.offsets, np.repeat(base.residual_offsets[:1], 60, 0), atol=1e-4)


def test_keys_and_groups_fit_each_other(puppet, swaying, base):
    layout = moving_layout(base.parents, base.joint_positions, 1, UP, base.rotations)
    assert 0 not in layout.rotation_joints and len(layout.rotation_joints) == 6
    assert 1 not in layout.position_joints  # seen from itself the main joint stands still
    rotations, root = swaying.motion(3)
    keys = motion_keys(layout, rotations, root, np.arange(60) / swaying.FPS)
    groups, channels, kinds = key_groups(layout)
    assert keys.shape == (60, len(groups)) and groups.max() + 1 == len(channels) == len(kinds)
    assert (np.diff(groups) >= 0).all()
    pose = kinds[groups] == 0
    np.testing.assert_allclose(keys[0, ~pose], 0, atol=1e-6)  # nothing moves before the start


def test_a_slow_capture_is_looked_at_frame_by_frame(swaying, base):
    """Between its frames nothing is known, so no change there may count; the model remembers that."""
    slow = fit_kernel(replace(base, fps=5.0), steps=1)
    assert slow.layout.history == pytest.approx(6 / 5)
    again = KernelModel.from_arrays(slow.to_arrays())
    pose = swaying.motion(3)
    np.testing.assert_array_equal(slow.predict(*pose, 5.0).offsets, again.predict(*pose, 5.0).offsets)
    layout = moving_layout(base.parents, base.joint_positions, 1, UP, base.rotations, 5.0)
    keys = motion_keys(layout, *pose, np.arange(60) / 5)
    width = 9 * len(layout.rotation_joints) + 3 * len(layout.position_joints) + 3
    np.testing.assert_allclose(keys[1:, width : 2 * width], np.diff(keys[:, :width], axis=0), atol=1e-5)


def test_arms_share_their_relevance_and_the_head_has_its_own(puppet):
    np.testing.assert_array_equal(mirrored_joints(puppet.PARENTS, puppet.JOINTS), [0, 1, 2, 3, 2, 3, 6])


def test_distance_of_values_is_distance_of_points(puppet, swaying, base):
    space = ValueSpace.of(base)
    values = space.embed(base.residuals[:2])
    points = puppet.REST.reshape(base.bone_count, -1, 3).astype(float)
    first, second = (
        np.einsum(
            "bij,bnj->bni", quaternion_to_matrix(r.rotations[0].astype(float)), points - base.pivots[:, None]
        )
        + r.offsets[0][:, None]
        for r in (base.residuals[:1], base.residuals[1:2])
    )
    assert ((values[0] - values[1]) ** 2).sum() == pytest.approx(((first - second) ** 2).sum(), rel=1e-4)


def test_projection_undoes_embedding(base):
    space = ValueSpace.of(base)
    assert apart(space.project(space.embed(base.residuals)), base.residuals) < 2e-3


@pytest.mark.parametrize(("clips", "lasting"), [(3, CORRELATED), (30, CORRELATED / 2), (40, 0.0)])
def test_noise_of_few_clips_lasts_within_a_clip(clips, lasting):
    names, ticks = np.repeat(np.arange(clips), 5), np.tile(np.arange(5.0), clips)
    gram = np.zeros((5 * clips, 5 * clips))
    add_noise(gram, 0.1, names, ticks)
    np.testing.assert_allclose(np.diag(gram), 0.1)
    assert not gram[names[:, None] != names].any()
    np.testing.assert_allclose(gram[0, 1:5], 0.1 * lasting * np.exp(-0.5 * (ticks[1:5] / LASTING) ** 2))
    assert np.linalg.eigvalsh(gram).min() > 0
