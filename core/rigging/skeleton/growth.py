"""More joints: where bones that hang on one joint move apart, the motion says what the curve could not.

The curve skeleton of the rest pose misses limbs that touch the body there, and may merge two of them.
Each step takes the joint whose bones disagree most, splits them into those that follow it and a
connected group that moves on its own (two rigid motions, by expectation maximisation), and gives the
group a joint at its seam.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...progress import Progress, no_progress
from .kinematics import Poses
from .skeleton_fit import Body, SkeletonFit, allowance, improve, total_error, with_ends, with_new
from .tree import KinematicTree, parents_first

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
MAX_ATTEMPTS = 40
SEEDS = 4
MAX_BRIDGES = 12
BRIDGE_TRIALS = 4
HABIT = 0.5  # a child changes over to a new joint only for a clear gain


def grow(
    body: Body, fit: SkeletonFit, gain: float, target: float = 0.0, progress: Progress = no_progress
) -> SkeletonFit:
    """Add joints while each lowers the RMS error of the points it carries by `gain` (of the box diagonal).

    Stops when the RMS error of the whole falls under `target`.
    """
    refused: set[int] = set()
    count = body.stats.point_count * len(body.stats.energy)
    for attempt in range(MAX_ATTEMPTS):
        progress("Skeleton", attempt / MAX_ATTEMPTS)
        error = total_error(body.stats, fit)
        if error <= count * target**2:
            break
        split = _best_split(body, fit, refused)
        if split is None:
            break
        seed, joint, group = split
        trial, new = _with_joint(body, fit, joint, group)
        trial = improve(body, trial, rounds=3)
        if error - total_error(body.stats, trial) > allowance(body.stats, trial, new, gain):
            fit = trial
            refused.clear()
        else:
            refused.add(seed)
    return fit


def _distances(motion: F64, others: F64, moments: F64) -> F64:
    """(B,) squared distance, over points and frames, of each bone's points under two motions (F, B, 3, 4)."""
    apart = motion - others
    return np.einsum("fbai,bij,fbaj->b", apart, moments, apart, optimize=True)


def _best_split(body: Body, fit: SkeletonFit, refused: set[int]) -> tuple[int, int, Mask] | None:
    """The seed, its joint and the group (B,) of that joint's bones whose own motion lowers the error most."""
    moments = body.moments()
    carried = fit.transforms()[:, fit.bone_joints]
    present = _distances(body.bone_motion, carried, moments)
    mates = fit.bone_joints[:, None] == fit.bone_joints
    gains = np.where(mates, present - _pair_distances(body.bone_motion, moments), 0)
    gains = np.maximum(gains, 0).sum(axis=1)
    gains[list(refused)] = 0
    best: tuple[float, int, int, Mask] | None = None
    for seed in np.argsort(-gains, kind="stable")[:SEEDS]:
        group, gain = _group(body, int(seed), mates[seed], present, moments)
        if gain > 0 and (best is None or gain > best[0]):
            best = (gain, int(seed), int(fit.bone_joints[seed]), group)
    return None if best is None else best[1:]


def _group(body: Body, seed: int, mates: Mask, present: F64, moments: F64) -> tuple[Mask, float]:
    """The connected bones (B,) among `mates` that had better move like the seed, and what they gain."""
    motion = body.bone_motion[:, seed]
    group, gain = np.zeros(len(mates), dtype=bool), 0.0
    for _ in range(3):
        others = np.broadcast_to(motion[:, None], body.bone_motion.shape)
        apart = _distances(body.bone_motion, others, moments)
        if apart[seed] >= present[seed]:
            break
        found = body.shapes.component(seed, mates & (apart < present))
        if found.sum() == mates.sum():
            break
        group, gain = found, float((present - apart)[found].sum())
        motion = body.rigid_motion(group)
    return group, gain


def _pair_distances(motion: F64, moments: F64) -> F64:
    """(S, B) squared distance of bone b's points under bone s's motion and under their own."""
    frames, bones = motion.shape[:2]
    flat = np.moveaxis(motion, 1, 2).reshape(frames * 3, 4 * bones)
    products = (flat.T @ flat).reshape(bones, 4, bones, 4)  # sum T_s^T T_b
    own = np.einsum("sisj->sij", products)
    mixed = np.einsum("sibj,bij->sb", products, moments)
    return np.einsum("sij,bij->sb", own, moments) - 2 * mixed + np.einsum("bij,bij->b", own, moments)


def _with_joint(body: Body, fit: SkeletonFit, joint: int, group: Mask) -> tuple[SkeletonFit, int]:
    """Give a group of the joint's bones a joint of its own, a child of `joint`; returns its index as well.

    The children of `joint` move over where their own place keeps together better with the group's motion.
    """
    tree = fit.tree
    rest_of = (fit.bone_joints == joint) & ~group
    motion, stay = body.rigid_motion(group), body.rigid_motion(rest_of)
    seam = body.shapes.seam(group, rest_of)
    parents = tree.parents.copy()
    own = fit.transforms()
    for child in np.flatnonzero(tree.parents == joint):
        if tree.child_counts[child] == 0:
            spread = [_nearness(body, mask, tree.positions[child]) for mask in (group, rest_of)]
        else:
            spread = [_slip(own[:, child], other, tree.positions[child]) for other in (motion, stay)]
        if spread[0] < HABIT * spread[1]:
            parents[child] = len(tree)
    positions, anchors = [*tree.positions, seam], [*fit.anchors, seam]
    rotations = [fit.poses.rotations, motion[:, None, :, :3]]
    parents = [*parents, joint]
    affinity = np.pad(fit.affinity, ((0, 0), (0, 1)))
    affinity[group, len(tree)] = affinity[group, joint] + 1e-3
    affinity[group, joint] = 0
    affinity /= affinity.sum(axis=1, keepdims=True)
    binding = np.where(group, len(tree), fit.bone_joints)
    order = parents_first(np.array(parents))
    rank = np.argsort(order)
    ordered = np.array(parents)[order]
    grown = SkeletonFit(
        tree=KinematicTree(
            np.array(positions)[order], np.where(ordered >= 0, rank[ordered], -1).astype(np.int32)
        ),
        anchors=np.array(anchors)[order],
        bone_joints=rank[binding].astype(np.int32),
        affinity=affinity[:, order],
        poses=Poses(np.concatenate(rotations, axis=1)[:, order], fit.poses.offsets),
        origins=None if (origins := with_new(fit.origins)) is None else origins[order],
    )
    return with_ends(body, grown), int(rank[len(tree)])


def _slip(motion: F64, other: F64, point: F64) -> float:
    """How far, summed over frames, two motions (F, 3, 4) carry a point apart."""
    apart = motion - other
    return float(((apart[..., :3] @ point + apart[..., 3]) ** 2).sum())


def _nearness(body: Body, bones: Mask, point: F64) -> float:
    """Distance of a point to the nearest point of some bones."""
    mine = body.shapes.points[bones[body.shapes.bones]]
    return float(np.linalg.norm(mine - point, axis=1).min(initial=np.inf))


def bridge(body: Body, fit: SkeletonFit, target: float, progress: Progress = no_progress) -> SkeletonFit:
    """Put a joint without bones before one that slides on its parent, until the RMS error is under `target`.

    No pivot holds two bodies that slide on each other (a telescoping neck, feet on controls of their own); a
    second hinge between them gives the play. Each must lower the squared error by a twentieth.
    """
    count = body.stats.point_count * len(body.stats.energy)
    for attempt in range(MAX_BRIDGES):
        progress("Skeleton", attempt / MAX_BRIDGES)
        error = total_error(body.stats, fit)
        if error <= count * target**2:
            break
        trials = [improve(body, _with_bridge(fit, joint), rounds=3) for joint in _sliding(body, fit)]
        errors = [total_error(body.stats, trial) for trial in trials]
        if not errors or min(errors) > 0.95 * error:
            break
        fit = trials[int(np.argmin(errors))]
    return fit


def _sliding(body: Body, fit: SkeletonFit) -> NDArray[np.intp]:
    """The joints whose free motion slips most on their parent's, weighed by what they carry."""
    tree = fit.tree
    carrying = np.bincount(fit.bone_joints, minlength=len(tree)) > 0
    below = np.bincount(fit.bone_joints, body.stats.bone_masses, len(tree)) @ tree.ancestry().T
    slips = np.zeros(len(tree))
    for joint in np.flatnonzero(carrying[1:]) + 1:
        parent = tree.parents[joint]
        if carrying[parent]:
            motions = [body.rigid_motion(fit.bone_joints == body_joint) for body_joint in (joint, parent)]
            slips[joint] = below[joint] * _slip(motions[0], motions[1], tree.positions[joint])
    worst = np.argsort(-slips, kind="stable")[:BRIDGE_TRIALS]
    return worst[slips[worst] > 0]


def _with_bridge(fit: SkeletonFit, joint: int) -> SkeletonFit:
    """Put a joint without bones half-way between a joint and its parent."""
    tree = fit.tree
    parent = tree.parents[joint]
    middle = 0.5 * (tree.positions[joint] + tree.positions[parent])[None]
    parents = np.insert(np.where(tree.parents >= joint, tree.parents + 1, tree.parents), joint, parent)
    parents[joint + 1] = joint
    rotations = np.insert(fit.poses.rotations, joint, fit.poses.rotations[:, parent], axis=1)
    return SkeletonFit(
        tree=KinematicTree(np.insert(tree.positions, joint, middle, axis=0), parents.astype(np.int32)),
        anchors=np.insert(fit.anchors, joint, middle, axis=0),
        bone_joints=np.where(fit.bone_joints >= joint, fit.bone_joints + 1, fit.bone_joints).astype(np.int32),
        affinity=np.insert(fit.affinity, joint, 0, axis=1),
        poses=Poses(rotations, fit.poses.offsets),
        origins=None if fit.origins is None else np.insert(fit.origins, joint, -1),
    )
