"""Names of joints: stable, told by the chain a joint lies on, with Blender's .L and .R where limbs mirror."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .tree import KinematicTree

TOLERANCE = 0.08  # of the skeleton's size: how far mirrored joints may miss each other


def name_joints(tree: KinematicTree) -> tuple[str, ...]:
    """Names (J): "root", then "chain_01.001", "chain_01.002", ... along each unbranched chain.

    Where the skeleton is nearly symmetric about a plane across one of its axes, mirrored chains share a
    name with the suffixes ".L" (the side of the axis' positive half, as a figure that faces -y or +z has
    its left) and ".R".
    """
    chain, place = _chains(tree)
    twins, side = _mirrored_chains(tree, chain, place)
    numbers: dict[int, int] = {}
    names = []
    for joint in range(len(tree)):
        if joint == 0:
            names.append("root")
            continue
        own = int(chain[joint])
        leader = min(own, twins.get(own, own))
        number = numbers.setdefault(leader, len(numbers) + 1)
        suffix = (".L" if side[own] > 0 else ".R") if own in twins else ""
        names.append(f"chain_{number:02d}.{place[joint]:03d}{suffix}")
    return tuple(names)


def _chains(tree: KinematicTree) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Chain (J,) of every joint, 0 for the root, and its place (J,) on it, from 1."""
    chain, place = np.zeros(len(tree), dtype=np.intp), np.zeros(len(tree), dtype=np.intp)
    for joint, parent in enumerate(tree.parents):
        if parent < 0:
            continue
        if parent == 0 or tree.child_counts[parent] != 1:
            chain[joint], place[joint] = chain.max() + 1, 1
        else:
            chain[joint], place[joint] = chain[parent], place[parent] + 1
    return chain, place


def _mirrored_chains(
    tree: KinematicTree, chain: NDArray[np.intp], place: NDArray[np.intp]
) -> tuple[dict[int, int], dict[int, float]]:
    """Chain -> mirrored chain, about the axis plane that mirrors most joints, and the side of each chain."""
    size = max(float(np.linalg.norm(np.ptp(tree.positions, axis=0))), 1e-12)
    best: dict[int, int] = {}
    sides: dict[int, float] = {}
    for axis in range(3):
        middle = _mirror_plane(tree.positions[:, axis])
        mirrored = tree.positions.copy()
        mirrored[:, axis] = 2 * middle - mirrored[:, axis]
        offset = {int(c): float((tree.positions[chain == c, axis] - middle).mean()) for c in np.unique(chain)}
        distance = np.linalg.norm(tree.positions[:, None] - mirrored, axis=-1)
        found = {}
        for one in range(1, chain.max() + 1):
            for other in range(one + 1, chain.max() + 1):
                mine, theirs = np.flatnonzero(chain == one), np.flatnonzero(chain == other)
                if (
                    len(mine) != len(theirs)
                    or offset[one] * offset[other] >= 0
                    or one in found
                    or other in found
                ):
                    continue
                apart = distance[mine, theirs].max()
                if apart < TOLERANCE * size and abs(offset[one]) > 0.02 * size:
                    found[one], found[other] = other, one
        if len(found) > len(best):
            best, sides = found, offset
    return best, sides


def _mirror_plane(values: NDArray[np.float64]) -> float:
    """The middle about which most values have a partner at the same distance on the other side."""
    candidates = (0.5 * (values[:, None] + values)).ravel()
    spread = max(float(np.ptp(values)), 1e-12)
    miss = np.abs(2 * candidates[:, None, None] - values[:, None] - values).min(axis=2)
    return float(candidates[np.argmin(np.minimum(miss, 0.1 * spread).sum(axis=1))])
