"""The kinematic tree: cut cycles, choose the root, order parents before children, give names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class KinematicTree:
    """J joints at rest, parents before children.

    positions : (J, 3) float64; parents : (J,) int32, -1 for the root (joint 0)

    The rotation of a joint moves the segments from it towards its children; a leaf is an end effector.
    """

    positions: NDArray[np.float64]
    parents: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def child_counts(self) -> NDArray[np.intp]:
        """(J,) number of children of each joint."""
        return np.bincount(self.parents[self.parents >= 0], minlength=len(self))

    def ancestry(self) -> NDArray[np.bool_]:
        """(J, J) matrix, True at [a, j] where joint j lies in the subtree of joint a, itself included."""
        within = np.eye(len(self), dtype=bool)
        for j, parent in enumerate(self.parents):
            if parent >= 0:
                within[:, j] |= within[:, parent]
        return within

    def hops(self) -> NDArray[np.intp]:
        """(J, J) number of edges between two joints."""
        within = self.ancestry()
        depth = within.sum(axis=0) - 1
        shared = within.T.astype(np.intp) @ within.astype(np.intp) - 1  # depth of the last common ancestor
        return depth[:, None] + depth[None, :] - 2 * shared

    def without(self, joint: int) -> tuple[KinematicTree, NDArray[np.intp]]:
        """Remove a joint other than the root; its children become its parent's.

        Returns the tree and the (J,) new index of every old joint (the removed one: that of its parent).
        """
        if joint == 0:
            raise ValueError("the root cannot be removed")
        keep = np.arange(len(self)) != joint
        renumber = np.cumsum(keep) - 1
        renumber[joint] = renumber[self.parents[joint]]
        parents = np.where(self.parents >= 0, renumber[self.parents], -1)[keep].astype(np.int32)
        return KinematicTree(self.positions[keep], parents), renumber


def motion_inconsistency(tracks: NDArray[np.float64], edges: NDArray[np.integer]) -> NDArray[np.float64]:
    """How much each edge (E, 2) stretches along tracks (F, J, 3): deviation over mean of its length."""
    lengths = np.linalg.norm(tracks[:, edges[:, 0]] - tracks[:, edges[:, 1]], axis=-1)
    return lengths.std(axis=0) / np.maximum(lengths.mean(axis=0), 1e-12)


def spanning_edges(
    count: int, edges: NDArray[np.integer], costs: NDArray[np.float64], positions: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Choose the edges of a tree: a minimum spanning tree over the motion inconsistency (Kruskal 1956).

    Parameters
    ----------
    count : number of joints J
    edges : (E, 2) pairs of joints
    costs : (E,) the larger, the sooner an edge of a cycle is dropped; ties keep the earlier edge
    positions : (J, 3) joints at rest, to connect separate pieces by their closest joints

    Returns
    -------
    (E,) bool of the edges kept, and (A, 2) edges added to connect what was in separate pieces.
    """
    piece = np.arange(count)

    def join(a: int, b: int) -> bool:
        if piece[a] == piece[b]:
            return False
        piece[piece == piece[b]] = piece[a]
        return True

    kept = np.zeros(len(edges), dtype=bool)
    for e in np.argsort(costs, kind="stable"):
        kept[e] = join(*edges[e])
    distances = np.linalg.norm(positions[:, None] - positions[None, :], axis=-1)
    added = []
    while (apart := piece[:, None] != piece[None, :]).any():
        a, b = np.unravel_index(np.argmin(np.where(apart, distances, np.inf)), apart.shape)
        join(int(a), int(b))
        added.append((a, b))
    return kept, np.array(added, dtype=np.intp).reshape(-1, 2)


def root_tree(
    positions: NDArray[np.float64], edges: NDArray[np.integer], root: int
) -> tuple[KinematicTree, NDArray[np.intp]]:
    """Hang the J - 1 edges of a tree from `root`, depth first, ties by index.

    Returns the tree and the (J,) old index of each of its joints.
    """
    neighbours: list[list[int]] = [[] for _ in positions]
    for a, b in edges:
        neighbours[a].append(int(b))
        neighbours[b].append(int(a))
    order: list[int] = []
    parents: list[int] = []
    stack = [(root, -1)]
    seen = {root}
    while stack:
        joint, parent = stack.pop()
        parents.append(parent)
        order.append(joint)
        for child in sorted(neighbours[joint], reverse=True):
            if child not in seen:
                seen.add(child)
                stack.append((child, len(order) - 1))
    if len(order) != len(positions):
        raise ValueError("the edges do not connect all joints")
    return KinematicTree(positions[order], np.array(parents, dtype=np.int32)), np.array(order)


def nearest_joint(positions: NDArray[np.float64], point: NDArray[np.float64]) -> int:
    """Index of the joint nearest to a point (3,), e.g. the centre of mass; ties by index."""
    return int(np.argmin(np.linalg.norm(positions - point, axis=1)))


def parents_first(parents: NDArray[np.integer]) -> NDArray[np.intp]:
    """Order (J,) of joints by depth, ties by index."""
    depth = np.zeros(len(parents), dtype=int)
    for joint in range(len(parents)):
        at = joint
        while (at := parents[at]) >= 0:
            depth[joint] += 1
    return np.argsort(depth, kind="stable")
