"""How a body is built at rest, told in numbers that other proportions and rest poses share.

A body has limbs: ways from where it first forks to an end (legs, arms, head, tail), twigs such as fingers and ears
left aside. Limbs of two bodies are paired first; two bones are then alike where the same limbs hang on them and
where they lie equally far along.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .skeleton import RestSkeleton

F64 = NDArray[np.float64]
Bools = NDArray[np.bool_]

TWIG = 0.35  # of the way from the fork to where it branches off: what reaches less far is a twig
SIDE = 0.06  # of the height: so far from the middle is clearly on one side
# Differences that mean the same. Of limbs: side of the end, its height, place where they branch off, length.
LIMB = np.array([0.5, 0.3, 0.25, 0.25, 0.25, 0.3])
ALONG, PLACE = 0.22, 0.25  # of bones: way along the limb, place in the body


@dataclass(frozen=True)
class BodyPlan:
    """B bones and L limbs, in units of the body's height, in the scene's axes, ground and middle at 0.

    heads : (B, 3)
    along : (B,) way from the fork above to the bone, of the way to the end of its limb (or to the next fork)
    limbs : (B, L) which limbs hang on the bone, or hold it
    ends : (L, 6) what tells limbs apart: side and height of the end, place of the fork, length
    """

    heads: F64
    along: F64
    limbs: Bools
    ends: F64


def body_plan(skeleton: RestSkeleton, used: Bools) -> BodyPlan:
    """Describe the bones of a skeleton; the tree of those ``used`` (B,) only counts."""
    heads, tails = (points @ skeleton.world.T for points in (skeleton.heads, skeleton.tails))
    parents = np.where(used, skeleton.parents, -1)
    leaves = used & ~np.isin(np.arange(len(parents)), parents[parents >= 0])
    points = np.concatenate([heads[used], tails[leaves]]) if used.any() else heads
    height = max(float(np.ptp(points[:, 2])), 1e-9)
    middle = np.array([*(points.min(axis=0) + points.max(axis=0))[:2] / 2, points[:, 2].min()])
    heads, tails = (heads - middle) / height, (tails - middle) / height
    tree = _measure(parents, heads, tails, leaves)
    return _limbs(tree, heads, tails, used)


@dataclass(frozen=True)
class _Tree:
    """parents : (B,); link : (B,) way from the parent; reach, end : (B,) longest way to a tail below, and that bone
    children : B lists
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
    along, ends = np.ones(count), []
    tips = np.full(count, -1)  # limb that ends at a bone
    # Bones to visit: (bone, way from the body's fork, way from the last fork, that fork)
    roots = [bone for bone in range(count) if tree.parents[bone] < 0 and used[bone]]
    stack = [(bone, -1.0, 0.0, bone) for bone in roots]
    twig = np.zeros(count, bool)
    while stack:
        bone, way, run, fork = stack.pop()
        below = tree.children[bone]
        total = run + _run_length(tree, bone, way)
        along[bone] = run / total if total > 1e-9 else 1.0
        start = max(way, 0.0)
        grown = [c for c in below if tree.link[c] + tree.reach[c] > TWIG * start or len(below) == 1]
        twig[[c for c in below if c not in grown]] = True
        if not grown:
            tips[bone] = len(ends)
            tip = tails[tree.end[bone]]
            place = heads[fork] * [1, 1, 1]
            ends.append([np.tanh(tip[0] / SIDE), tip[2], *place, run + tree.reach[bone]])
        forks = len(grown) > 1
        for child in grown:
            ahead = -1.0 if way < 0 and not forks else start + tree.link[child]
            run_below = tree.link[child] if forks else run + tree.link[child]
            stack.append((child, ahead, run_below, bone if forks else fork))
    limbs = np.zeros((count, len(ends)), bool)
    for bone in range(count - 1, -1, -1):
        if tips[bone] >= 0:
            limbs[bone, tips[bone]] = True
        if tree.parents[bone] >= 0:
            limbs[tree.parents[bone]] |= limbs[bone]
    _add_twigs(tree, twig, limbs, along, tips)
    return BodyPlan(heads, along, limbs, np.array(ends, np.float64).reshape(-1, 6))


def _run_length(tree: _Tree, bone: int, way: float) -> float:
    """Way from a bone to the next fork below, or to the end of its limb."""
    length = 0.0
    start = max(way, 0.0)
    while True:
        below = tree.children[bone]
        grown = [c for c in below if tree.link[c] + tree.reach[c] > TWIG * start or len(below) == 1]
        if not grown:
            return length + float(tree.reach[bone])
        if len(grown) > 1:
            return length
        bone = grown[0]
        length += float(tree.link[bone])
        start += float(tree.link[bone]) if way >= 0 else 0.0


def _add_twigs(tree: _Tree, twig: Bools, limbs: Bools, along: F64, tips: NDArray[np.intp]) -> None:
    """Twigs lie on the limbs of the bone they branch from, and on along it where that ends there."""
    for bone, parent in enumerate(tree.parents.tolist()):
        if parent >= 0 and (twig[bone] or twig[parent]):
            twig[bone] = True
            limbs[bone] = limbs[parent]
            whole = max(along[parent] + tree.link[bone] + tree.reach[bone], 1e-9)
            along[bone] = along[parent] + (1 - along[parent]) * tree.link[bone] / whole


def similarity(target: BodyPlan, source: BodyPlan) -> F64:
    """Return how alike bones lie in two bodies that face the same way (T, S), 0..1."""
    paired = _pair_limbs(target, source)
    common = np.einsum("tl,sk,lk->ts", target.limbs * 1.0, source.limbs * 1.0, paired)
    either = target.limbs.sum(axis=1)[:, None] + source.limbs.sum(axis=1)[None] - common
    shared = common / np.maximum(either, 1)
    apart = ((target.along[:, None] - source.along[None]) / ALONG) ** 2
    apart = apart + ((target.heads[:, None] - source.heads[None]) ** 2).sum(axis=-1) / PLACE**2
    return shared * np.exp(-apart / 2)


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
