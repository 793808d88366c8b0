"""Joints on the curve skeleton: where the outer bones that dominate the surface change (GaussiAnimate)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .tree import motion_inconsistency, nearest_joint, root_tree, spanning_edges

if TYPE_CHECKING:
    from ..curves.curve import CurveSkeleton
    from .tree import KinematicTree

F64 = NDArray[np.float64]
WINDOW = 3  # curve samples averaged on each side of a possible joint


@dataclass(frozen=True)
class CurveJoints:
    """Joints placed on a curve skeleton and the tree they form, root first.

    tree : J joints; positions on the curve, in the capture's units
    nodes : (J,) curve node each joint sits at
    node_joints : (M,) joint whose rotation moves each curve node (and the points it owns)
    """

    tree: KinematicTree
    nodes: NDArray[np.intp]
    node_joints: NDArray[np.intp]


def aggregate_weights(
    curve: CurveSkeleton,
    indices: NDArray[np.integer],
    weights: NDArray[np.floating],
    bone_count: int,
    opacities: NDArray[np.floating] | None = None,
) -> F64:
    """Mean bone weights (M, B) of the points each curve node owns; rows sum to 1.

    Parameters
    ----------
    indices, weights : (N, K) sparse bone weights of the points
    opacities : (N,) weights of the points in the mean; None counts all alike

    A node that owns nothing inherits from the nearest node that does.
    """
    share = np.ones(len(indices)) if opacities is None else np.maximum(opacities, 1e-3)
    flat = (curve.owners[:, None] * bone_count + indices).ravel()
    values = (weights * share[:, None]).ravel()
    sums = np.bincount(flat, values, len(curve.nodes) * bone_count).reshape(-1, bone_count)
    totals = sums.sum(axis=1)
    owning = np.flatnonzero(totals > 0)
    for node in np.flatnonzero(totals <= 0):
        nearest = owning[nearest_joint(curve.nodes[owning], curve.nodes[node])]
        sums[node] = sums[nearest]
    return sums / sums.sum(axis=1, keepdims=True)


def split_branches(count: int, edges: NDArray[np.integer]) -> list[NDArray[np.intp]]:
    """Split a curve graph into paths between nodes of degree other than two.

    Every edge lies on exactly one path. A closed loop without a branch node is one path that starts and
    ends at its lowest node.
    """
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        neighbours[a].append(int(b))
        neighbours[b].append(int(a))
    unused = {(min(a, b), max(a, b)) for a, b in edges.tolist()}

    def follow(start: int, following: int) -> NDArray[np.intp]:
        path = [start, following]
        unused.discard((min(start, following), max(start, following)))
        while len(neighbours[path[-1]]) == 2 and path[-1] != start:
            a, b = neighbours[path[-1]]
            path.append(b if a == path[-2] else a)
            unused.discard((min(path[-2:]), max(path[-2:])))
        return np.array(path)

    paths = []
    ends = [node for node in range(count) if len(neighbours[node]) not in (0, 2)]
    for start in ends + list(range(count)):
        for following in neighbours[start]:
            if (min(start, following), max(start, following)) in unused:
                paths.append(follow(start, following))
    return paths


def weight_change(profile: F64, window: int = WINDOW) -> F64:
    """How much the bone weights change across each sample of a branch, in 0..1.

    Parameters
    ----------
    profile : (M, B) weights along the branch, rows in the simplex
    window : samples averaged on either side; fewer at the ends

    Returns
    -------
    (M,) half the L1 distance between the means before and after; 0 at both ends.
    """
    sums = np.concatenate([np.zeros((1, profile.shape[1])), np.cumsum(profile, axis=0)])
    change = np.zeros(len(profile))
    for m in range(1, len(profile) - 1):
        low, high = max(0, m - window), min(len(profile), m + 1 + window)
        before = (sums[m] - sums[low]) / (m - low)
        after = (sums[high] - sums[m + 1]) / (high - m - 1)
        change[m] = 0.5 * np.abs(after - before).sum()
    return change


def branch_joints(profile: F64, threshold: float, spacing: int = WINDOW) -> NDArray[np.intp]:
    """Samples of a branch (M, B) where the weights change by at least `threshold`: maxima, strongest first.

    A maximum silences the others within `spacing` samples. Of a plateau the middle is taken. Ends are never
    joints.
    """
    change = weight_change(profile)
    found: list[int] = []
    for m in np.argsort(-change, kind="stable"):
        if change[m] < threshold:
            break
        if change[m] < change[max(0, m - 1) : m + 2].max():
            continue
        last = int(m)
        while last + 1 < len(change) and change[last + 1] == change[m]:
            last += 1
        middle = (int(m) + last) // 2
        if all(abs(middle - other) > spacing for other in found):
            found.append(middle)
    return np.array(sorted(found), dtype=np.intp)


def joints_from_curve(
    curve: CurveSkeleton,
    node_weights: F64,
    bone_transforms: F64,
    center: F64,
    *,
    threshold: float = 0.3,
    node_masses: F64 | None = None,
) -> CurveJoints:
    """Place joints on the curve and hang them from a root.

    Joints sit at branch nodes, at ends, and where the weights of a branch change; the root is an extra
    joint at the curve node nearest to the centre of mass (or, where that lies next to a hinge, inside
    the heavier side of it: a root moves all segments around it, so it must not be a hinge itself).
    Cycles are cut where the joints' distance is least constant.

    Parameters
    ----------
    curve : nodes (M, 3), edges, owners
    node_weights : (M, B) from `aggregate_weights`
    bone_transforms : (F, B, 3, 4) rest -> frame
    center : (3,) centre of mass
    threshold : tau, weight change of a joint, 0..1
    node_masses : (M,) points owned, to tell the heavier side
    """
    count = len(curve.nodes)
    degree = np.bincount(curve.edges.ravel(), minlength=count)
    paths = split_branches(count, curve.edges)
    hinges = np.zeros(count, dtype=bool)
    for path in paths:
        hinges[path[branch_joints(node_weights[path], threshold)]] = True
    stations = hinges | (degree != 2)
    root = _root_node(curve, paths, hinges, degree, center, node_masses)
    stations[root] = True
    nodes, edges, spans = _station_graph(paths, stations)
    positions = curve.nodes[nodes]
    tracks = _joint_tracks(positions, node_weights[nodes], bone_transforms)
    kept, added = spanning_edges(len(nodes), edges, motion_inconsistency(tracks, edges), positions)
    tree_edges = np.concatenate([edges[kept], added])
    tree, order = root_tree(positions, tree_edges, int(np.flatnonzero(nodes == root)[0]))
    rank = np.argsort(order)
    return CurveJoints(tree, nodes[order], _node_joints(count, tree, nodes[order], rank, edges, spans, curve))


def _root_node(curve, paths, hinges, degree, center, masses) -> int:
    """The curve node nearest to the centre of mass that is no end and neither a hinge nor beside one."""
    near = np.zeros(len(curve.nodes), dtype=bool)
    for path in paths:
        for at in np.flatnonzero(hinges[path]):
            near[path[max(0, at - 1) : at + 2]] = True
    near |= (degree <= 1) & (degree.max() > 1)
    free = np.flatnonzero(~near)
    if not len(free):
        free = np.flatnonzero(~hinges)
    return int(free[nearest_joint(curve.nodes[free], center)])


def _station_graph(paths, stations):
    """Stations (J,) as node indices, edges (E, 2) between consecutive ones, the nodes strictly between."""
    nodes = np.flatnonzero(stations)
    number = np.cumsum(stations) - 1
    edges, spans = [], []
    for path in paths:
        if path[0] == path[-1] and not stations[path[0]]:  # a loop without branch node: start it at a station
            inside = np.flatnonzero(stations[path])
            if not len(inside):
                continue
            path = np.concatenate([path[inside[0] : -1], path[: inside[0] + 1]])
        at = np.flatnonzero(stations[path])
        for a, b in zip(at[:-1], at[1:], strict=True):
            if path[a] != path[b]:
                edges.append((number[path[a]], number[path[b]]))
                spans.append(path[a + 1 : b])
    return nodes, np.array(edges, dtype=np.intp).reshape(-1, 2), spans


def _joint_tracks(positions: F64, weights: F64, transforms: F64) -> F64:
    """(F, J, 3) positions carried by the blended bones: sum_b w_jb T_b J_j."""
    blended = np.einsum("jb,fbac->fjac", weights, transforms)
    return np.einsum("fjac,jc->fja", blended[..., :3], positions) + blended[..., 3]


def _node_joints(count, tree, nodes, rank, edges, spans, curve) -> NDArray[np.intp]:
    """(M,) the joint that moves each curve node: of a segment, the end nearer to the root."""
    owner = np.full(count, -1, dtype=np.intp)
    within = tree.ancestry()
    depth = within.sum(axis=0)
    for (a, b), span in zip(rank[edges], spans, strict=True):
        if tree.parents[b] == a or tree.parents[a] == b:
            owner[span] = a if depth[a] < depth[b] else b
        else:  # the cut of a cycle: each half goes with its own end
            half = len(span) // 2
            owner[span[:half]], owner[span[half:]] = a, b
    owner[nodes] = np.where(tree.child_counts > 0, np.arange(len(tree)), np.maximum(tree.parents, 0))
    for node in np.flatnonzero(owner < 0):
        known = np.flatnonzero(owner >= 0)
        owner[node] = owner[known[nearest_joint(curve.nodes[known], curve.nodes[node])]]
    return owner
