"""SSDR: each half step is exact and lowers the error, known skinning comes back, hard input ends well."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from gaussianimate.core.errors import CaptureError
from gaussianimate.core.rigging.decomposition.alternation import Alternation, Fit, fit_to_bones
from gaussianimate.core.rigging.decomposition.bones import BoneSolver
from gaussianimate.core.rigging.decomposition.clustering import candidate_motions, cluster
from gaussianimate.core.rigging.decomposition.exchange import Exchange
from gaussianimate.core.rigging.decomposition.lbs import sparse_weights
from gaussianimate.core.rigging.decomposition.motion_matrix import Alignment
from gaussianimate.core.rigging.decomposition.ssdr import decompose, fit_weights, replay, replay_rmse
from gaussianimate.core.rigging.decomposition.weights import WeightSolver, solve_simplex

DATA = Path(__file__).parents[4] / "shared" / "data"


@pytest.fixture(scope="module")
def smooth(chains):
    """rest, frames, true weights (N, 5) and poses of a smoothly skinned chain."""
    rest, poses = chains.chain(1000, 5, 24)
    weights = chains.smooth_weights(rest, 5)
    return rest, chains.skin(rest, weights, poses), weights, poses


def random_rigid(rng, count):
    return Rotation.random(count, random_state=rng).as_matrix(), rng.normal(size=(count, 1, 3))


def check(result, points, frames):
    """What holds for every decomposition."""
    assert result.indices.dtype == np.int32 and len(result.weights) == points
    assert result.transforms.shape[0] == frames and result.transforms.shape[2:] == (3, 4)
    assert np.isfinite(result.transforms).all() and np.isfinite(result.rmse)
    assert (result.weights >= 0).all() and (np.diff(result.weights, axis=1) <= 0).all()
    assert np.allclose(result.weights.sum(1), 1, atol=1e-12)
    assert (result.indices[result.weights == 0] == 0).all()
    assert result.indices.max() < result.transforms.shape[1]
    rotation = result.transforms[..., :3]
    assert np.allclose(rotation @ rotation.swapaxes(-1, -2), np.eye(3), atol=1e-9)
    assert np.allclose(np.linalg.det(rotation), 1)


# --- the two half steps


def test_weights_come_back_from_true_bones(chains, smooth):
    rest, frames, truth, poses = smooth
    indices, weights = fit_weights(rest, frames, poses)
    dense = np.zeros_like(truth)
    np.put_along_axis(dense, indices, weights, 1)  # unused slots come last and hold 0: mend bone 0
    dense[:, 0] = (weights * (indices == 0)).sum(1)
    assert np.abs(dense - truth).max() < 1e-6
    assert replay_rmse(rest, frames, indices, weights, poses) < 1e-9
    assert np.allclose(replay(rest, indices, weights, poses), chains.skin(rest, dense, poses), atol=1e-12)


def test_weights_are_the_exact_optimum():
    """Against a general constrained solver, and against each smaller support."""
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(25, 4, 30))
    target = (columns * rng.dirichlet(np.ones(4) * 0.4, 25)[..., None]).sum(1) + 0.3 * rng.normal(
        size=(25, 30)
    )
    gram, right = columns @ columns.swapaxes(1, 2), (columns @ target[..., None])[..., 0]
    found = solve_simplex(gram, right, 4)
    for g, r, w in zip(gram, right, found, strict=True):
        best = minimize(
            lambda v, g=g, r=r: v @ g @ v - 2 * v @ r,
            np.full(4, 0.25),
            jac=lambda v, g=g, r=r: 2 * (g @ v - r),
            bounds=[(0, 1)] * 4,
            constraints={"type": "eq", "fun": lambda v: v.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 300},
        )
        assert w @ g @ w - 2 * w @ r <= best.fun + 1e-9
    for influences in (1, 2, 3):
        assert (np.count_nonzero(solve_simplex(gram, right, influences), axis=1) <= influences).all()


def test_bones_of_one_motion_do_not_share_points(smooth):
    rest, frames, _, poses = smooth
    indices, weights = fit_weights(rest, frames, np.concatenate([poses, poses], 1))
    assert np.isfinite(weights).all()
    doubled = [
        len(set(row[w > 0] % 5)) < np.count_nonzero(w) for row, w in zip(indices, weights, strict=True)
    ]
    assert not any(doubled)


def test_bones_come_back_from_true_weights(smooth):
    rest, frames, truth, poses = smooth
    alignment = Alignment.fit(rest, frames)
    solver = BoneSolver(alignment.matrix(rest, frames), truth)
    bones = np.zeros((5, 4, 3 * len(frames)))
    for _ in range(200):
        bones = solver.sweep(bones)
    assert np.abs(alignment.world(bones) - poses.transpose(1, 0, 2, 3)).max() < 1e-8


def test_bone_update_is_the_residual_kabsch_and_cannot_be_improved(chains):
    rng = np.random.default_rng(5)
    rest, poses = chains.chain(400, 4, 6)
    weights = rng.dirichlet(np.ones(4) * 0.5, 400)
    frames = chains.skin(rest, weights, poses) + rng.normal(size=(6, 400, 3)) * 0.02
    alignment = Alignment.fit(rest, frames)
    start = alignment.local(poses)
    swept = BoneSolver(alignment.matrix(rest, frames), weights).sweep(start)
    first = alignment.world(swept)[0]  # (F, 3, 4); the others were still at their start
    w = weights[:, 0]
    others = weights.copy()
    others[:, 0] = 0
    left = frames - chains.skin(rest, others, poses)
    pm = w**2 @ rest / (w**2).sum()
    qm = np.einsum("n,fna->fa", w, left) / (w**2).sum()
    h = np.einsum("n,na,fnb->fab", w, rest - pm, left - w[:, None] * qm[:, None])
    u, _, vt = np.linalg.svd(h)
    v = vt.swapaxes(1, 2).copy()
    v[:, :, 2] *= np.linalg.det(v @ u.swapaxes(1, 2))[:, None]
    rotation = v @ u.swapaxes(1, 2)
    assert np.abs(first[..., :3] - rotation).max() < 1e-9
    assert np.abs(first[..., 3] - (qm - rotation @ pm)).max() < 1e-9

    def error(motion):
        return (
            (left - w[:, None] * (rest @ motion[..., :3].swapaxes(1, 2) + motion[:, None, :, 3])) ** 2
        ).sum()

    for _ in range(300):
        turn = Rotation.from_rotvec(rng.normal(size=3) * 0.01).as_matrix()
        nudged = np.concatenate(
            [turn @ first[..., :3], first[..., 3:] + rng.normal(size=(6, 3, 1)) * 0.003], -1
        )
        assert error(nudged) >= error(first)


def test_error_never_rises(smooth):
    rest, frames, _, _ = smooth
    motion = Alignment.fit(rest, frames).matrix(rest, frames)
    fit = fit_to_bones(motion, cluster(motion, 6).bones, 4)
    totals = [fit.total]
    for _ in range(6):  # plain half steps
        solver = BoneSolver(motion, fit.weights)
        bones = solver.sweep(fit.bones)
        totals.append(solver.error(bones))
        fit = Fit(bones, *WeightSolver(bones).solve(motion, 4, fit.weights))
        totals.append(fit.total)
    alternation = Alternation(motion, 4)
    for _ in range(12):  # with momentum
        fit = alternation.round(fit)
        totals.append(fit.total)
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(totals))
    assert totals[-1] < totals[0] / 4


def test_lost_bone_is_exchanged(chains):
    rest, poses = chains.chain(1000, 5, 24)
    frames = chains.skin(rest, np.eye(5)[chains.parts(rest, 5)], poses)
    alignment = Alignment.fit(rest, frames)
    motion = alignment.matrix(rest, frames)
    thrown = poses.copy()
    thrown[:, 3] = np.c_[np.eye(3), [100.0, 100.0, 100.0]]
    fit = fit_to_bones(motion, alignment.local(thrown), 4)
    before = fit.total
    fit = Exchange(motion, candidate_motions(motion), 4).search(fit, 4, lambda rounds=0: None)
    assert before > 100 * fit.total
    assert np.sqrt(fit.total / len(rest) / 24) < 1e-3 * chains.diagonal(rest)


# --- the whole


@pytest.mark.parametrize("bones", [5, 8, 12])
def test_smooth_chain_is_a_tenth_of_its_rigid_clusters(smooth, bones):
    rest, frames, _, _ = smooth
    motion = Alignment.fit(rest, frames).matrix(rest, frames)
    rigid = np.sqrt(cluster(motion, bones).history[-1] / len(rest) / len(frames))
    result = decompose(rest, frames, bones)
    check(result, len(rest), len(frames))
    assert result.rmse <= rigid / 10
    assert result.transforms.shape[1] <= bones
    plain = np.sqrt(
        ((replay(rest, result.indices, result.weights, result.transforms) - frames) ** 2).sum(-1).mean()
    )
    assert result.rmse == pytest.approx(plain, rel=1e-9)


def test_rigid_parts_need_no_more_bones_than_there_are(chains):
    rest, poses = chains.chain(1000, 5, 24)
    frames = chains.skin(rest, np.eye(5)[chains.parts(rest, 5)], poses)
    result = decompose(rest.astype(np.float32), frames.astype(np.float32))
    check(result, 1000, 24)
    assert result.transforms.shape[1] == 5
    assert result.rmse < 1e-6 * chains.diagonal(rest)


def test_noise_is_not_fitted(chains, smooth):
    rest, frames, _, poses = smooth
    noisy = frames + np.random.default_rng(2).normal(size=frames.shape) * 0.01
    alignment = Alignment.fit(rest, noisy)
    motion = alignment.matrix(rest, noisy)
    fit = fit_to_bones(motion, alignment.local(poses), 4)
    alternation = Alternation(motion, 4)
    for _ in range(5):
        fit = alternation.round(fit)
    rmse = np.sqrt(fit.total / len(rest) / len(frames))
    assert 0.9 <= rmse / (np.sqrt(3) * 0.01) <= 1.02
    clean = chains.skin(rest, fit.weights, alignment.world(fit.bones).transpose(1, 0, 2, 3))
    assert chains.rms(clean - frames) < 0.01


def test_where_the_capture_stands_does_not_matter(smooth):
    rest, frames, _, _ = smooth
    rng = np.random.default_rng(4)
    expected = decompose(rest, frames, 6).rmse
    turn, shift = random_rigid(rng, len(frames))
    assert decompose(rest, frames @ turn + shift, 6).rmse == pytest.approx(expected, abs=1e-8)
    turn, shift = random_rigid(rng, 1)
    assert decompose((rest @ turn + shift)[0], frames, 6).rmse == pytest.approx(expected, abs=1e-8)


def test_order_of_points_does_not_matter(smooth):
    rest, frames, _, _ = smooth
    order = np.random.default_rng(6).permutation(len(rest))
    one, other = decompose(rest, frames, 6), decompose(rest[order], frames[:, order], 6)
    assert np.abs(one.transforms - other.transforms).max() < 1e-6
    assert np.abs(one.weights[order] - other.weights).max() < 1e-6


def test_same_input_same_result(smooth):
    rest, frames, _, _ = smooth
    one, other = decompose(rest, frames, 6), decompose(rest, frames, 6)
    assert (one.weights == other.weights).all() and (one.transforms == other.transforms).all()


def test_single_precision_input_is_as_good(chains, smooth):
    rest, frames, _, _ = smooth
    double = decompose(rest, frames, 6).rmse
    single = decompose(rest.astype(np.float32), frames.astype(np.float32), 6).rmse
    assert single == pytest.approx(double, rel=0.01, abs=1e-5 * chains.diagonal(rest))


def test_many_points_are_fitted_on_a_subset_and_all_get_weights(chains):
    rest, poses = chains.chain(20_000, 5, 6)
    frames = chains.skin(rest, chains.smooth_weights(rest, 5), poses).astype(np.float32)
    result = decompose(rest.astype(np.float32), frames, 5)
    check(result, 20_000, 6)
    assert result.rmse < 2e-3 * chains.diagonal(rest)


@pytest.mark.parametrize("influences", [1, 2, 3])
def test_fewer_influences(smooth, influences):
    rest, frames, _, _ = smooth
    result = decompose(rest, frames, 6, influences)
    check(result, len(rest), len(frames))
    assert result.weights.shape == (len(rest), influences)


def test_progress_advances_and_stages_are_named(smooth):
    rest, frames, _, _ = smooth
    calls = []
    decompose(rest, frames, 6, progress=lambda stage, fraction: calls.append((stage, fraction)))
    for stage in ("Motion clusters", "Skin bones", "Weights"):
        fractions = [fraction for name, fraction in calls if name == stage]
        assert fractions and all(0 <= a <= b <= 1 for a, b in pairwise([0, *fractions])), stage


# --- hard input


def test_rigid_motion_is_one_bone():
    """57 frames that move as one, 20 bones asked."""
    rng = np.random.default_rng(0)
    rest = rng.normal(size=(500, 3))
    turn, shift = random_rigid(rng, 57)
    for decimals in (16, 4):
        result = decompose(np.round(rest, decimals), np.round(rest @ turn + shift, decimals), 20)
        check(result, 500, 57)
        assert result.transforms.shape[1] == 1
        assert result.notes == ("The motion is rigid, 1 bone found.",)
        assert result.rmse < 2 * 10.0**-decimals + 1e-12


def test_no_motion_is_one_bone_and_said():
    rest = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
    for frames in (np.repeat(rest[None], 5, 0), rest[None]):
        result = decompose(rest, frames, 20)
        check(result, 100, len(frames))
        assert result.transforms.shape[1] == 1 and result.notes[0].startswith("No motion")
        assert result.rmse < 1e-6


def test_hardly_any_motion_and_two_parts_end():
    """64 bones asked of parts that barely move."""
    rng = np.random.default_rng(0)
    rest = rng.normal(size=(300, 3))
    rest[150:] += 10
    frames = np.repeat(rest[None], 12, 0)
    frames[:, 150:] += 1e-2 * np.sin(np.arange(12))[:, None, None]
    result = decompose(rest, frames, 64)
    check(result, 300, 12)
    assert result.rmse < 1e-5


@pytest.mark.parametrize("points", [1, 2, 3, 7, 8])
def test_a_handful_of_points(points):
    rng = np.random.default_rng(points)
    result = decompose(rng.normal(size=(points, 3)), rng.normal(size=(6, points, 3)), 20)
    check(result, points, 6)


def test_duplicate_points_share_their_weights(smooth):
    rest, frames, _, _ = smooth
    result = decompose(np.repeat(rest[:200], 5, 0), np.repeat(frames[:, :200], 5, 1), 8)
    check(result, 1000, len(frames))
    weights = result.weights.reshape(200, 5, -1)
    assert np.abs(weights - weights[:, :1]).max() < 1e-9


def test_all_points_in_one_place():
    rng = np.random.default_rng(0)
    check(decompose(np.zeros((100, 3)), rng.normal(size=(5, 100, 3)), 20), 100, 5)


def test_one_frame_unlike_the_rest(smooth):
    rest, frames, _, _ = smooth
    result = decompose(rest, frames[5:6], 20)
    check(result, len(rest), 1)
    assert result.rmse < 1e-2


def test_what_cannot_be_fitted_is_said():
    rest = np.zeros((10, 3))
    with pytest.raises(CaptureError, match="no points or no usable frames"):
        decompose(rest, np.zeros((0, 10, 3)))
    with pytest.raises(CaptureError, match="not finite"):
        decompose(rest, np.full((2, 10, 3), np.nan))


def test_points_without_weight_follow_the_root_and_rows_are_normalised():
    dense = np.zeros((3, 9))
    dense[1] = np.arange(9) / 21.2  # nine bones, sum 1.7
    dense[2, 4] = 0.2
    indices, weights = sparse_weights(dense, 4)
    assert indices.tolist() == [[0, 0, 0, 0], [8, 7, 6, 5], [4, 0, 0, 0]]
    assert np.allclose(weights.sum(1), 1) and weights[0, 0] == 1
    assert np.allclose(weights[1], np.array([8, 7, 6, 5]) / 26)


@pytest.mark.skipif(not (DATA / "fox" / "fox.npz").exists(), reason="the measured sequences are not here")
@pytest.mark.parametrize(("name", "dem_bones"), [("fox", 0.188), ("cesium-man", 0.076)])
def test_real_sequences_beat_dem_bones(name, dem_bones):
    """Dem Bones without smoothness, 20 bones, 4 influences: error in % of the box diagonal."""
    data = np.load(DATA / name / f"{name}.npz")
    result = decompose(data["rest"], data["vertices"], 20)
    check(result, len(data["rest"]), len(data["vertices"]))
    assert 100 * result.rmse / np.linalg.norm(np.ptp(data["rest"], axis=0)) < 0.7 * dem_bones
