"""How the limbs of one skeleton at rest must bend to stand like another: T-pose, A-pose, a stride."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..rigging.kabsch import kabsch
from .alignment import BonePairs, minimal_rotation, unit
from .skeleton import RestSkeleton

F64 = NDArray[np.float64]
Ints = NDArray[np.intp]

GROUND = 0.14  # of the height: bones whose heads lie lower stand on the ground
SLOPE = np.sin(np.radians(30.0))  # feet that rise by less from one rest pose to the other are both flat
FAN = np.cos(np.radians(30.0))  # branches that agree better than this turn together


def on_ground(skeleton: RestSkeleton, up: F64, bones: Ints) -> NDArray[np.bool_]:
    """Return which of the bones (P,) stand on the ground at rest."""
    heights = skeleton.heads @ up
    low, high = heights.min(), heights.max()
    return heights[bones] < low + GROUND * (high - low)


def rest_corrections(target: RestSkeleton, source: RestSkeleton, pairs: BonePairs, turn: F64) -> F64:
    """Return the rotations (P, 3, 3), in the target's axes, that pose it like the source's rest pose.

    A limb is bent from its root to its end so that each bone points to the next mapped bone as the source's
    does, with the twist that the bone above already has. Where several limbs branch off, the bone turns with
    them only where they spread alike in both, as fingers do. Feet on the ground only turn about up: they stay
    as flat as they are. A foot that one of the two lifts at rest is turned as if it stood like the others.
    """
    up = target.up
    standing = [
        on_ground(skeleton, way, bones)
        for skeleton, way, bones in ((target, up, pairs.targets), (source, turn.T @ up, pairs.sources))
    ]
    ways = [_directions(target, source, pairs, pair, turn) for pair in range(len(pairs))]
    flat = [
        bool(on and (len(mine) != 1 or abs((mine[0] - theirs[0]) @ up) < SLOPE))
        for on, (mine, theirs) in zip(standing[0] & standing[1], ways, strict=True)
    ]
    rises = [_rise(up, *way) for pair, way in enumerate(ways) if flat[pair] and len(way[0]) == 1]
    corrections = np.tile(np.eye(3), (len(pairs), 1, 1))
    for pair, (mine, theirs) in enumerate(ways):
        above = pairs.parents[pair]
        carried = corrections[above] if above >= 0 else np.eye(3)
        if flat[pair]:
            corrections[pair] = _turn_about(up, mine, theirs)
            continue
        if standing[1][pair] and len(mine) == 1 and rises:
            theirs = _raised(up, theirs, float(np.mean(rises)))
        corrections[pair] = _bend(mine @ carried.T, theirs, above >= 0) @ carried
    return corrections


def _rise(up: F64, mine: F64, theirs: F64) -> float:
    """How much steeper than the source's a target's bone goes up (radians)."""
    return float(np.arcsin(np.clip(mine[0] @ up, -1, 1)) - np.arcsin(np.clip(theirs[0] @ up, -1, 1)))


def _raised(up: F64, ways: F64, rise: float) -> F64:
    """Directions (1, 3) that go up steeper by ``rise``, to the same side."""
    level = ways - (ways @ up)[:, None] * up
    if np.linalg.norm(level) < 0.1:
        return ways
    angle = float(np.clip(np.arcsin(np.clip(ways[0] @ up, -1, 1)) + rise, -np.pi / 2, np.pi / 2))
    return np.cos(angle) * unit(level) + np.sin(angle) * up


def _directions(
    target: RestSkeleton, source: RestSkeleton, pairs: BonePairs, pair: int, turn: F64
) -> tuple[F64, F64]:
    """Unit directions (C, 3) to the pairs right below: the target's, and the source's in its axes."""
    below = pairs.children(pair)
    mine = target.heads[pairs.targets[below]] - target.heads[pairs.targets[pair]]
    theirs = (source.heads[pairs.sources[below]] - source.heads[pairs.sources[pair]]) @ turn.T
    lengths = [np.linalg.norm(each, axis=1) for each in (mine, theirs)]
    long = (lengths[0] > 1e-6 * lengths[0].max(initial=0)) & (lengths[1] > 1e-6 * lengths[1].max(initial=0))
    return unit(mine[long]), unit(theirs[long])


def _bend(mine: F64, theirs: F64, inside: bool) -> F64:
    if len(mine) == 1:
        return minimal_rotation(mine[0], theirs[0])
    if len(mine) > 2 and inside:
        turn = kabsch(mine.T @ theirs)
        if ((mine @ turn.T) * theirs).sum(axis=1).min() > FAN:
            return turn
    return np.eye(3)


def _turn_about(up: F64, mine: F64, theirs: F64) -> F64:
    if len(mine) != 1:
        return np.eye(3)
    flat = [each[0] - (each[0] @ up) * up for each in (mine, theirs)]
    return minimal_rotation(*flat) if min(np.linalg.norm(each) for each in flat) > 0.3 else np.eye(3)
