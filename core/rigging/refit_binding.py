"""Outer bones of a corrected skeleton: where they hang first, where they may hang, and their final shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..progress import Progress, no_progress
from .decomposition.lbs import replay
from .decomposition.sampling import stratified_subset
from .decomposition.ssdr import SkinningDecomposition
from .edited_skeleton import EditedSkeleton, SkeletonEdits
from .rig import Rig
from .skeleton.binding import nearby_joints
from .skeleton.kinematics import joint_transforms
from .skeleton.motion_affinity import motion_affinity, segment_distances
from .skeleton.tree import KinematicTree

F64 = NDArray[np.float64]
SAMPLE = 20_000
SOME = 0.02  # share of a bone's points from which a joint counts
MOST_FRAMES = 60


@dataclass(frozen=True)
class Binding:
    """Joints of outer bones.

    joints : (B,) joint that carries each outer bone; allowed : (B, J) joints to choose from
    review : (B,) bool, bones that are bound anew
    """

    joints: NDArray[np.int32]
    allowed: NDArray[np.bool_]
    review: NDArray[np.bool_]


def first_bindings(rig: Rig, edited: EditedSkeleton, edits: SkeletonEdits) -> list[Binding]:
    """Bindings to start from: by what carried each bone, and by the nearest segment where that was changed.

    Only bones of joints that were changed, or are beside such, or that lie on changed ones, are bound anew.
    """
    successors = edited.successors(rig)
    before = successors[rig.bone_joints]
    if not edits.beside.any():
        own = np.zeros((rig.bone_count, len(edited)), bool)
        own[np.arange(rig.bone_count), before] = True
        return [Binding(before, own, np.zeros(rig.bone_count, bool))]
    carriers = ~edited.ends
    shares = _near_shares(rig, edited, carriers)
    nearest = shares.argmax(axis=1).astype(np.int32)
    on_changed = shares[:, edits.changed].sum(axis=1) > 0.5
    review = (before < 0) | edits.beside[before] | on_changed
    kept = np.where(before < 0, nearest, before)
    allowed = nearby_joints(edited.tree, shares, leaves=True)
    allowed |= edited.tree.hops()[kept] <= 1
    allowed &= carriers & edits.beside  # a change on one side of a body must not move bones to the other
    allowed[~review] = False
    allowed[np.arange(rig.bone_count), kept] = True
    by_place = np.where(review & (edits.changed[nearest] | (before < 0)), nearest, kept)
    allowed[np.arange(rig.bone_count), by_place] = True
    bindings = [Binding(by_place, allowed, review)]
    if (kept != by_place).any():
        bindings.append(Binding(kept, allowed, review))
    return bindings


def final_affinity(
    old: Rig,
    new: Rig,
    edited: EditedSkeleton,
    edits: SkeletonEdits,
    binding: Binding,
    progress: Progress = no_progress,
) -> NDArray[np.float32]:
    """Shares (B, J) of the joints in each outer bone: as they were, but anew for bones that were bound anew.

    A point of those belongs to the joint whose motion follows it best (see `motion_affinity`).
    """
    shares = np.zeros((new.bone_count, new.joint_count))
    kept = edited.origins >= 0
    if old.bone_affinity is None:
        shares[np.arange(new.bone_count), new.bone_joints] = 1
    else:
        shares[:, kept] = old.bone_affinity[:, edited.origins[kept]]
    anew = binding.review
    if anew.any():
        moving = _moving_shares(new, anew, progress)
        moving[:, edited.ends] = 0
        # The joint a bone hangs on has a share in any case.
        held = np.eye(new.joint_count)[new.bone_joints]
        empty = moving.sum(axis=1, keepdims=True) <= 0
        moving = np.where(empty, held, moving / np.maximum(moving.sum(axis=1, keepdims=True), 1e-30))
        lacking = moving[np.arange(len(moving)), new.bone_joints] < SOME
        moving[lacking] = 0.5 * (moving[lacking] + held[lacking])
        shares[anew] = moving[anew]
    return (shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-30)).astype(np.float32)


def _near_shares(rig: Rig, edited: EditedSkeleton, carriers: NDArray[np.bool_]) -> F64:
    """Share (B, J) of each bone's points that lie nearest to the segments of each joint."""
    rows = stratified_subset(rig.rest, SAMPLE)
    distances = segment_distances(rig.rest[rows].astype(np.float64), edited.tree)
    distances[:, ~carriers] = np.inf
    nearest = distances.argmin(axis=1)
    shares = np.zeros((rig.bone_count, len(edited)))
    for bone, weight in zip(rig.indices[rows].T, rig.weights[rows].T, strict=True):
        np.add.at(shares, (bone, nearest), weight)
    totals = shares.sum(axis=1, keepdims=True)
    return shares / np.where(totals > 0, totals, 1)


def _moving_shares(rig: Rig, bones: NDArray[np.bool_], progress: Progress) -> F64:
    """Share (B, J) of the points of some bones (B,) that each joint's motion follows best."""
    held = (bones[rig.indices] * (rig.weights > SOME)).any(axis=1)
    points = np.flatnonzero(held)
    points = points[stratified_subset(rig.rest[points], SAMPLE)]
    count = rig.frame_count
    few = np.unique(np.linspace(0, count - 1, min(MOST_FRAMES, count)).round().astype(np.intp))
    skin = SkinningDecomposition(
        rig.indices[points], rig.weights[points].astype(np.float64), rig.bone_transforms[few], 0.0
    )
    rest = rig.rest[points].astype(np.float64)
    frames = replay(rest, skin.indices, skin.weights, skin.transforms)
    motions = joint_transforms(
        rig.joint_parents, rig.joint_positions, rig.joint_rotations[few], rig.root_translations[few]
    )
    tree = KinematicTree(rig.joint_positions, rig.joint_parents)
    return motion_affinity(tree, motions, rest, frames, skin, progress)[0]
