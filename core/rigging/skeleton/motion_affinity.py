"""Which joints of a known skeleton move the points of which outer bone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...progress import Progress, no_progress
from ..decomposition.ssdr import SkinningDecomposition
from .tree import KinematicTree

F64 = NDArray[np.float64]
MOST_FRAMES = 120
BLOCK = 8192
# What counts a little besides the distance a joint's motion leaves, of a point's distance to the joint's
# segments and of the joint's sliding: enough to tell fingers that never part, and feet from their helpers,
# too little to keep cloth off the joint it moves with.
ASIDE = 0.05


def motion_affinity(
    tree: KinematicTree,
    motions: F64,
    rest: NDArray[np.floating],
    positions: NDArray[np.floating],
    skin: SkinningDecomposition,
    progress: Progress = no_progress,
) -> tuple[F64, F64]:
    """Find how well each joint would carry each outer bone.

    A point belongs to the joint whose rigid motion follows it best, among equals to the nearest, and least
    to one that slides on its parent, as the helpers of a rig do.

    Parameters
    ----------
    tree : joints in the rest pose; motions : (F, J, 3, 4) from there
    rest : (N, 3); positions : (F, N, 3); skin : outer bones

    Returns
    -------
    affinity : (B, J) share of a bone's points that belong to each joint; rows sum to 1, or 0 without points
    cost : (B, J) mean over a bone's points of the squared distance that decides
    """
    few = np.unique(np.linspace(0, len(motions) - 1, min(MOST_FRAMES, len(motions))).round().astype(int))
    slides = parent_slides(tree, motions[few])
    bones, joints = skin.transforms.shape[1], len(tree)
    affinity, costs = np.zeros((bones, joints)), np.zeros((bones, joints))
    for first in range(0, len(rest), BLOCK):
        progress("Joints", first / len(rest))
        block = slice(first, first + BLOCK)
        points = np.asarray(rest[block], np.float64)
        cost = _squared_misses(points, positions[few, block], motions[few])
        cost += ASIDE**2 * (segment_distances(points, tree) ** 2 + slides**2)
        indices, weights = skin.indices[block], skin.weights[block]
        for bone, weight in zip(indices.T, weights.T, strict=True):
            np.add.at(affinity, (bone, cost.argmin(axis=1)), weight)
            np.add.at(costs, bone, weight[:, None] * cost)
    totals = np.maximum(affinity.sum(axis=1, keepdims=True), 1e-30)
    return affinity / totals, costs / totals


def parent_slides(tree: KinematicTree, motions: F64) -> F64:
    """How far each joint (J,) strays from where its parent would take it, root mean square over frames."""
    child = np.flatnonzero(tree.parents >= 0)
    slides = np.zeros(len(tree))
    away = _moved(motions[:, child], tree.positions[child]) - _moved(
        motions[:, tree.parents[child]], tree.positions[child]
    )
    slides[child] = np.sqrt((away**2).sum(axis=-1).mean(axis=0))
    return slides


def _moved(motions: F64, points: F64) -> F64:
    return np.einsum("fjab,jb->fja", motions[..., :3], points) + motions[..., 3]


def _squared_misses(points: F64, frames: NDArray[np.floating], motions: F64) -> F64:
    """Mean squared distance (N, J) of points (N, 3) moved by each joint to where they are (F, N, 3)."""
    count, joints = motions.shape[:2]
    center = points.mean(axis=0)
    homogeneous = np.concatenate([points - center, np.ones((len(points), 1))], axis=1)
    target = np.asarray(frames, np.float64) - center
    maps = motions.copy()
    maps[..., 3] += maps[..., :3] @ center - center
    square = np.einsum("fjai,fjak->jik", maps, maps)
    cost = np.einsum("ni,jik,nk->nj", homogeneous, square, homogeneous, optimize=True)
    for axis in range(3):
        cross = target[..., axis].T @ maps[:, :, axis].reshape(count, 4 * joints)
        cost -= 2 * np.einsum("nji,ni->nj", cross.reshape(-1, joints, 4), homogeneous)
    return np.maximum(cost + (target**2).sum(axis=(0, 2))[:, None], 0) / count


def segment_distances(points: F64, tree: KinematicTree) -> F64:
    """Distance (N, J) of points to the segments from each joint to its children; an end is a point."""
    distances = np.linalg.norm(points[:, None] - tree.positions, axis=-1)
    for joint, parent in enumerate(tree.parents):
        if parent < 0:
            continue
        start, along = tree.positions[parent], tree.positions[joint] - tree.positions[parent]
        part = np.clip((points - start) @ along / max(along @ along, 1e-30), 0, 1)
        away = np.linalg.norm(points - start - part[:, None] * along, axis=1)
        distances[:, parent] = np.minimum(distances[:, parent], away)
    return distances
