"""A skeleton as someone corrected it: what became of the joints of a rig, and what is new."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import RigError
from .rig import Rig
from .skeleton.tree import KinematicTree

F64 = NDArray[np.float64]
UNMOVED = 1e-5  # of the rest pose's box diagonal: joints that are off by less stand where they stood


@dataclass(frozen=True)
class EditedSkeleton:
    """J joints in the rest pose of a rig. Make one with `make`, which checks and orders.

    names : J names, unique
    parents : (J,) int32, parents before children, -1 for the root (joint 0)
    positions : (J, 3) float64, in the axes of the rig
    origins : (J,) int32, which joint of the rig each one is, -1 for a new one
    ends : (J,) bool, ends of chains, which carry no outer bone
    """

    names: tuple[str, ...]
    parents: NDArray[np.int32]
    positions: F64
    origins: NDArray[np.int32]
    ends: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def make(
        cls,
        rig: Rig,
        names: Sequence[str],
        parents: Sequence[int] | NDArray[np.integer],
        positions: NDArray[np.floating],
        origins: Sequence[int] | NDArray[np.integer],
        ends: Sequence[bool] | NDArray[np.bool_] | None = None,
    ) -> EditedSkeleton:
        """Return the skeleton, parents before children, else in the rig's order and new joints last.

        Joints that hardly moved are put where they were.

        Parameters
        ----------
        rig : whose joints `origins` counts
        names : J names; parents : (J,), -1 for the root; positions : (J, 3); origins : (J,), -1 where new
        ends : (J,); None: joints without children, but for those that carried outer bones or were given

        Raises
        ------
        RigError : no joint, several roots, a circle of parents, a name or an origin that occurs twice, or a
            joint that is nowhere
        """
        parents, origins = np.asarray(parents, np.int32), np.asarray(origins, np.int32)
        places = np.array(positions, np.float64).reshape(-1, 3)
        _check(rig, names, parents, places, origins)
        kept = np.flatnonzero(origins >= 0)
        before = rig.joint_positions[origins[kept]]
        size = float(np.linalg.norm(np.ptp(rig.rest, axis=0))) or 1.0
        still = np.abs(places[kept] - before).max(axis=1) <= UNMOVED * size
        places[kept[still]] = before[still]
        order = _order(parents, origins)
        rank = np.argsort(order)
        return cls(
            tuple(str(names[j]) for j in order),
            np.where(parents[order] >= 0, rank[parents[order]], -1).astype(np.int32),
            places[order],
            origins[order],
            (_ends(rig, parents, origins) if ends is None else np.asarray(ends, bool))[order],
        )

    @property
    def tree(self) -> KinematicTree:
        """Positions and parents."""
        return KinematicTree(self.positions, self.parents)

    def successors(self, rig: Rig) -> NDArray[np.int32]:
        """Which joint each joint (J',) of the rig is now, -1 where it is gone."""
        found = np.full(rig.joint_count, -1, np.int32)
        kept = np.flatnonzero(self.origins >= 0)
        found[self.origins[kept]] = kept
        return found


@dataclass(frozen=True)
class SkeletonEdits:
    """What was changed.

    added, moved, hung_anew, renamed : (J,) bool, joints of the edited skeleton
    removed : (J',) bool, joints of the rig
    beside : (J,) bool, joints that were changed, or whose parent or children were
    """

    added: NDArray[np.bool_]
    moved: NDArray[np.bool_]
    hung_anew: NDArray[np.bool_]
    renamed: NDArray[np.bool_]
    removed: NDArray[np.bool_]
    beside: NDArray[np.bool_]

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Joints (J,) that are not as they were, names aside."""
        return self.added | self.moved | self.hung_anew

    @classmethod
    def of(cls, rig: Rig, edited: EditedSkeleton) -> SkeletonEdits:
        """Compare an edited skeleton with the rig's."""
        old, kept = edited.origins, edited.origins >= 0
        successors = edited.successors(rig)
        old_parents = np.where(kept, rig.joint_parents[old], -1)
        expected = np.where(old_parents >= 0, successors[old_parents], -1)
        moved = kept & (edited.positions != rig.joint_positions[old]).any(axis=1)
        hung = kept & ((edited.parents != expected) | ((old_parents >= 0) & (expected < 0)))
        renamed = kept & (np.array(edited.names) != np.array(rig.joint_names)[old])
        changed = ~kept | moved | hung
        beside = changed.copy()
        child = np.flatnonzero(edited.parents >= 0)
        beside[child] |= changed[edited.parents[child]]
        beside[edited.parents[child][changed[child]]] = True
        # Joints that lost a child, to nobody or to another joint, lost a neighbour too.
        gone = np.flatnonzero((successors < 0) & (rig.joint_parents >= 0))
        bereft = np.concatenate([rig.joint_parents[gone], old_parents[hung & (old_parents >= 0)]])
        bereft = successors[bereft]
        beside[bereft[bereft >= 0]] = True
        return cls(~kept, moved, hung, renamed, successors < 0, beside)


def _order(parents: NDArray[np.int32], origins: NDArray[np.int32]) -> NDArray[np.intp]:
    """Joints (J,), parents before children (Kahn 1962), else by origin, and new ones as they come."""
    children: list[list[int]] = [[] for _ in parents]
    for joint, parent in enumerate(parents.tolist()):
        if parent >= 0:
            children[parent].append(joint)
    late = np.iinfo(np.int32).max
    rank = [(int(origin) if origin >= 0 else late, joint) for joint, origin in enumerate(origins.tolist())]
    ready, order = [rank[joint] for joint in np.flatnonzero(parents < 0)], []
    while ready:
        joint = heapq.heappop(ready)[1]
        order.append(joint)
        for child in children[joint]:
            heapq.heappush(ready, rank[child])
    return np.array(order, np.intp)


def _ends(rig: Rig, parents: NDArray[np.int32], origins: NDArray[np.int32]) -> NDArray[np.bool_]:
    carried = np.bincount(rig.bone_joints, minlength=rig.joint_count) > 0
    known = (origins >= 0) & (carried[origins] | (rig.joint_bind is not None))
    return ~np.isin(np.arange(len(parents)), parents) & ~known & (parents >= 0)


def _check(
    rig: Rig,
    names: Sequence[str],
    parents: NDArray[np.int32],
    positions: F64,
    origins: NDArray[np.int32],
) -> None:
    """Raise RigError in one sentence where this is no skeleton."""
    count = len(names)
    if not count:
        raise RigError("The skeleton has no joints left; undo that, or build the rig again.")
    if {len(parents), len(positions), len(origins)} != {count}:
        raise RigError("The edited skeleton is not usable: its arrays do not have one row for each joint.")
    if (parents >= count).any() or (origins >= rig.joint_count).any():
        raise RigError("The edited skeleton is not usable: it names joints that do not exist.")
    twice = next((name for name in names if list(names).count(name) > 1), None)
    if twice is not None:
        raise RigError(f"Two joints are called '{twice}'; give one of them another name.")
    if not np.isfinite(positions).all():
        lost = names[int(np.flatnonzero(~np.isfinite(positions).all(axis=1))[0])]
        raise RigError(f"Joint '{lost}' is nowhere: its position is not finite.")
    kept = origins[origins >= 0]
    if len(np.unique(kept)) < len(kept):
        raise RigError("The edited skeleton is not usable: two joints claim to be the same joint of the rig.")
    roots = np.flatnonzero(parents < 0)
    if len(roots) > 1:
        shown = ", ".join(f"'{names[j]}'" for j in roots[:4]) + (" ..." if len(roots) > 4 else "")
        raise RigError(
            f"The skeleton falls into {len(roots)} pieces, as {shown} have no parent; parent all but one of "
            "them to a bone of the skeleton (Ctrl+P in Edit Mode)."
        )
    if _has_circle(parents):
        raise RigError("The parents of the joints form a circle; give one of them another parent.")


def _has_circle(parents: NDArray[np.int32]) -> bool:
    at = np.arange(len(parents))
    for _ in range(len(parents)):
        at = np.where(at >= 0, parents[at], -1)
    return bool((at >= 0).any())
