"""Which joint hangs on which: the tree over which the bodies hold together best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .kinematics import Poses
from .poses import fit_poses
from .skeleton_fit import LEAST_SHARE, Body, SkeletonFit, improve, total_error, with_ends
from .tree import KinematicTree, parents_first, root_tree, spanning_edges

F64 = NDArray[np.float64]
HOLD = 2e-3  # squared motion (2 sin(angle / 2))^2 under which a pivot stays at its seam
HABIT = 0.5  # factor on the slip of edges that exist: the curve's topology is left only for a clear gain
LIGHT = 4.0  # factor on the slip of edges to bodies under `LEAST_SHARE` of the points: patches are leaves
TOLERANCE = 1.05  # rise of the squared error a better-held tree may cost


def reattach(body: Body, fit: SkeletonFit) -> SkeletonFit:
    """Hang joints where they hold together best: a minimum spanning tree over the slip between bodies.

    A curve skeleton merges limbs that touch at rest, and a joint once hung on the wrong limb stays
    there; the motion tells. Nothing but its own patch should hang on a patch, a few points of cloth or
    skin that slide on a limb. The slip of two bodies is the least RMS distance by which their motions
    carry one common pivot apart, the pivot held near the seam between them.
    """
    tree, count = fit.tree, len(fit.tree)
    carrying = np.isin(np.arange(count), fit.bone_joints)
    carrying[0] = True
    pairs, costs, pivots = _existing(body, fit, carrying)
    more, slips, seams = _contacts(body, fit, carrying)
    edges = np.concatenate([pairs, more])
    light = carrying & (_shares(body, fit) < LEAST_SHARE)
    costs = np.concatenate([costs, slips]) * np.where(light[edges].any(axis=1), LIGHT, 1)
    kept, added = spanning_edges(count, edges, costs, tree.positions)
    if kept[: len(pairs)].all() or len(added):
        return fit
    hung, order = root_tree(tree.positions, edges[kept], 0)
    rank = np.argsort(order)
    positions, anchors = tree.positions[order], fit.anchors[order]
    places = np.concatenate([pivots, seams])
    old = {tuple(sorted(pair)) for pair in pairs.tolist()}
    for edge in np.flatnonzero(kept):
        a, b = edges[edge]
        child = max(rank[a], rank[b])
        if tuple(sorted((int(a), int(b)))) not in old or tree.parents[order[child]] not in (a, b):
            positions[child] = anchors[child] = places[edge]
    trial = SkeletonFit(
        tree=KinematicTree(positions, hung.parents),
        anchors=anchors,
        bone_joints=rank[fit.bone_joints].astype(np.int32),
        affinity=fit.affinity[:, order],
        poses=Poses(fit.poses.rotations[:, order], fit.poses.offsets),
    )
    trial = with_ends(body, trial)
    poses = fit_poses(body.stats, trial.tree, trial.bone_joints, trial.poses.rotations)
    trial = improve(body, replace(trial, poses=poses), rounds=3)
    return trial if total_error(body.stats, trial) <= TOLERANCE * total_error(body.stats, fit) else fit


def _shares(body: Body, fit: SkeletonFit) -> F64:
    """Share (J,) of all points that each joint carries."""
    masses = np.bincount(fit.bone_joints, body.stats.bone_masses, len(fit.tree))
    return masses / max(float(masses.sum()), 1e-12)


def _existing(body: Body, fit: SkeletonFit, carrying: NDArray[np.bool_]) -> tuple[NDArray[np.intp], F64, F64]:
    """Edges (E, 2), costs and pivots of the tree as it is.

    The edge from a joint that carries nothing costs what slips between the bodies on both sides of it; the
    edge to one is free.
    """
    transforms = fit.transforms()
    child = np.arange(1, len(fit.tree))
    edges = np.stack([fit.tree.parents[child], child], axis=1).astype(np.intp)
    costs = np.zeros(len(edges))
    for k, (a, b) in enumerate(edges):
        while not carrying[a]:
            a = fit.tree.parents[a]
        if carrying[b]:
            costs[k] = HABIT * _free_slip(body, fit, transforms, int(a), int(b), fit.tree.positions[b])[0]
    return edges, costs, fit.tree.positions[child]


def _contacts(body: Body, fit: SkeletonFit, carrying: NDArray[np.bool_]) -> tuple[NDArray[np.intp], F64, F64]:
    """Pairs of bodies that touch, their slip and pivot."""
    transforms = fit.transforms()
    bound = [fit.bone_joints == joint for joint in range(len(fit.tree))]
    edges, slips, pivots = [], [], []
    for a in range(len(bound)):
        for b in range(a + 1, len(bound)):
            touching = body.shapes.contacts[np.ix_(bound[a], bound[b])].sum()
            if touching > 0 and abs(fit.tree.parents[a] - b) > 0 and fit.tree.parents[b] != a:
                seam = body.shapes.seam(bound[a], bound[b])
                slip, pivot = _free_slip(body, fit, transforms, a, b, seam)
                edges.append((a, b))
                slips.append(slip)
                pivots.append(pivot)
    return np.array(edges, dtype=np.intp).reshape(-1, 2), np.array(slips), np.array(pivots).reshape(-1, 3)


def _free_slip(body: Body, fit: SkeletonFit, transforms: F64, a: int, b: int, seam: F64) -> tuple[float, F64]:
    """Least RMS distance by which the free motions of two bodies carry a pivot apart, and that pivot."""
    motions = [
        body.rigid_motion(mask) if (mask := fit.bone_joints == joint).any() else transforms[:, joint]
        for joint in (a, b)
    ]
    apart = motions[0] - motions[1]
    turn, shift = apart[..., :3], apart[..., 3]
    normal = np.einsum("fab,fac->bc", turn, turn) + HOLD * len(turn) * np.eye(3)
    right = HOLD * len(turn) * seam - np.einsum("fab,fa->b", turn, shift)
    pivot = np.linalg.solve(normal, right)
    left = ((turn @ pivot + shift) ** 2).sum() / len(turn)
    return float(np.sqrt(left + HOLD * ((pivot - seam) ** 2).sum())), pivot


def reroot(body: Body, fit: SkeletonFit, center: F64) -> SkeletonFit:
    """Make the body around the centre of mass (3,) the root: the one most of the nearest points follow.

    Hinges stay where they are; on the way from the new root to the old one each now moves the other of its
    two bodies. The root joint sits amid those of its own points that are nearest to the centre of mass.
    """
    root = _central_body(body, fit, center)
    positions, anchors, parents = fit.tree.positions.copy(), fit.anchors.copy(), fit.tree.parents.copy()
    joint = root
    way = [joint]
    while (joint := fit.tree.parents[joint]) >= 0:
        way.append(int(joint))
    for near, far in zip(way[:-1], way[1:], strict=True):
        positions[far], anchors[far], parents[far] = fit.tree.positions[near], fit.anchors[near], near
    mine = body.shapes.points[(fit.bone_joints == root)[body.shapes.bones]]
    if len(mine):
        distance = np.linalg.norm(mine - center, axis=1)
        middle = mine[distance <= np.quantile(distance, 0.3)].mean(axis=0)[None]
        positions[root] = body.interior.pull_inside(middle)[0]
    parents[root], anchors[root] = -1, positions[root]
    motion = fit.transforms()[:, root]
    order = parents_first(parents)
    rank = np.argsort(order)
    above = parents[order]
    turned = SkeletonFit(
        tree=KinematicTree(positions[order], np.where(above >= 0, rank[above], -1).astype(np.int32)),
        anchors=anchors[order],
        bone_joints=rank[fit.bone_joints].astype(np.int32),
        affinity=fit.affinity[:, order],
        poses=Poses(fit.poses.rotations[:, order], motion[..., :3] @ positions[root] + motion[..., 3]),
    )
    return with_ends(body, turned)


def _central_body(body: Body, fit: SkeletonFit, center: F64) -> int:
    """The joint with children that most of the tenth of points nearest to the centre of mass follow."""
    distance = np.linalg.norm(body.shapes.points - center, axis=1)
    nearest = np.argsort(distance, kind="stable")[: max(1, len(distance) // 10)]
    votes = np.bincount(fit.bone_joints[body.shapes.bones[nearest]], minlength=len(fit.tree))
    return int(np.argmax(votes))
