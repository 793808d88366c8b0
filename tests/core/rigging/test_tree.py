"""The kinematic tree (K6, K7)."""

import numpy as np
import pytest

from gaussianimate.core.rigging.skeleton.names import name_joints
from gaussianimate.core.rigging.skeleton.tree import (
    KinematicTree,
    motion_inconsistency,
    nearest_joint,
    parents_first,
    root_tree,
    spanning_edges,
)


def random_tree(count, seed):
    rng = np.random.default_rng(seed)
    edges = np.array([[rng.integers(0, j), j] for j in range(1, count)])
    shuffled = rng.permutation(count)
    return rng.normal(size=(count, 3)), shuffled[edges]


@pytest.mark.parametrize("seed", range(5))
def test_a_rooted_tree_has_its_edges_and_parents_first(seed):
    positions, edges = random_tree(12, seed)
    root = nearest_joint(positions, np.zeros(3))
    tree, order = root_tree(positions, edges, root)
    assert order[0] == root and tree.parents[0] == -1
    assert (tree.parents < np.arange(12)).all() and (tree.parents >= 0).sum() == 11
    hung = {tuple(sorted((order[j], order[p]))) for j, p in enumerate(tree.parents) if p >= 0}
    assert hung == {tuple(sorted(edge)) for edge in edges.tolist()}
    assert np.linalg.norm(tree.positions, axis=1).argmin() == 0


def test_the_edge_that_stretches_leaves_the_cycle():
    square = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    edges = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])
    tracks = np.repeat(square[None], 20, axis=0)
    tracks[:, 3, 1] += 0.02 * np.sin(np.arange(20))  # 0-3 stretches
    kept, added = spanning_edges(4, edges, motion_inconsistency(tracks, edges), square)
    assert kept.tolist() == [True, True, True, False] and not len(added)


def test_separate_pieces_are_joined_by_their_closest_joints():
    positions = np.array([[0.0, 0, 0], [1, 0, 0], [1.5, 0, 0], [9, 0, 0]])
    kept, added = spanning_edges(4, np.array([[0, 1], [2, 3]]), np.zeros(2), positions)
    assert kept.all() and added.tolist() == [[1, 2]]


def test_removing_a_joint_hands_its_children_up():
    tree = KinematicTree(np.arange(15.0).reshape(5, 3), np.array([-1, 0, 1, 1, 2], dtype=np.int32))
    smaller, renumber = tree.without(1)
    assert smaller.parents.tolist() == [-1, 0, 0, 1]
    assert renumber.tolist() == [0, 0, 1, 2, 3]
    with pytest.raises(ValueError):
        tree.without(0)


def test_hops_and_ancestry():
    tree = KinematicTree(np.zeros((5, 3)), np.array([-1, 0, 1, 0, 3], dtype=np.int32))
    assert tree.hops()[2].tolist() == [2, 1, 0, 3, 4]
    assert tree.ancestry()[1].tolist() == [False, True, True, False, False]
    assert parents_first(np.array([2, 0, -1])).tolist() == [2, 0, 1]


def test_names_are_unique_and_mirrored_limbs_are_left_and_right():
    # root, a spine joint, two arms of two joints each
    positions = np.array(
        [[0, 1, 0], [0, 1.5, 0], [0.2, 1.5, 0], [-0.2, 1.5, 0], [0.6, 1.5, 0], [-0.6, 1.5, 0]], float
    )
    tree = KinematicTree(positions, np.array([-1, 0, 1, 1, 2, 3], dtype=np.int32))
    names = name_joints(tree)
    assert names[0] == "root" and len(set(names)) == 6
    assert names[2].endswith(".L") and names[3].endswith(".R")
    assert names[2][:-2] == names[3][:-2] and names[4][:-2] == names[5][:-2]
    assert not names[1].endswith((".L", ".R"))
