"""One skeleton after another of the same body: which joints go on, in what order, under which names."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from .kinematics import joint_transforms
from .tree import KinematicTree

F64 = NDArray[np.float64]
SAME = 0.06  # of the box diagonal: joints farther apart are not the same
_CHAIN = re.compile(r"chain_(\d+)\.(\d+)(\.[LR])?$")


@dataclass(frozen=True)
class PosedSkeleton:
    """J joints that carry B outer bones through F frames; see `Rig` for the arrays.

    origins : (J,) int32, joint of the earlier skeleton that each is, -1 where it is new
    """

    tree: KinematicTree
    names: tuple[str, ...]
    bone_joints: NDArray[np.int32]
    affinity: F64
    rotations: F64
    root_translations: F64
    origins: NDArray[np.int32]

    def motions(self) -> F64:
        """(F, J, 3, 4) rest -> posed."""
        return joint_transforms(
            self.tree.parents, self.tree.positions, self.rotations, self.root_translations
        )


def succeed(skeleton: PosedSkeleton, known: tuple[str, ...]) -> PosedSkeleton:
    """Put joints in the order they were in, new ones last except above what hangs on them, and name them.

    A joint keeps its name among the ``known`` ones; a new one goes on with its parent's chain or begins one.
    """
    origins, parents = skeleton.origins, skeleton.tree.parents
    count = len(origins)
    order: list[int] = []
    wanted = np.where(origins >= 0, origins, len(known) + np.arange(count))
    for joint in np.argsort(wanted, kind="stable").tolist():
        above = []
        while joint >= 0 and joint not in order:
            above.append(joint)
            joint = int(parents[joint])
        order += reversed(above)
    rank = np.argsort(order)
    above_it = parents[order]
    tree = KinematicTree(
        skeleton.tree.positions[order], np.where(above_it >= 0, rank[above_it], -1).astype(np.int32)
    )
    return PosedSkeleton(
        tree=tree,
        names=_names(tree, origins[order], known),
        bone_joints=rank[skeleton.bone_joints].astype(np.int32),
        affinity=skeleton.affinity[:, order],
        rotations=skeleton.rotations[:, order],
        root_translations=skeleton.root_translations,
        origins=origins[order],
    )


def matched(skeleton: PosedSkeleton, known: PosedSkeleton, size: float) -> PosedSkeleton:
    """Take joints of a skeleton found anew for those of a known one that stand about there.

    Joints that move something are matched with such, ends with ends, so that their distances sum up to least
    (Kuhn 1955); the roots are the same. ``size``: diagonal of the rest points' box.
    """
    apart = np.linalg.norm(skeleton.tree.positions[:, None] - known.tree.positions, axis=-1) / size
    apart[(skeleton.tree.child_counts > 0)[:, None] != (known.tree.child_counts > 0)] = np.inf
    apart[0], apart[:, 0] = np.inf, np.inf
    rows, columns = linear_sum_assignment(np.where(apart < SAME, apart, 1.0))
    origins = np.full(len(skeleton.tree), -1, np.int32)
    near = apart[rows, columns] < SAME
    origins[rows[near]] = columns[near]
    origins[0] = 0
    return succeed(replace(skeleton, origins=origins), known.names)


def _names(tree: KinematicTree, origins: NDArray[np.int32], known: tuple[str, ...]) -> tuple[str, ...]:
    """Names (J): the known ones; a new joint goes on with its parent's chain, or begins one."""
    names: list[str] = [known[o] if o >= 0 else "" for o in origins.tolist()]
    chains = [int(found[1]) for name in known if (found := _CHAIN.match(name))]
    for joint in np.flatnonzero(origins < 0).tolist():
        parent = names[int(tree.parents[joint])]
        found = _CHAIN.match(parent)
        name = f"chain_{found[1]}.{int(found[2]) + 1:03d}{found[3] or ''}" if found else ""
        if not name or name in names or name in known:
            chains.append(max(chains, default=0) + 1)
            name = f"chain_{chains[-1]:02d}.001{(found[3] or '') if found else ''}"
        names[joint] = name
    return tuple(names)
