"""Names of joints: stable, told by the chain a joint lies on, with Blender's .L and .R where limbs mirror."""

from __future__ import annotations

from .tree import KinematicTree


def name_joints(tree: KinematicTree) -> tuple[str, ...]:
    """Names (J) by chain: "root", then "chain_01.001", "chain_01.002", ... along each unbranched chain."""
    names: list[str] = []
    chain_of: list[int] = []
    place: list[int] = []
    chains = 0
    counts = tree.child_counts
    for parent in tree.parents:
        if parent < 0:
            names.append("root")
            chain_of.append(0)
            place.append(0)
            continue
        if parent == 0 or counts[parent] != 1:
            chains += 1
            chain_of.append(chains)
            place.append(1)
        else:
            chain_of.append(chain_of[parent])
            place.append(place[parent] + 1)
        names.append(f"chain_{chain_of[-1]:02d}.{place[-1]:03d}")
    return tuple(names)
