"""The motion of one skeleton on another, through a map of bones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import RigError
from ..rigging.kabsch import kabsch
from .alignment import BonePairs, align_axes, minimal_rotation, size_ratio
from .rest_pose import rest_corrections
from .skeleton import RestSkeleton

F64 = NDArray[np.float64]

STANDS = 0.15  # of the height: the lowest mapped bone must lie this near the lowest bone to stand on it
HOVERS = 0.35  # of the height: a motion that never comes this near its rest pose's ground has another ground


@dataclass(frozen=True)
class RetargetOptions:
    """How motion is carried over.

    align_rest : limbs point as the source's do, whatever the rest poses (T-pose, A-pose); else each bone
        turns from its own rest pose as the source's bone turns from its own
    scale_root : steps as long as the legs allow; else as long as the source's in ``unit``
    in_place : stay where the rest pose stands; only up and down is kept
    unit : length of the source's unit in the target's; counts where ``scale_root`` is off
    """

    align_rest: bool = True
    scale_root: bool = True
    in_place: bool = False
    unit: float = 1.0


@dataclass(frozen=True)
class RetargetedMotion:
    """motions : (F, T, 3, 4) float64, rigid, every target bone from rest to posed, in the target's axes
    scale : ratio by which steps were scaled
    turn : (3, 3) rotation from the source's axes to the target's
    """

    motions: F64
    scale: float
    turn: F64


def retarget_motion(
    target: RestSkeleton,
    source: RestSkeleton,
    source_motions: NDArray[np.floating],
    bone_map: NDArray[np.integer],
    options: RetargetOptions = RetargetOptions(),
) -> RetargetedMotion:
    """Carry the motion of mapped source bones over to a target skeleton.

    Every mapped bone gets the rotation its source bone made from the source's rest pose, seen from outside
    and in the target's axes, so that unmapped source bones in between are composed in and frames, rolls and
    scales of either rig do not matter. Unmapped target bones follow their parent. The root is put so that the
    hips (the first mapped bone that limbs branch from) go where the source's go, in steps scaled by the legs;
    then the body is lifted so that its lowest mapped joint is as high over the ground as the source's lowest:
    a foot that stands, does. The source's ground is what its rest pose stands on, or, where the motion never
    comes near that (BVH files whose hips rest at the origin), the lowest place of the motion.

    Parameters
    ----------
    source_motions : (F, S, 3, 4) source bones from rest to posed, in the source's axes; scale in them is
        dropped; bones that are not mapped are not looked at
    bone_map : (T,) source bone of each target bone, -1 for none

    Raises
    ------
    RigError : no bone is mapped
    """
    pairs = BonePairs.make(target, bone_map)
    if not len(pairs):
        raise RigError("No bone is mapped; choose source bones in the bone map, or let it be suggested.")
    turn = align_axes(target, source, pairs)
    scale = size_ratio(target, source, pairs, turn) if options.scale_root else options.unit
    motions = np.asarray(source_motions, np.float64)[:, pairs.sources]
    places = np.einsum("fpab,pb->fpa", motions[..., :3], source.heads[pairs.sources]) + motions[..., 3]
    turns = kabsch(np.swapaxes(motions[..., :3], -1, -2))
    turns = _aim_at_next(source, pairs, turns, places)
    turns = turn @ turns @ turn.T
    if options.align_rest:
        turns = turns @ rest_corrections(target, source, pairs, turn)
    globals_ = _spread_down(target, pairs, turns)
    rest_places = _on_ground_of(source, pairs, places)
    offsets = scale * (places - rest_places) @ turn.T
    posed = _place(target, pairs, globals_, offsets[:, pairs.top])
    posed = posed + _lift(target, pairs, posed, rest_places @ turn.T * scale, places @ turn.T * scale)
    if options.in_place:
        posed = posed + _stay(target, pairs, posed)
    return RetargetedMotion(_transforms(target, globals_, posed), scale, turn)


def _on_ground_of(source: RestSkeleton, pairs: BonePairs, places: F64) -> F64:
    """Heads (P, 3) of the source at rest, standing on the ground that its motion, places (F, P, 3), has."""
    heads = source.heads[pairs.sources]
    heights = heads[pairs.body] @ source.up
    away = float((places[:, pairs.body] @ source.up).min() - heights.min())
    if abs(away) <= HOVERS * np.ptp(source.heads @ source.up):
        return heads
    return heads + away * source.up


def _aim_at_next(source: RestSkeleton, pairs: BonePairs, turns: F64, places: F64) -> F64:
    """Where unmapped bones bend between a bone and the only one below, turn it on to point at that one.

    turns (F, P, 3, 3) are those of the source bones from rest, places (F, P, 3) their heads.
    """
    turns = turns.copy()
    heads = source.heads[pairs.sources]
    for pair in range(len(pairs)):
        below = pairs.children(pair)
        if len(below) != 1 or int(source.parents[pairs.sources[below[0]]]) == int(pairs.sources[pair]):
            continue
        rigid = turns[:, pair] @ (heads[below[0]] - heads[pair])
        actual = places[:, below[0]] - places[:, pair]
        reach = np.minimum(np.linalg.norm(rigid, axis=-1), np.linalg.norm(actual, axis=-1))
        good = reach > 1e-6 * np.ptp(source.heads, axis=0).max()
        aimed = minimal_rotation(rigid[good], actual[good])
        turns[good, pair] = aimed @ turns[good, pair]
    return turns


def _spread_down(target: RestSkeleton, pairs: BonePairs, turns: F64) -> F64:
    """Global rotations (F, T, 3, 3) of all target bones: unmapped ones turn with their parent."""
    mapped = {bone: pair for pair, bone in enumerate(pairs.targets.tolist())}
    out = np.empty((len(turns), len(target), 3, 3))
    for bone, parent in enumerate(target.parents.tolist()):
        if bone in mapped:
            out[:, bone] = turns[:, mapped[bone]]
        else:
            out[:, bone] = out[:, parent] if parent >= 0 else np.eye(3)
    return out


def _place(target: RestSkeleton, pairs: BonePairs, turns: F64, offsets: F64) -> F64:
    """Posed heads (F, T, 3): the hips are moved by offsets (F, 3) from their place at rest."""
    posed = np.empty((*turns.shape[:2], 3))
    for bone, parent in enumerate(target.parents.tolist()):
        if parent < 0:
            posed[:, bone] = target.heads[bone]
        else:
            arm = turns[:, parent] @ (target.heads[bone] - target.heads[parent])
            posed[:, bone] = posed[:, parent] + arm
    top = pairs.targets[pairs.top]
    return posed + (target.heads[top] + offsets - posed[:, top])[:, None]


def _lift(target: RestSkeleton, pairs: BonePairs, posed: F64, rest: F64, places: F64) -> F64:
    """Offsets (F, 1, 3) along up that keep the lowest mapped joint as high as the source's lowest.

    rest (P, 3) and places (F, P, 3) are the source's joints in the target's axes and size. Nothing is
    lifted where the map leaves out what either skeleton stands on.
    """
    up = target.up
    body, heights = pairs.body, target.heads @ up
    own = pairs.targets[body]
    if heights[own].min() > heights.min() + STANDS * np.ptp(heights):
        return np.zeros((len(posed), 1, 3))
    wanted = (places[:, body] @ up).min(axis=1) - (rest[body] @ up).min()
    found = (posed[:, own] @ up).min(axis=1) - heights[own].min()
    return (wanted - found)[:, None, None] * up


def _stay(target: RestSkeleton, pairs: BonePairs, posed: F64) -> F64:
    """Offsets (F, 1, 3) across up that put the hips back over their place at rest."""
    top = pairs.targets[pairs.top]
    away = posed[:, top] - target.heads[top]
    return -(away - (away @ target.up)[:, None] * target.up)[:, None]


def _transforms(target: RestSkeleton, turns: F64, posed: F64) -> F64:
    offsets = posed - np.einsum("ftab,tb->fta", turns, target.heads)
    return np.concatenate([turns, offsets[..., None]], axis=-1)
