"""How two skeletons at rest lie to each other: which bones pair, turn and size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..rigging.kabsch import kabsch
from .skeleton import RestSkeleton

F64 = NDArray[np.float64]
Ints = NDArray[np.intp]

SNAP = np.cos(np.radians(25.0))  # axes that lie closer than this are meant to be the same
TRUNK = 0.4  # of all pairs: who carries so many is no limb
FLAT = 0.01  # smallest variance of the bones across, of the largest, that tells how they are turned


@dataclass(frozen=True)
class BonePairs:
    """P mapped bones, parents before children.

    targets, sources : (P,) bones of either skeleton
    parents : (P,) the nearest pair above in the target, -1 where there is none
    """

    targets: Ints
    sources: Ints
    parents: Ints

    @classmethod
    def make(cls, target: RestSkeleton, bone_map: NDArray[np.integer]) -> BonePairs:
        """Return the pairs of ``bone_map`` (T,): for each target bone its source bone, or -1."""
        targets = np.flatnonzero(np.asarray(bone_map) >= 0)
        places = {bone: pair for pair, bone in enumerate(targets.tolist())}
        parents = []
        for bone in targets.tolist():
            above = int(target.parents[bone])
            while above >= 0 and above not in places:
                above = int(target.parents[above])
            parents.append(places.get(above, -1))
        return cls(targets, np.asarray(bone_map)[targets].astype(np.intp), np.array(parents, np.intp))

    def __len__(self) -> int:
        return len(self.targets)

    def children(self, pair: int) -> list[int]:
        """Pairs right below one."""
        return np.flatnonzero(self.parents == pair).tolist()

    @property
    def carried(self) -> Ints:
        """(P,) how many pairs hang on each, itself included."""
        carried = np.ones(len(self), np.intp)
        for pair in range(len(self) - 1, -1, -1):
            if self.parents[pair] >= 0:
                carried[self.parents[pair]] += carried[pair]
        return carried

    @property
    def top(self) -> int:
        """The pair whose place is that of the body: the first from which limbs branch, as hips below a root.

        The uppermost where none branch.
        """
        first = int(np.argmax(np.where(self.parents < 0, self.carried, 0)))
        pair, below = first, self.children(first)
        while len(below) == 1:
            pair, below = below[0], self.children(below[0])
        return pair if below else first

    @property
    def body(self) -> NDArray[np.bool_]:
        """(P,) all but the pairs above the hips: a root on the ground is no part of the body."""
        body, pair = np.ones(len(self), bool), int(self.parents[self.top])
        while pair >= 0:
            body[pair] = False
            pair = int(self.parents[pair])
        return body


def align_axes(target: RestSkeleton, source: RestSkeleton, pairs: BonePairs) -> F64:
    """Return the rotation (3, 3) from the source's axes to the target's that lays one body on the other.

    The best rotation of the mapped heads (Kabsch 1976), of those in the trunk and next to it where these tell
    it, as no pose moves them much; then turned so that axes which nearly coincide do: other proportions or a
    stride must not tilt the body. These are the axes of both armatures, so that it does not matter how they
    stand in the scene, or else the scene's. Where the heads lie on a line, both stay as they stand.
    """
    if len(pairs) < 2:
        return _from_world(target, source)
    for chosen in (_trunk(pairs), np.ones(len(pairs), bool)):
        if chosen.sum() < 3:
            continue
        points = [
            _spread(skeleton.heads[bones[chosen]])
            for skeleton, bones in ((target, pairs.targets), (source, pairs.sources))
        ]
        covariance = points[1].T @ points[0]
        strength = np.linalg.svd(covariance, compute_uv=False)
        if strength[1] > FLAT * strength[0]:
            break
    else:
        return _from_world(target, source)
    turn = kabsch(covariance)
    own, held = _snap(turn)
    scene, scene_held = _snap(target.world @ turn @ source.world.T)
    return target.world.T @ scene @ source.world if scene_held > held else own


def _from_world(target: RestSkeleton, source: RestSkeleton) -> F64:
    return target.world.T @ source.world


def _spread(points: F64) -> F64:
    """Points about their middle, in units of their spread."""
    points = points - points.mean(axis=0)
    return points / max(float(np.sqrt((points**2).sum(axis=1).mean())), 1e-12)


def _trunk(pairs: BonePairs) -> NDArray[np.bool_]:
    """Pairs (P,) that carry much of the body, and those right below them."""
    trunk = pairs.carried >= TRUNK * pairs.carried.max()
    return trunk | ((pairs.parents >= 0) & trunk[pairs.parents])


def _snap(turn: F64) -> tuple[F64, int]:
    """Turn on so that the axis nearest to one of the other's axes lies on it, and then another about it.

    Returns the rotation and how many axes were near enough for that, 0 to 2.
    """
    held, count = None, 0
    for count in range(3):
        source, target = np.unravel_index(np.argmax(_off(np.abs(turn.T), held)), (3, 3))
        if count == 2 or abs(turn[target, source]) < SNAP:
            break
        wanted = np.zeros(3)
        wanted[target] = np.sign(turn[target, source])
        turn = minimal_rotation(turn[:, source], wanted) @ turn
        held = source, target
    return turn, count


def _off(nearness: F64, held: tuple[np.intp, np.intp] | None) -> F64:
    """Nearness (3, 3) of source to target axes, without those of the pair that is held."""
    if held is not None:
        nearness = nearness.copy()
        nearness[held[0]], nearness[:, held[1]] = -1, -1
    return nearness


def minimal_rotation(a: F64, b: F64) -> F64:
    """Return the smallest rotations (..., 3, 3) that take directions a (..., 3) to b (..., 3), of any length.

    Where they are opposite, half a turn about any axis across.
    """
    a, b = unit(a), unit(b)
    cross, dot = np.cross(a, b), (a * b).sum(axis=-1)
    skew = np.zeros((*dot.shape, 3, 3))
    x, y, z = np.moveaxis(cross, -1, 0)
    skew[..., 0, 1], skew[..., 0, 2], skew[..., 1, 2] = -z, y, -x
    skew[..., 1, 0], skew[..., 2, 0], skew[..., 2, 1] = z, -y, x
    opposite = dot < -1 + 1e-12
    turn = np.eye(3) + skew + skew @ skew / (1 + np.where(opposite, 0, dot))[..., None, None]
    if opposite.any():
        across = unit(np.cross(a, np.eye(3)[np.abs(a).argmin(axis=-1)]))
        half = 2 * across[..., :, None] * across[..., None, :] - np.eye(3)
        turn = np.where(opposite[..., None, None], half, turn)
    return turn


def unit(vectors: F64) -> F64:
    """Return vectors (..., 3) of length 1; those of no length stay so."""
    vectors = np.asarray(vectors, np.float64)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def size_ratio(target: RestSkeleton, source: RestSkeleton, pairs: BonePairs, turn: F64) -> float:
    """Return how much longer the target's steps are: ratio of legs, of whole sizes where it has none."""
    up = target.up
    lengths = [
        float(heights[pairs.top] - heights[pairs.body].min())
        for heights in (target.heads[pairs.targets] @ up, source.heads[pairs.sources] @ (turn.T @ up))
    ]
    spreads = [
        float(np.linalg.norm(np.ptp(skeleton.heads[bones], axis=0)))
        for skeleton, bones in ((target, pairs.targets), (source, pairs.sources))
    ]
    if all(length > 0.1 * spread for length, spread in zip(lengths, spreads, strict=True)):
        return lengths[0] / lengths[1]
    return spreads[0] / spreads[1] if min(spreads) > 1e-9 else 1.0
