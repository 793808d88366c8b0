"""Which splats a pose bends too much."""

import numpy as np
import pytest

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.errors import Cancelled, RigError
from gaussianimate.core.render.camera import Camera
from gaussianimate.core.resample.blended_motion import Bones
from gaussianimate.core.resample.criterion import _Judge, affine_errors, worst_errors
from gaussianimate.core.resample.sampled_error import even_normals, outer_quantiles, sampled_quantiles
from gaussianimate.core.resample.surroundings import Surroundings
from gaussianimate.core.resample.weight_fields import StoredField
from gaussianimate.core.rotations import affine_multiply, quaternion_to_matrix
from gaussianimate.core.selection.feather import Feather
from gaussianimate.core.selection.layer import LayerStack, SelectionLayer
from gaussianimate.core.selection.shapes import Rectangle
from gaussianimate.core.selection.skin import SkinField
from gaussianimate.core.selection.viewpoint import Viewpoint
from gaussianimate.core.skinning.skin import Skin

EPSILONS = (0.001, 0.003, 0.01, 0.03, 0.1)
ALL = ("hybrid", "estimate", "bound", "sampled")


@pytest.fixture
def bent(rng, make):
    """A cloud that fills space, its exact field, its skin and a strong pose."""
    field, cloud, pose = make.Bumps(rng, 3), make.cloud(rng, 500), make.pose(rng, 3)
    return cloud, make.skin(field, cloud.positions), pose, field


def test_criteria_agree_with_512_samples_as_two_such_runs_do(rng, make):
    agreements = {name: [] for name in ("paper", "sampled", "hybrid", "closed")}
    for _ in range(4):
        bones = int(rng.integers(2, 4))
        field, cloud, pose = make.Bumps(rng, bones), make.cloud(rng, 400), make.pose(rng, bones)
        skin = make.skin(field, cloud.positions)
        truth = affine_errors(cloud, skin, pose, field, criterion="paper")
        exact = StoredField(cloud.positions, skin)  # with the Hessians the field really has
        w, _, h = field.derivatives(cloud.positions.astype(float))
        order = np.argsort(-w, axis=1, kind="stable")
        exact._hessians = np.take_along_axis(h, order[..., None, None], 1).astype(np.float32)
        exact._slot[:] = np.arange(len(cloud))
        found = {
            "paper": affine_errors(cloud, skin, pose, field, criterion="paper", seed=1),
            "sampled": affine_errors(cloud, skin, pose, field, criterion="sampled"),
            "hybrid": affine_errors(cloud, skin, pose, field, threshold=min(EPSILONS)),
            "closed": affine_errors(cloud, skin, pose, exact),
        }
        for name, errors in found.items():
            agreements[name].append([np.mean((errors > e) == (truth > e)) for e in EPSILONS])
    mean = {name: np.mean(rows, axis=0) for name, rows in agreements.items()}
    for name in ("sampled", "hybrid", "closed"):
        assert (mean[name] >= 0.97).all(), (name, mean[name])
        assert (mean[name] >= mean["paper"] - 0.015).all(), (name, mean[name], mean["paper"])


def test_hessians_are_found_among_neighbours(rng, make):
    """In a dense cloud the closed form with estimated curvature decides as the field itself does."""
    field, pose = make.Bumps(rng, 3), make.pose(rng, 3)
    cloud = make.cloud(rng, 6000, low=-2, high=-1)
    near = np.flatnonzero(np.linalg.norm(cloud.positions, axis=1) < 1.5)  # with neighbours on all sides
    skin = make.skin(field, cloud.positions)
    truth = affine_errors(cloud, skin, pose, field, criterion="sampled")[near]
    stored = affine_errors(cloud, skin, pose)[near]
    for epsilon in (0.001, 0.003, 0.01):
        assert np.mean((stored > epsilon) == (truth > epsilon)) > 0.95


@pytest.mark.parametrize("criterion", ALL)
def test_rigid_motion_and_rest_fail_nowhere(rng, make, bent, criterion):
    cloud, skin, _, field = bent
    for pose in (np.tile(np.eye(3, 4), (3, 1, 1)), np.repeat(make.pose(rng, 1), 3, axis=0)):
        for weights in (None, field):
            assert affine_errors(cloud, skin, pose, weights, criterion=criterion).max() < 1e-6


@pytest.mark.parametrize("criterion", ALL)
def test_smaller_epsilons_fail_all_the_same_splats_and_more(bent, criterion):
    cloud, skin, pose, field = bent
    for weights in (None, field):
        failing = np.zeros(len(cloud), bool)
        for epsilon in (*EPSILONS[::-1], 1e-4):
            now = affine_errors(cloud, skin, pose, weights, criterion=criterion, threshold=epsilon) > epsilon
            assert (now >= failing).all() and now.sum() > 0
            failing = now


@pytest.mark.parametrize("criterion", [*ALL, "paper"])
def test_a_rigid_motion_afterwards_changes_no_decision(rng, make, bent, criterion):
    cloud, skin, pose, field = bent
    moved = affine_multiply(np.repeat(make.pose(rng, 1), 3, axis=0), pose)
    before, after = (affine_errors(cloud, skin, p, field, criterion=criterion) for p in (pose, moved))
    assert np.allclose(before, after, rtol=1e-5, atol=1e-9)


def hard_edge(points, rows):
    """Two bones that change over 2 cm about x = 0."""
    a = np.clip(0.5 - np.asarray(points, float)[:, 0] / 0.02, 0, 1)
    slope = np.where((a > 0) & (a < 1), -50.0, 0)
    gradients = np.zeros((len(a), 2, 3))
    gradients[:, 0, 0], gradients[:, 1, 0] = slope, -slope
    return np.tile(np.array([0, 1], np.int32), (len(a), 1)), np.stack([a, 1 - a], axis=1), gradients


def test_an_edge_beside_the_centre_is_seen_where_the_splat_itself_knows_nothing(make):
    """There all derivatives of the weights vanish; the true quantile is 0.233."""
    f32 = np.float32
    cloud = GaussianCloud(
        np.array([[0.05, 0, 0]], f32),
        np.array([[1, 0, 0, 0]], f32),
        np.array([[0.1, 0.02, 0.02]], f32),
        np.ones(1, f32),
        np.zeros((1, 1, 3), f32),
    )
    turn = np.array([[np.cos(0.6), -np.sin(0.6), 0, 0.2], [np.sin(0.6), np.cos(0.6), 0, 0], [0, 0, 1, 0]])
    pose = np.stack([turn, np.eye(3, 4)])
    skin = make.skin(hard_edge, cloud.positions)
    only_one = Skin(skin.indices[:, 1:], skin.weights[:, 1:], skin.gradients[:, 1:])
    assert affine_errors(cloud, only_one, pose).max() == 0
    for known in (skin, only_one):
        assert abs(affine_errors(cloud, known, pose, hard_edge, threshold=0.01)[0] - 0.233) < 0.01


def test_bones_that_take_turns_among_the_strongest_are_no_error(make):
    """Layers give five bones a share; which of the last two is cut off changes at x = 0, with a jump."""
    camera = Camera.orthographic((0, -4, 0), (0, 0, 0), (0, 0, 1), 2, 400, 400, 0.1, 100)
    view = Viewpoint(camera.view, camera.projection, (0, 0, 400, 400))
    names = [f"bone {k}" for k in range(5)]
    everywhere, left, right = (Rectangle((x, 200), (200, 900)) for x in (200, 0, 400))
    layers = [SelectionLayer(name, view, everywhere, Feather(0), 0.25) for name in names[:3]]
    layers += [SelectionLayer(names[3], view, left, Feather(400, "linear"), 0.2)]
    layers += [SelectionLayer(names[4], view, right, Feather(400, "linear"), 0.2)]
    positions = np.stack([np.linspace(-0.01, 0.01, 21), np.zeros(21), np.zeros(21)], axis=1)
    cloud = make.cloud(np.random.default_rng(0), 21)
    cloud.positions[:], cloud.scales[:] = positions, 0.003
    field = SkinField(LayerStack(tuple(names), layers))
    skin = make.skin(field, cloud.positions)
    bones = np.tile(np.eye(4)[:3], (5, 1, 1))
    bones[4, 2, 3] = 1.0  # by a metre: the jump is of 10 cm
    for criterion in ("hybrid", "sampled"):
        assert affine_errors(cloud, skin, bones, field, criterion=criterion).max() < 1e-3


def test_few_points_decide_as_many_at_narrow_edges(rng, make):
    cloud, pose = make.cloud(rng, 2000, low=-2.5, high=-1), make.pose(rng, 2, angle=0.5, shift=0.1)
    cloud.positions[:, 0] *= 0.1
    skin = make.skin(hard_edge, cloud.positions)
    whole = affine_errors(cloud, skin, pose, hard_edge, criterion="sampled")
    for epsilon in (0.003, 0.01, 0.03):
        found = affine_errors(cloud, skin, pose, hard_edge, threshold=epsilon)
        assert 0.1 < np.mean(found > epsilon) < 0.9
        assert np.mean((found > epsilon) == (whole > epsilon)) > 0.99


def test_the_outer_half_of_the_points_finds_what_all_do(rng, make):
    """In soft fields and at hard edges, in needles, discs and balls; and never more than all."""
    cloud, pose = make.cloud(rng, 1000, low=-2.5, high=-1), make.pose(rng, 2, angle=0.5, shift=0.1)
    cloud.scales[::3] *= [[1, 0.1, 0.1]]
    cloud.scales[1::3] *= [[1, 1, 0.1]]
    cloud.positions[:, 0] *= 0.1
    axes = quaternion_to_matrix(cloud.rotations) * cloud.scales[:, None, :]
    bones = Bones.of(pose, np.zeros(3))
    for field in (hard_edge, make.Bumps(rng, 2)):
        around = Surroundings(cloud.positions.astype(float), axes.astype(float), np.arange(1000), field)
        whole = sampled_quantiles(around, bones)
        found = outer_quantiles(around, around.linear_maps(bones))
        assert (found <= whole * (1 + 1e-9)).all()
        assert np.isclose(found, whole, rtol=1e-9).mean() > 0.8
        for epsilon in EPSILONS:
            assert np.mean((found > epsilon) != (whole > epsilon)) <= 0.002


def test_the_worst_pose_counts(rng, make, bent):
    cloud, skin, pose, field = bent
    poses = np.stack([pose, make.pose(rng, 3), np.tile(np.eye(3, 4), (3, 1, 1))])
    for weights in (None, field):
        each = [affine_errors(cloud, skin, one, weights) for one in poses]
        assert np.array_equal(affine_errors(cloud, skin, poses, weights), np.max(each, axis=0))


def test_the_field_is_asked_once_for_all_poses(rng, make, bent):
    cloud, skin, pose, field = bent
    asked = []

    def counted(points, rows):
        asked.append(len(points))
        return field(points, rows)

    one = worst_errors(cloud, skin, pose, counted, threshold=0.01, overshoots=True)
    alone = sum(asked)
    asked.clear()
    many = worst_errors(cloud, skin, np.stack([pose] * 7), counted, threshold=0.01, overshoots=True)
    assert sum(asked) == alone > 14 * len(cloud)
    np.testing.assert_array_equal(many.quantiles, one.quantiles)
    np.testing.assert_array_equal(many.overshoots, one.overshoots)


def recorded(patch, owner, name):
    """Return a list that what a method returns is added to from now on."""
    found, method = [], getattr(owner, name)

    def recording(self, *given):
        found.append(method(self, *given))
        return found[-1]

    patch.setattr(owner, name, recording)
    return found


def chain_poses(rng, make, bones):
    """Each bone of a chain turned alone: those below go with it, those above stay."""
    turns = make.pose(rng, bones, angle=1.2, shift=0.2)
    return np.stack(
        [
            [turns[turned] if bone >= turned else np.eye(3, 4) for bone in range(bones)]
            for turned in range(bones)
        ]
    )


def test_poses_that_turn_one_bone_are_judged_where_it_bends_something(rng, make, monkeypatch):
    """With the same result as everywhere, bit by bit; and for most splats not at all."""
    field, cloud = make.Bumps(rng, 8), make.cloud(rng, 3000)
    whole, poses = make.skin(field, cloud.positions), chain_poses(rng, make, 8)
    skin = Skin(
        whole.indices[:, :2],
        whole.weights[:, :2] / whole.weights[:, :2].sum(1)[:, None],
        whole.gradients[:, :2],
    )
    skin.gradients[:, 1] = -skin.gradients[:, 0]
    skin.weights[::5], skin.gradients[::5] = (1, 0), 0  # of one bone alone
    for threshold, overshoots in ((0.0, True), (0.01, True), (0.01, False)):
        with monkeypatch.context() as patch:
            judged = recorded(patch, _Judge, "_bent")
            found = worst_errors(cloud, skin, poses, threshold=threshold, overshoots=overshoots)
            patch.setattr(_Judge, "_bent", lambda self, bones, part: np.arange(part.stop - part.start))
            expected = worst_errors(cloud, skin, poses, threshold=threshold, overshoots=overshoots)
        np.testing.assert_array_equal(found.quantiles, expected.quantiles)
        np.testing.assert_array_equal(found.overshoots, expected.overshoots)
        assert found.quantiles.max() > 0.01 and found.overshoots.any() == overshoots
        assert 0.05 < sum(map(len, judged)) / (len(poses) * len(cloud)) < 0.5


def test_layers_are_judged_where_a_pose_bends_something_too(rng, make, monkeypatch):
    camera = Camera.orthographic((0, -4, 0), (0, 0, 0), (0, 0, 1), 2, 400, 400, 0.1, 100)
    view = Viewpoint(camera.view, camera.projection, (0, 0, 400, 400))
    names = tuple(f"bone {k}" for k in range(5))
    layers = [
        SelectionLayer(name, view, Rectangle((40 + 80 * k, 200), (40, 300)), Feather(40))
        for k, name in enumerate(names)
    ]
    cloud, field = make.cloud(rng, 1200, low=-2.5, high=-1), SkinField(LayerStack(names, tuple(layers)))
    cloud.positions[:] = rng.uniform(-1, 1, (1200, 3))
    skin, poses = make.skin(field, cloud.positions), chain_poses(rng, make, 5)
    judged = recorded(monkeypatch, Surroundings, "bent_by")
    found = worst_errors(cloud, skin, poses, field, threshold=0.01, overshoots=True)
    assert sum(map(len, judged)) < 0.7 * len(poses) * len(cloud)
    monkeypatch.setattr(Surroundings, "bent_by", lambda self, *given: np.arange(len(self.rows)))
    expected = worst_errors(cloud, skin, poses, field, threshold=0.01, overshoots=True)
    np.testing.assert_allclose(found.quantiles, expected.quantiles, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.overshoots, expected.overshoots)
    assert 0.01 < np.mean(found.quantiles > 0.01) < 0.9


def test_overshoot_is_the_error_over_the_posed_size(rng, make, bent):
    from gaussianimate.core.deform.deform import deform_cloud

    cloud, skin, pose, _ = bent
    found = worst_errors(cloud, skin, pose, overshoots=True)
    size = deform_cloud(cloud, skin, pose, rotate_sh=False, scale_floor=0).scales.max(axis=1)
    assert np.allclose(found.overshoots, found.quantiles / size, rtol=1e-3)


def test_the_errors_do_not_depend_on_the_parts_they_are_found_in(bent):
    cloud, skin, pose, field = bent
    some = np.arange(0, len(cloud), 3)
    whole = affine_errors(cloud, skin, pose, field)
    part = affine_errors(cloud.take(some), skin.take(some), pose, field, some)
    assert np.allclose(whole[some], part, rtol=1e-5, atol=1e-9)


def test_broken_splats_and_bones_do_not_fail(bent):
    cloud, skin, pose, _ = bent
    cloud.positions[0], cloud.scales[1], pose[0, 0, 0] = np.nan, np.inf, np.nan
    found = affine_errors(cloud, skin, pose)
    assert np.isfinite(found).all() and found[0] == 0


def test_cancelling_and_misfits(bent):
    cloud, skin, pose, _ = bent

    def cancel(stage, fraction):
        raise Cancelled("no")

    with pytest.raises(Cancelled):
        affine_errors(cloud, skin, pose, progress=cancel)
    with pytest.raises(RigError):
        affine_errors(cloud, skin, pose[:2])
    with pytest.raises(RigError):
        affine_errors(cloud, skin.take(np.arange(3)), pose)


def test_even_normals_are_normal():
    z = even_normals(4096)
    assert np.abs(z.mean(axis=0)).max() < 0.01
    assert np.abs(np.cov(z.T) - np.eye(3)).max() < 0.02
    assert abs(np.quantile((z**2).sum(axis=1), 0.95) - 7.815) < 0.1
