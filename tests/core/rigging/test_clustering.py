"""Motion clusters on chains of known parts, and on input that has no or hardly any parts."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from gaussianimate.core.errors import Cancelled
from gaussianimate.core.rigging.decomposition.clustering import MIN_POINTS, cluster, cluster_motion
from gaussianimate.core.rigging.decomposition.motion_matrix import Alignment
from gaussianimate.core.rigging.decomposition.sampling import farthest_points, stratified_subset
from gaussianimate.core.rigging.kabsch import fit_rigid, kabsch


@pytest.mark.parametrize(("points", "bones", "frames"), [(1500, 5, 40), (1200, 8, 30)])
def test_rigid_parts_are_found_exactly(chains, points, bones, frames):
    rest, poses = chains.chain(points, bones, frames)
    truth = chains.parts(rest, bones)
    moved = chains.skin(rest, np.eye(bones)[truth], poses)
    labels, transforms = cluster_motion(rest, moved)
    assert len(transforms) == bones
    pure = sum(np.bincount(truth[labels == b]).max() for b in range(bones))
    assert pure == points
    replay = np.einsum("nfac,nc->fna", transforms[labels][..., :3], rest) + transforms[labels][
        ..., 3
    ].swapaxes(0, 1)
    assert chains.rms(replay - moved) < 1e-6 * chains.diagonal(rest)


def test_error_falls_with_every_step_and_clusters_keep_their_points(chains):
    rest, poses = chains.chain(1500, 5, 20)
    moved = chains.skin(rest, chains.smooth_weights(rest, 5), poses)
    matrix = Alignment.fit(rest, moved).matrix(rest, moved)
    found = cluster(matrix, 50)
    assert 20 < len(found.bones) <= 50
    assert (np.diff(found.history) < 0).all()
    assert np.bincount(found.labels, minlength=len(found.bones)).min() >= MIN_POINTS
    assert matrix.single_errors(found.bones).min(1).sum() == pytest.approx(found.history[-1], rel=1e-9)


def test_clusters_need_no_mesh_between_them():
    """Two parts far apart, each moving for itself: no edge joins them."""
    rng = np.random.default_rng(1)
    rest = rng.normal(size=(400, 3))
    rest[200:] += 10
    turns = [Rotation.random(12, random_state=s).as_matrix() for s in (1, 2)]
    moved = np.concatenate([rest[:200] @ turns[0], rest[200:] @ turns[1] + 3], 1)
    labels, transforms = cluster_motion(rest, moved)
    assert len(transforms) == 2
    assert len(set(labels[:200])) == len(set(labels[200:])) == 1


def test_cancel_passes_through(chains):
    rest, poses = chains.chain(300, 5, 10)
    moved = chains.skin(rest, chains.smooth_weights(rest, 5), poses)

    def cancel(stage, fraction):
        raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        cluster(Alignment.fit(rest, moved).matrix(rest, moved), 50, cancel)


def test_alignment_round_trip(chains):
    rest, poses = chains.chain(300, 3, 7)
    moved = chains.skin(rest, chains.smooth_weights(rest, 3), poses)
    alignment = Alignment.fit(rest, moved)
    bones = alignment.local(poses)
    assert np.allclose(alignment.world(bones), poses.transpose(1, 0, 2, 3), atol=1e-12)
    single = alignment.matrix(rest, moved).single_errors(bones)
    plain = [
        ((rest @ poses[:, b, :, :3].swapaxes(1, 2) + poses[:, b, None, :, 3] - moved) ** 2) for b in range(3)
    ]
    assert np.allclose(single, np.stack([p.sum((0, 2)) for p in plain], 1), atol=1e-10)


def test_kabsch_is_a_rotation_even_where_points_do_not_fix_one():
    rng = np.random.default_rng(0)
    line = np.outer(rng.normal(size=20), [1.0, 2.0, 3.0])
    mirrored = rng.normal(size=(20, 3)) * [1, 1, 1e-3]
    covariances = np.stack([line.T @ line, mirrored.T @ (mirrored * [1, 1, -1]), np.zeros((3, 3))])
    rotations = kabsch(covariances)
    assert np.allclose(rotations @ rotations.swapaxes(1, 2), np.eye(3), atol=1e-12)
    assert np.allclose(np.linalg.det(rotations), 1)


def test_fit_rigid_recovers_weighted_motion():
    rng = np.random.default_rng(0)
    rest, turn = rng.normal(size=(30, 3)), Rotation.random(4, random_state=1).as_matrix()
    moved = rest @ turn.swapaxes(1, 2) + rng.normal(size=(4, 1, 3))
    moved[:, 20:] += 5  # outweighed
    fitted = fit_rigid(rest, moved, np.r_[np.ones(20), np.zeros(10)])
    assert np.allclose(fitted[..., :3], turn, atol=1e-12)
    assert np.allclose(
        rest[:20] @ fitted[..., :3].swapaxes(1, 2) + fitted[:, None, :, 3], moved[:, :20], atol=1e-12
    )


def test_subsets_depend_on_places_not_order():
    rng = np.random.default_rng(0)
    points, order = rng.normal(size=(5000, 3)), rng.permutation(5000)
    chosen = stratified_subset(points, 300)
    again = stratified_subset(points[order], 300)
    assert len(chosen) == 300
    assert set(map(tuple, points[chosen])) == set(map(tuple, points[order][again]))
    octant = (points > 0) @ [1, 2, 4]  # every region gives its share
    share = np.bincount(octant[chosen], minlength=8) / 300
    assert np.allclose(share, np.bincount(octant, minlength=8) / 5000, atol=0.03)
    assert len(farthest_points(np.repeat(points[:7], 9, 0), 50)) == 7
