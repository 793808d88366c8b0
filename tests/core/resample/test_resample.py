"""Splitting clouds, and the loop that does it until all follow."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial import KDTree

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.deform.deform import deform_cloud
from gaussianimate.core.errors import Cancelled, RigError
from gaussianimate.core.resample.chunks import together
from gaussianimate.core.resample.criterion import affine_errors, worst_errors
from gaussianimate.core.resample.dictionary import load_dictionary
from gaussianimate.core.resample.resample import (
    SEARCH,
    ResampleOptions,
    finer_steps,
    radius,
    resample,
    split_all,
)
from gaussianimate.core.resample.split import child_shapes, split_cloud
from gaussianimate.core.rotations import quaternion_multiply, quaternion_to_matrix
from gaussianimate.core.skinning.skin import Skin, make_skin


@pytest.fixture
def bent(rng, make):
    """A cloud, its skin, the field that made it and a pose."""
    field, cloud, pose = make.Bumps(rng, 3), make.cloud(rng, 400, degree=1), make.pose(rng, 3)
    return cloud, make.skin(field, cloud.positions), field, pose


def one_splat(scales, opacity=0.5, rotation=(1, 0, 0, 0)):
    f32 = np.float32
    return GaussianCloud(
        np.zeros((1, 3), f32),
        np.array([rotation], f32),
        np.array([scales], f32),
        np.array([opacity], f32),
        np.zeros((1, 1, 3), f32),
    )


def unmoved(count):
    return Skin(
        np.zeros((count, 1), np.int32), np.ones((count, 1), np.float32), np.zeros((count, 1, 3), np.float32)
    )


def test_untouched_splats_stay_bit_by_bit_and_in_order(rng, make):
    cloud = make.cloud(rng, 50, degree=2)
    rows = np.array([0, 7, 8, 49])
    found, parents = split_cloud(cloud, rows, load_dictionary())
    assert len(found) == 50 + 4 * len(rows) and (np.diff(parents) >= 0).all()
    untouched = ~np.isin(parents, rows)
    for name in cloud.__dataclass_fields__:
        assert np.array_equal(getattr(found, name)[untouched], getattr(cloud, name)[parents[untouched]])
    for name in ("rotations", "sh"):
        assert np.array_equal(getattr(found, name), getattr(cloud, name)[parents])
    assert (np.bincount(parents)[rows] == 5).all()


def test_children_do_not_ask_how_a_splat_names_its_axes():
    shapes = child_shapes(one_splat([0.3, 0.05, 0.1]), np.array([0]), load_dictionary())
    half = np.sqrt(0.5)
    # The same splat a quarter turn about z, with x and y exchanged.
    turned = child_shapes(
        one_splat([0.05, 0.3, 0.1], rotation=(half, 0, 0, half)), np.array([0]), load_dictionary()
    )
    for a, b in ((shapes.scales, turned.scales[:, [1, 0, 2]]), (shapes.opacities, turned.opacities)):
        assert np.allclose(a, b, rtol=1e-5)
    apart = np.abs(np.abs(shapes.positions) - np.abs(turned.positions)).max()
    assert apart < 1e-6, "up to a mirror image, of which there is no telling"


def test_children_turn_with_their_parent(rng, make):
    cloud = make.cloud(rng, 30)
    turn = np.array([0.5, -0.5, 0.1, 0.7], np.float32)
    turn /= np.linalg.norm(turn)
    turned = GaussianCloud(
        cloud.positions @ quaternion_to_matrix(turn).T,
        quaternion_multiply(turn, cloud.rotations),
        cloud.scales,
        cloud.opacities,
        cloud.sh,
    )
    rows = np.arange(30)
    before, after = (child_shapes(each, rows, load_dictionary()) for each in (cloud, turned))
    assert np.allclose(before.positions @ quaternion_to_matrix(turn).T, after.positions, atol=1e-5)
    assert np.array_equal(before.scales, after.scales)


@pytest.mark.parametrize("mode", ["nearest", "trilinear"])
def test_beyond_the_table_children_scale_with_the_splat(mode):
    """Ratios of 1e8 and 1e4 have the same whitened children, so places along the axis scale exactly."""
    rows = np.array([0])
    edge = child_shapes(one_splat([1, 0.01, 0.01]), rows, load_dictionary(), mode)
    beyond = child_shapes(one_splat([100, 0.01, 0.01]), rows, load_dictionary(), mode)
    assert np.allclose(beyond.positions[:, 0], 100 * edge.positions[:, 0], rtol=1e-6)
    assert np.allclose(beyond.scales, edge.scales * [100, 1, 1], rtol=1e-6)


def test_splitting_all_halves_and_carries_everything(bent):
    cloud, skin, _, _ = bent
    found = split_all(cloud, skin, min_opacity=0)
    assert len(found.cloud) == len(found.skin) == 5 * len(cloud)
    assert np.array_equal(found.origins, np.repeat(np.arange(len(cloud)), 5))
    assert (found.depths == 1).all() and found.passes == (len(cloud),)
    assert np.array_equal(found.cloud.sh, cloud.sh[found.origins])
    ratio = found.cloud.scales.reshape(-1, 5, 3).max(axis=(1, 2)) / cloud.scales.max(axis=1)
    assert 0.45 < ratio.mean() < 0.65
    assert np.allclose(found.skin.weights.sum(axis=1), 1, atol=1e-5)
    assert np.abs(found.skin.gradients.sum(axis=1)).max() < 1e-4
    assert (found.skin.weights[:, 1:] <= found.skin.weights[:, :-1]).all()


def test_splitting_all_keeps_within_a_budget_or_says_so(bent):
    cloud, skin, _, _ = bent
    cloud.opacities[:] = 1
    cloud.opacities[: len(cloud) // 2] = 0.01  # those stay whole
    assert len(split_all(cloud, skin, budget=3).cloud) == 3 * len(cloud)
    told = (
        f"makes {3 * len(cloud):,} of {len(cloud):,}, but a budget of 2.5 allows {5 * len(cloud) // 2:,}; set"
    )
    with pytest.raises(RigError, match=told):
        split_all(cloud, skin, budget=2.5)


def test_adaptive_resampling_ends_with_nothing_bent(bent):
    cloud, skin, field, pose = bent
    for weights in (field, None):
        options = ResampleOptions(epsilon=0.01, budget=100, max_depth=8, min_opacity=0)
        found = resample(cloud, skin, pose, options, weights)
        assert found.left == 0 and not found.notes and found.quantiles.max() <= 0.01
        assert len(found.cloud) == len(cloud) + 4 * sum(found.passes) and len(found.passes) > 1
        assert found.depths.max() == len(found.passes)
        again = affine_errors(found.cloud, found.skin, pose, weights and field, found.origins)
        if weights is not None:
            assert (again <= 0.01).all(), "judged anew, as a whole"
        whole = np.flatnonzero(found.depths == 0)
        for name in cloud.__dataclass_fields__:
            assert np.array_equal(
                getattr(found.cloud, name)[whole], getattr(cloud, name)[found.origins[whole]]
            )


def test_every_pass_brings_errors_down(bent):
    """The worst of each first splat's descendants, on the average of those that fail, and their number."""
    cloud, skin, field, pose = bent
    start = affine_errors(cloud, skin, pose, field, threshold=0.01)
    failing = (start > 0.01) & (cloud.opacities >= 0.05)
    means, counts = [start[failing].mean()], [failing.sum()]
    for depth in (1, 2, 3, 4):
        options = ResampleOptions(epsilon=0.01, budget=100, max_depth=depth)
        found = resample(cloud, skin, pose, options, field)
        worst = np.zeros(len(cloud))
        np.maximum.at(worst, found.origins, found.quantiles)
        means.append(worst[failing].mean())
        counts.append((worst[failing] > 0.01).sum())
    assert (np.diff(means) < 0).all() and (np.diff(counts) <= 0).all() and counts[-1] < 0.5 * counts[0]


@pytest.mark.parametrize("epsilon", [0.003, 0.01, 0.03, 0.1])
def test_the_share_of_what_fails_drops_with_every_pass(bent, epsilon):
    """By area: five children of a splat that must be split once more would count for more than it did."""
    cloud, skin, field, pose = bent
    shares = []
    for depth in range(5):
        options = ResampleOptions(epsilon=epsilon, budget=1000, max_depth=depth)
        found = resample(cloud, skin, pose, options, field)
        area = np.sort(found.cloud.scales, axis=1)[:, 1:].prod(axis=1, dtype=float)
        area[found.cloud.opacities < 0.05] = 0  # these stay whole
        shares.append(area[found.quantiles > epsilon].sum() / area.sum())
    assert shares[0] > 0.1 and all(b < a or a == b == 0 for a, b in pairwise(shares))


def test_children_of_a_field_get_its_weights_at_their_own_centres(bent):
    cloud, skin, field, pose = bent
    found = resample(cloud, skin, pose, ResampleOptions(epsilon=0.01), field)
    new = np.flatnonzero(found.depths > 0)
    indices, weights, gradients = field(found.cloud.positions[new].astype(float), None)
    assert np.array_equal(found.skin.indices[new], indices)
    assert np.allclose(found.skin.weights[new], weights, atol=1e-6)
    assert np.allclose(found.skin.gradients[new], gradients, atol=1e-5)


def test_children_of_stored_weights_come_near_the_field_they_came_from(rng, make):
    field, pose = make.Bumps(rng, 3), make.pose(rng, 3)
    cloud = make.cloud(rng, 4000, low=-1.6, high=-1)
    skin = make.skin(field, cloud.positions)
    found = resample(cloud, skin, pose, ResampleOptions(epsilon=0.003, budget=100))
    new = np.flatnonzero((found.depths > 0) & (np.linalg.norm(found.cloud.positions, axis=1) < 1.5))
    assert len(new) > 500

    def dense(indices, weights):
        table = np.zeros((len(indices), 3))
        np.put_along_axis(table, indices.astype(int), weights, axis=1)
        return table

    truth = dense(*field(found.cloud.positions[new].astype(float), None)[:2])
    second = np.abs(dense(found.skin.indices[new], found.skin.weights[new]) - truth)
    parents = found.origins[new]
    step = (found.cloud.positions[new] - cloud.positions[parents])[:, None, :]
    first = skin.weights[parents] + (skin.gradients[parents] * step).sum(axis=2)
    first = np.abs(dense(skin.indices[parents], first) - truth)
    assert second.mean() < 0.5 * first.mean(), "curvature halves the error of a linear continuation"


def test_the_budget_goes_to_the_worst(bent):
    cloud, skin, field, pose = bent
    found = resample(cloud, skin, pose, ResampleOptions(epsilon=1e-4, budget=1.5), field)
    assert len(found.cloud) <= 1.5 * len(cloud) and len(found.cloud) > 1.5 * len(cloud) - 4
    assert found.left > 0 and found.spent and "the budget is spent" in found.notes[0]
    ample = resample(cloud, skin, pose, ResampleOptions(epsilon=1e-4, budget=50, max_depth=1), field)
    assert ample.left > 0 and not ample.spent and "or were split often enough" in ample.notes[0]
    assert "budget" not in " ".join(ample.notes)
    errors = affine_errors(cloud, skin, pose, field)
    split = np.unique(found.origins[found.depths > 0])
    may = cloud.opacities >= 0.05
    kept = np.setdiff1d(np.flatnonzero(may), split)
    assert errors[split].min() >= errors[kept].max()


def test_chunks_hold_splats_that_are_near_to_each_other(rng):
    points = rng.uniform(-1, 3, (4096, 3)).astype(np.float32)
    points[5], points[700] = np.nan, np.inf
    order = together(points)
    assert (np.sort(order) == np.arange(4096)).all()
    kept = points[order[~np.isin(order, (5, 700))]].astype(float)
    sizes = [np.ptp(kept[start : start + 64], axis=0).max() for start in range(0, len(kept), 64)]
    assert np.median(sizes) < 2.1  # a 64th of the volume is a cube of 1, and lies across few of these
    assert (together(np.full((3, 3), np.nan)) == np.arange(3)).all() and not len(together(np.zeros((0, 3))))


def test_poses_at_rest_and_rigid_ones_split_nothing(rng, make, bent):
    cloud, skin, field, _ = bent
    for pose in (np.tile(np.eye(3, 4), (3, 1, 1)), np.repeat(make.pose(rng, 1), 3, axis=0)):
        for options in (ResampleOptions(epsilon=1e-5), ResampleOptions()):
            for weights in (None, field):
                found = resample(cloud, skin, pose, options, weights)
                assert found.passes == () and found.cloud is cloud and not found.notes


def test_the_search_ends_with_the_first_epsilon_that_is_clean(bent, make):
    cloud, skin, field, pose = bent
    found = resample(cloud, skin, pose, ResampleOptions(budget=50), field)
    assert {1, 0.1, 0.01, 0.001} < set(SEARCH) and found.epsilon in SEARCH[2:]
    larger = SEARCH[SEARCH.index(found.epsilon) - 1]
    for epsilon, clean in ((found.epsilon, True), (larger, False)):
        left = resample(cloud, skin, pose, ResampleOptions(epsilon=epsilon, budget=50), field).cloud
        its_skin = make.skin(field, left.positions)
        errors = worst_errors(left, its_skin, pose, field, overshoots=True).overshoots.astype(float)
        sticking = np.average(np.maximum(errors - 0.5, 0), weights=left.opacities)
        assert (sticking < 1e-3) == clean
    same = resample(cloud, skin, pose, ResampleOptions(epsilon=found.epsilon, budget=50), field)
    assert len(same.cloud) == len(found.cloud)
    assert np.allclose(same.cloud.positions, found.cloud.positions)
    tight = resample(cloud, skin, pose, ResampleOptions(budget=1.2), field)
    assert tight.epsilon > found.epsilon and len(tight.cloud) <= 1.2 * len(cloud)
    assert f"an epsilon below {tight.epsilon:g} m" in tight.notes[-1] and not tight.spent
    assert "larger budget" in tight.notes[-1] and not any("larger budget" in note for note in found.notes)


def test_the_search_goes_on_for_small_clouds(bent):
    """What is a thousand times smaller, in the same pose, is split alike."""
    cloud, skin, field, pose = bent
    tiny = replace(cloud, positions=cloud.positions / 1000, scales=cloud.scales / 1000)
    small_skin = Skin(skin.indices, skin.weights, skin.gradients * 1000)
    small_pose = pose.copy()
    small_pose[:, :, 3] /= 1000
    whole = resample(cloud, skin, pose, ResampleOptions(budget=50))
    small = resample(tiny, small_skin, small_pose, ResampleOptions(budget=50))
    assert small.epsilon == pytest.approx(whole.epsilon / 1000) and sum(small.passes) > 10
    assert abs(len(whole.cloud) - len(small.cloud)) <= 8
    assert [finer_steps(reach) for reach in (50, 0.9, 0.1, 0.05, 0.001)] == [0, 0, 0, 1, 2]


def test_relative_epsilons_follow_the_size_of_the_cloud(bent):
    cloud, skin, field, pose = bent
    found = resample(cloud, skin, pose, ResampleOptions(epsilon=0.004, relative=True), field)
    assert found.epsilon == pytest.approx(0.004 * radius(cloud.positions))


def test_several_poses_split_for_the_worst_of_them(rng, make, bent):
    cloud, skin, field, pose = bent
    poses = np.stack([pose, make.pose(rng, 3)])
    options = ResampleOptions(epsilon=0.01, max_depth=1, budget=10)
    split = [
        np.unique(found.origins[found.depths > 0])
        for found in (resample(cloud, skin, p, options, field) for p in (poses[0], poses[1], poses))
    ]
    assert np.array_equal(np.union1d(split[0], split[1]), split[2])


def test_no_needles_where_a_sleeve_is_lifted_off_the_body():
    """Sheets of discs that touch at rest; one goes over from bone to bone and is turned up by 70 degrees."""
    rng, count, f32 = np.random.default_rng(5), 4000, np.float32
    p = rng.random((count, 3)) * [1, 0.5, 0]
    sleeve = np.arange(count) < count // 2
    p[sleeve, 2] = 0.012
    t = np.clip((p[:, 0] - 0.1) / 0.25, 0, 1)
    share = np.where(sleeve, t * t * (3 - 2 * t), 0)
    discs = np.tile(np.array([0.012, 0.012, 0.001], f32), (count, 1))
    upright = np.tile(np.array([1, 0, 0, 0], f32), (count, 1))
    opaque = np.full(count, 0.9, f32)
    cloud = GaussianCloud(p.astype(f32), upright, discs, opaque, np.zeros((count, 1, 3), f32))
    skin = make_skin(p, np.tile([0, 1], (count, 1)), np.stack([1 - share, share], axis=1))
    pose = np.tile(np.eye(3, 4), (2, 1, 1))
    angle, hinge = -np.radians(70), np.array([0.2, 0, 0])
    pose[1, :, :3] = quaternion_to_matrix(np.array([np.cos(angle / 2), 0, np.sin(angle / 2), 0]))
    pose[1, :, 3] = hinge - pose[1, :, :3] @ hinge
    found = resample(cloud, skin, pose, ResampleOptions(epsilon=0.003))
    assert not found.left
    for splats, weights in ((cloud, skin), (found.cloud, found.skin)):
        posed = deform_cloud(splats, weights, pose)
        assert posed.scales.max() < 0.02  # gradients that hold for both sheets: 0.4
        assert reach_beyond_others(posed) < 0.04  # and 0.8


def reach_beyond_others(cloud):
    """How far from all centres the tips of splats lie, two standard deviations out, at most."""
    longest = cloud.scales.argmax(axis=1)[:, None, None]
    axes = np.take_along_axis(quaternion_to_matrix(cloud.rotations.astype(float)), longest, axis=2)[..., 0]
    tips = 2 * cloud.scales.max(axis=1, keepdims=True) * axes
    tree = KDTree(cloud.positions)
    return max(tree.query(cloud.positions + side * tips)[0].max() for side in (1, -1))


def test_odd_splats_stay_whole(rng, make, bent):
    """Transparent, tiny, without size or with values that are not finite."""
    cloud, skin, field, pose = bent
    cloud.opacities[:2] = 0, 0.04
    cloud.scales[2], cloud.scales[3] = 0, 1e-5
    cloud.positions[4], cloud.scales[5], cloud.opacities[6] = np.nan, np.inf, np.nan
    found = resample(cloud, skin, pose, ResampleOptions(epsilon=1e-6))
    assert (np.bincount(found.origins)[:7] == 1).all() and found.left > 0
    assert (np.bincount(split_all(cloud, skin).origins)[[0, 1, 2, 4, 5, 6]] == 1).all()


def test_flat_needle_like_and_huge_splats_are_split(rng):
    for scales in ([0.5, 0.5, 0], [0.5, 0, 0], [1e4, 1e-4, 1e-4], [0.5, 0.5, 0.5], [100, 100, 100]):
        found = split_all(one_splat(scales, 1.0), unmoved(1))
        assert len(found.cloud) == 5 and np.isfinite(found.cloud.positions).all()
        assert (found.cloud.scales >= 0).all() and (found.cloud.opacities < 1).all()
        assert found.cloud.scales.max() < 0.85 * max(scales)


def test_an_empty_cloud(make):
    cloud, skin = make.cloud(np.random.default_rng(0), 0), unmoved(0)
    assert len(resample(cloud, skin, np.eye(3, 4)[None]).cloud) == 0
    assert len(split_all(cloud, skin).cloud) == 0


def test_a_static_bone_may_be_among_the_influences(rng, make):
    cloud = make.cloud(rng, 200, low=-1, high=-0.5)
    a = np.clip(0.5 + 0.5 * cloud.positions[:, 0], 0.05, 0.95).astype(np.float32)
    gradients = np.zeros((200, 2, 3), np.float32)
    gradients[:, 0, 0], gradients[:, 1, 0] = 0.5, -0.5
    skin = Skin(np.tile(np.array([0, -1], np.int32), (200, 1)), np.stack([a, 1 - a], axis=1), gradients)
    found = resample(cloud, skin, make.pose(rng, 1), ResampleOptions(epsilon=0.003))
    assert len(found.passes) and set(np.unique(found.skin.indices)) == {-1, 0}


def test_mistakes_are_said_in_a_sentence(bent):
    cloud, skin, _, pose = bent
    for options in (ResampleOptions(epsilon=0), ResampleOptions(budget=0.5), ResampleOptions(max_depth=300)):
        with pytest.raises(RigError):
            resample(cloud, skin, pose, options)
    with pytest.raises(RigError, match="rows"):
        resample(cloud, skin.take(np.arange(5)), pose)
    with pytest.raises(RigError, match="bone"):
        resample(cloud, skin, pose[:1])
    for name in ("criterion", "lookup"):
        with pytest.raises(RigError, match=f"There is no {name} 'magic'; use one of"):
            resample(cloud, skin, pose, ResampleOptions(**{name: "magic"}))
    for name in ("min_size", "min_opacity"):
        with pytest.raises(RigError, match="must be 0 or more"):
            resample(cloud, skin, pose, ResampleOptions(**{name: np.nan}))
    for wrong in (pose[0], np.zeros((3, 4, 4)), np.zeros(12)):
        with pytest.raises(RigError, match="matrices of bones"):
            resample(cloud, skin, wrong)
    broken = pose.copy()
    broken[1, 2, 3] = np.nan
    with pytest.raises(RigError, match="not finite"):
        resample(cloud, skin, broken)

    def cancel(stage, fraction):
        raise Cancelled("no")

    with pytest.raises(Cancelled):
        resample(cloud, skin, pose, progress=cancel)
