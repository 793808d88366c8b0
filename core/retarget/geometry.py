"""How a body is built at rest, told in numbers that other proportions and rest poses share.

A body has limbs: ways from where it first forks to an end (legs, arms, head, tail), twigs such as fingers and
ears left aside. Limbs of two bodies are paired first; two bones are then alike where the same limbs hang on
them and where they lie equally far along.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .skeleton import RestSkeleton

F64 = NDArray[np.float64]
Bools = NDArray[np.bool_]

TWIG = 0.3  # of the way from the fork to where it branches off: what reaches less far is a twig
BUNDLE = 0.05, 0.2  # of their length: limbs that begin and end nearer to each other than that are one
LOW, TOE = 0.25, 0.03  # of the height: where ends are feet; how far ahead the toes of one lie
SIDE = 0.06  # of the height: so far from the middle is clearly on one side
# Differences that mean the same. Of limbs: side of the end, its height, place where they branch off, length.
LIMB = np.array([0.5, 0.3, 0.25, 0.25, 0.25, 0.3])
ALONG, HEIGHT, REACH = 0.3, 0.2, 0.15  # of bones: way along the limb, height in the body, way on to the end
UNLIKE = 0.85  # likeness of a finger to what is none, at most
NEAR, FAR = 0.1, 0.2  # likewise level with the ground, from the fork above: near it no pose moves a bone much


@dataclass(frozen=True)
class BodyPlan:
    """B bones and L limbs, in units of the body's height, in the scene's axes, ground and middle at 0.

    heads : (B, 3)
    aside : (B, 2) level with the ground from the fork above to the bone
    along : (B,) way from the fork above to the bone, of the way to the end of its limb (or to the next fork)
    reach : (B,) longest way from the bone to an end
    twig : (B,) whether it is part of a finger, an ear or the like
    limbs : (B, L) which limbs hang on the bone, or hold it
    ends : (L, 6) what tells limbs apart: side and height of the end, place of the fork, length
    ahead : (L, 2) which way the last bone of a limb points, level with the ground, 0..1 long
    """

    heads: F64
    aside: F64
    along: F64
    reach: F64
    twig: Bools
    limbs: Bools
    ends: F64
    ahead: F64


def body_plan(skeleton: RestSkeleton, used: Bools) -> BodyPlan:
    """Describe the bones of a skeleton; the tree of those ``used`` (B,) only counts."""
    heads, tails = (points @ skeleton.world.T for points in (skeleton.heads, skeleton.tails))
    parents = np.where(used, skeleton.parents, -1)
    leaves = used & ~np.isin(np.arange(len(parents)), parents[parents >= 0])
    points = np.concatenate([heads[used], tails[leaves]]) if used.any() else heads
    spread = np.ptp(points, axis=0)
    height = max(float(spread[2]), float(spread.max()) / 2, 1e-9)  # what lies flat has hardly any
    middle = np.array([*(points.min(axis=0) + points.max(axis=0))[:2] / 2, points[:, 2].min()])
    heads, tails = (heads - middle) / height, (tails - middle) / height
    tree = _measure(parents, heads, tails, leaves)
    return _limbs(tree, heads, tails, used)


@dataclass(frozen=True)
class _Tree:
    """parents : (B,); link : (B,) way from the parent; children : B lists
    reach, end : (B,) longest way to a tail below, and whose tail that is
    """

    parents: NDArray[np.int32]
    link: F64
    reach: F64
    end: NDArray[np.intp]
    children: list[list[int]]


def _measure(parents: NDArray[np.int32], heads: F64, tails: F64, leaves: Bools) -> _Tree:
    above = np.where(parents >= 0, parents, np.arange(len(parents)))
    link = np.linalg.norm(heads - heads[above], axis=1)
    reach = np.where(leaves, np.linalg.norm(tails - heads, axis=1), 0)
    end, children = np.arange(len(parents)), [[] for _ in parents]
    for bone in range(len(parents) - 1, -1, -1):
        parent = int(parents[bone])
        if parent >= 0:
            children[parent].insert(0, bone)
            if link[bone] + reach[bone] > reach[parent]:
                reach[parent], end[parent] = link[bone] + reach[bone], end[bone]
    return _Tree(parents, link, reach, end, children)


def _limbs(tree: _Tree, heads: F64, tails: F64, used: Bools) -> BodyPlan:
    count = len(heads)
    along, ends, ahead = np.ones(count), [], []
    tips = np.full(count, -1)  # limb that ends at a bone
    grown, fork, start = _grow(tree, heads, tails, used)
    for bone in np.flatnonzero(start >= 0).tolist():
        run = start[bone] - max(start[fork[bone]], 0.0) if fork[bone] != bone else 0.0
        on, last = 0.0, bone
        while len(grown[last]) == 1:
            last = grown[last][0]
            on += float(tree.link[last])
        if not grown[last]:
            on += float(tree.reach[last])
        along[bone] = run / (run + on) if run + on > 1e-9 else 1.0
        if not grown[bone]:
            tips[bone] = len(ends)
            tip = tails[tree.end[bone]]
            ends.append([np.tanh(tip[0] / SIDE), tip[2], *heads[fork[bone]], run + tree.reach[bone]])
            before = bone if tree.reach[bone] > TOE else tree.parents[bone]
            level = (tip - heads[before])[:2]
            ahead.append(level / max(float(np.linalg.norm(level)), TOE))
    limbs = np.zeros((count, len(ends)), bool)
    for bone in range(count - 1, -1, -1):
        if tips[bone] >= 0:
            limbs[bone, tips[bone]] = True
        if tree.parents[bone] >= 0:
            limbs[tree.parents[bone]] |= limbs[bone]
    _add_twigs(tree, start < 0, limbs, along, fork)
    aside = (heads - heads[fork])[:, :2]
    return BodyPlan(
        heads,
        aside,
        along,
        tree.reach,
        start < 0,
        limbs,
        np.reshape(ends, (-1, 6)),
        np.reshape(ahead, (-1, 2)).astype(float),
    )


def _grow(tree: _Tree, heads: F64, tails: F64, used: Bools) -> tuple[list[list[int]], NDArray[np.intp], F64]:
    """Follow the limbs: for every bone the bones they go on with, the last fork above, and the way to it from
    where the body first forks (-1 for bones of twigs)."""
    count = len(tree.parents)
    grown: list[list[int]] = [[] for _ in range(count)]
    fork, start = np.arange(count), np.full(count, -1.0)
    forked = np.zeros(count, bool)
    for bone in range(count):
        parent = int(tree.parents[bone])
        if used[bone] and parent < 0:
            start[bone] = 0
        if start[bone] < 0:
            continue
        below = tree.children[bone]
        way = start[bone] if forked[bone] else 0.0
        grown[bone] = below if len(below) == 1 else _unbundled(tree, heads, tails, below, TWIG * way)
        splits = len(grown[bone]) > 1
        for child in grown[bone]:
            forked[child] = forked[bone] or splits
            fork[child] = bone if splits else fork[bone]
            start[child] = start[bone] + tree.link[child]
        if splits and not forked[bone]:
            start[grown[bone]] = tree.link[grown[bone]]
            start[bone] = 0
    return grown, fork, start


def _unbundled(tree: _Tree, heads: F64, tails: F64, below: list[int], least: float) -> list[int]:
    """Children that are limbs of their own: far enough to their end, and not all along a longer one."""
    kept: list[int] = []
    for child in sorted(below, key=lambda c: -(tree.link[c] + tree.reach[c])):
        length = max(float(tree.link[child] + tree.reach[child]), 1e-12)
        ends = ((heads[child], tails[tree.end[child]]), (heads[kept], tails[tree.end[kept]]))
        near = [np.linalg.norm(mine - others, axis=-1) / length for mine, others in zip(*ends, strict=True)]
        if length > least and not ((near[0] < BUNDLE[0]) & (near[1] < BUNDLE[1])).any():
            kept.append(child)
    return sorted(kept)


def _add_twigs(tree: _Tree, twig: Bools, limbs: Bools, along: F64, fork: NDArray[np.intp]) -> None:
    """Twigs lie on the limbs of the bone they branch from, and on along it where that ends there."""
    for bone, parent in enumerate(tree.parents.tolist()):
        if parent >= 0 and twig[bone]:
            limbs[bone], fork[bone] = limbs[parent], fork[parent]
            whole = max(tree.link[bone] + tree.reach[bone], 1e-9)
            along[bone] = along[parent] + (1 - along[parent]) * tree.link[bone] / whole


def similarity(target: BodyPlan, source: BodyPlan) -> tuple[F64, float]:
    """Return how alike bones lie in two bodies (T, S), 0..1, and how well their feet agree, -1..1."""
    paired = _pair_limbs(target, source)
    common = np.einsum("tl,sk,lk->ts", target.limbs * 1.0, source.limbs * 1.0, paired)
    either = target.limbs.sum(axis=1)[:, None] + source.limbs.sum(axis=1)[None] - common
    shared = common / np.maximum(either, 1)
    offset = ((target.aside[:, None] - source.aside[None]) ** 2).sum(axis=-1)
    free = NEAR + (FAR - NEAR) * (target.along[:, None] + source.along[None]) / 2
    single = (target.limbs.sum(axis=1) == 1)[:, None] & (source.limbs.sum(axis=1) == 1)
    apart = (
        ((target.along[:, None] - source.along[None]) / ALONG) ** 2,
        ((target.reach[:, None] - source.reach[None]) / REACH) ** 2,
        ((target.heads[:, None, 2] - source.heads[None, :, 2]) / HEIGHT) ** 2,
        offset / np.where(single, free, NEAR) ** 2,
    )
    near = sum(np.exp(-each / 2) for each in apart) / len(apart)
    down = [np.maximum(1 - plan.ends[:, 1] / LOW, 0) for plan in (target, source)]
    feet = paired * down[0][:, None] * down[1]
    facing = (feet * (target.ahead @ source.ahead.T)).sum() / max(float(feet.sum()), 1e-9)
    near = near * np.where(target.twig[:, None] == source.twig[None], 1, UNLIKE)
    return shared * near, float(facing)


def _pair_limbs(target: BodyPlan, source: BodyPlan) -> F64:
    """Return which limbs are the same (L, K), 0 or 1: an optimal assignment of what tells them apart."""
    from scipy.optimize import linear_sum_assignment

    apart = (((target.ends[:, None] - source.ends[None]) / LIMB) ** 2).mean(axis=-1)
    alike = np.exp(-apart / 2)
    paired = np.zeros(alike.shape)
    rows, columns = linear_sum_assignment(alike, maximize=True)
    good = alike[rows, columns] > 0.1
    paired[rows[good], columns[good]] = 1
    return paired
