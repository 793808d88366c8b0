"""Joints on curves (K5) and the weights they come from."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gaussianimate.core.rigging.curves.curve import CurveSkeleton
from gaussianimate.core.rigging.skeleton.joints import (
    aggregate_weights,
    branch_joints,
    joints_from_curve,
    split_branches,
    weight_change,
)

synthetic = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("synthetic.py"))))


@pytest.mark.parametrize("threshold", [0.2, 0.3, 0.4])
@pytest.mark.parametrize("parts", [2, 3, 4])
def test_a_chain_of_bones_has_a_joint_between_each_two(parts, threshold):
    chain = synthetic.chain(parts)
    curve = synthetic.straight_curve(chain["rest"])
    weights = aggregate_weights(curve, chain["indices"], chain["weights"], parts)
    found = joints_from_curve(
        curve, weights, chain["transforms"], chain["rest"].mean(axis=0), threshold=threshold
    )
    inner = found.tree.positions[1:][found.tree.child_counts[1:] > 0]  # neither root nor ends
    distance = np.abs(inner[:, None, 0] - chain["joints"][None, 1:, 0])
    assert len(inner) == parts - 1
    assert distance.min(axis=1).max() < 1.5 * 0.08  # 1.5 samples of the curve
    ends = found.tree.positions[found.tree.child_counts == 0]
    np.testing.assert_allclose(np.sort(ends[:, 0]), [0, 4])


def test_the_root_is_no_hinge_and_near_the_centre():
    chain = synthetic.chain(2)  # the hinge lies exactly at the centre of mass
    curve = synthetic.straight_curve(chain["rest"])
    weights = aggregate_weights(curve, chain["indices"], chain["weights"], 2)
    found = joints_from_curve(curve, weights, chain["transforms"], chain["rest"].mean(axis=0))
    assert 0.05 < abs(found.tree.positions[0, 0] - 2) < 0.5
    hinge = np.flatnonzero(np.abs(found.tree.positions[:, 0] - 2) < 0.05)
    assert found.tree.parents[hinge[0]] == 0
    # what lies beyond the hinge follows it, the rest follows the root
    side = np.sign(curve.nodes[:, 0] - 2) == np.sign(found.tree.positions[0, 0] - 2)
    assert (found.node_joints[side] == 0).all()


def test_aggregated_weights_are_means_over_owned_points_and_inherited_where_none_are_owned():
    nodes = np.array([[0.0, 0, 0], [1, 0, 0], [5, 0, 0]])
    curve = CurveSkeleton(nodes, np.array([[0, 1], [1, 2]]), np.array([0, 0, 1, 1]), np.ones(3))
    indices = np.array([[0, 1], [0, 1], [1, 0], [1, 0]])
    weights = np.array([[1.0, 0], [0.5, 0.5], [1, 0], [1, 0]])
    result = aggregate_weights(curve, indices, weights, 2)
    np.testing.assert_allclose(result, [[0.75, 0.25], [0, 1], [0, 1]])
    faint = aggregate_weights(curve, indices, weights, 2, np.array([1.0, 0, 1, 1]))
    assert faint[0, 0] > 0.99


def test_change_is_a_half_l1_distance_with_joints_at_its_maxima():
    profile = np.zeros((20, 2))
    profile[:10, 0] = profile[10:, 1] = 1
    change = weight_change(profile)
    assert change.max() == pytest.approx(1) and change[[0, -1]].max() == 0
    assert branch_joints(profile, 0.3).tolist() in ([9], [10])
    assert branch_joints(np.full((20, 2), 0.5), 0.3).size == 0


def test_branches_cover_every_edge_once():
    star = np.array([[0, 1], [1, 2], [0, 3], [0, 4], [4, 5]])
    paths = split_branches(6, star)
    assert sorted(map(len, paths)) == [2, 3, 3]
    ring = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])
    assert [path.tolist() for path in split_branches(4, ring)] == [[0, 1, 2, 3, 0]]
