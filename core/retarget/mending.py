"""Limbs that a rig hangs elsewhere, as feet on the root for inverse kinematics, are put together again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .bone_names import BoneName, main_role
from .skeleton import RestSkeleton

Ints = NDArray[np.intp]

CHAINS = (("upperarm", "forearm", "hand"), ("thigh", "shin", "foot", "toes"))


def mend_limbs(skeleton: RestSkeleton, names: list[BoneName]) -> tuple[RestSkeleton, Ints]:
    """Return the skeleton with the parts of every limb one below the other, as far as names tell them.

    Returns
    -------
    the skeleton, its bones in another order where need be, and the (B,) old index of each
    """
    parents, above = skeleton.parents.copy(), skeleton.ancestry()
    for chain in CHAINS:
        for bone, name in enumerate(names):
            role = main_role(name)
            if name.helper or role not in chain[1:]:
                continue
            higher = chain[: chain.index(role)]
            limb = [b for b, n in enumerate(names) if _is(n, name.side, higher) and not above[bone, b]]
            if limb and not above[limb, bone].any():
                parents[bone] = max(limb, key=lambda b: chain.index(main_role(names[b])))
    order = _parents_first(parents)
    place = np.empty(len(order), np.intp)
    place[order] = np.arange(len(order))
    moved = np.where(parents >= 0, place[parents], -1)[order]
    words = [skeleton.names[b] for b in order]
    return RestSkeleton.make(
        words, moved, skeleton.heads[order], skeleton.tails[order], skeleton.world
    ), order


def _is(name: BoneName, side: str, roles: tuple[str, ...]) -> bool:
    return not name.helper and name.side == side and main_role(name) in roles


def _parents_first(parents: NDArray[np.int32]) -> Ints:
    depth = np.zeros(len(parents), np.intp)
    for bone in range(len(parents)):
        above = parents[bone]
        while above >= 0:
            depth[bone] += 1
            above = parents[above]
    return np.argsort(depth, kind="stable")
