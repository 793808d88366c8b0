"""Which source bone moves which target bone: suggested from names, and from how both bodies are built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from .bone_names import name_similarity, read_names
from .geometry import body_plan, similarity
from .mending import mend_limbs
from .skeleton import RestSkeleton

F64 = NDArray[np.float64]

NAMES = 0.75  # share of names in the likeness of two bones whose names tell something
LEAST = 0.35  # likeness below which no source bone is suggested
AHEAD = 0.25  # lead over the next best source bone that makes a suggestion sure
WHOLE = 0.9  # part of a body that finds its like where bodies are built alike
ROUNDS = 40  # of giving pairs up and pairing anew
SURE = 0.7  # likeness of names that says more than the trees do
FACING = 0.15  # by which the likeness of bodies counts more where their feet point the same way
UPRIGHT, STANDS_SO = 0.3, 0.03  # by which the likeness of bodies counts more as they stand in the scene


@dataclass(frozen=True)
class BoneSuggestion:
    """source : index of the source bone, -1 for none; confidence : 0..1, 0 for none"""

    source: int
    confidence: float


def suggest_bone_map(target: RestSkeleton, source: RestSkeleton) -> list[BoneSuggestion]:
    """Suggest a source bone for every target bone.

    Bones are alike in name (`bone_names`) and in where they lie in the upright bodies, scaled to one height
    (`geometry`); which way the source lies is tried in quarter turns. Of all maps that keep who is above whom
    in both trees the one that is most alike in sum is sought: an optimal assignment (Kuhn 1955) in which
    pairs that most contradict others are given up one by one.

    Returns
    -------
    T suggestions. Confidence is the likeness, lowered where another source bone is nearly as alike and, for
    bones without telling names, where much of both bodies found no match.
    """
    mine, theirs = read_names(target), read_names(source)
    (target, order), (source, source_order) = mend_limbs(target, mine), mend_limbs(source, theirs)
    mine, theirs = [mine[b] for b in order], [theirs[b] for b in source_order]
    used = [np.array([not name.helper for name in names], bool) for names in (mine, theirs)]
    named = name_similarity(mine, theirs)
    above = target.ancestry(), source.ancestry()
    plan = body_plan(target, used[0])
    best, chosen, kept = -np.inf, np.full(len(target), -1), np.zeros(named.shape)
    for turn, preference in _turns():
        turned = replace(source, world=turn @ source.world)
        lies, facing = similarity(plan, body_plan(turned, used[1]))
        likeness = np.where(np.isnan(named), lies, NAMES * named + (1 - NAMES) * lies)
        likeness[~used[0]] = 0
        likeness[:, ~used[1]] = 0
        found = _assign(likeness, np.nan_to_num(named) > SURE, *above)
        total = likeness[found >= 0, found[found >= 0]].sum() * preference * (1 + FACING * facing)
        if total > best:
            best, chosen, kept = total, found, likeness
    mapped = (chosen >= 0).sum()
    whole = min(float(max(mapped / max(use.sum(), 1) for use in used)) / WHOLE, 1.0)
    out = [BoneSuggestion(-1, 0.0)] * len(target)
    for t, s in enumerate(chosen):
        trust = 1.0 if not np.isnan(named[t, s]) else whole
        out[order[t]] = _suggestion(kept[t], int(s), source_order, trust)
    return out


def _turns() -> Iterator[tuple[F64, float]]:
    """All 24 turns of a cube on itself, and how much each is preferred: as the source stands, or upright."""
    for axes in permutations(range(3)):
        for signs in product((1, -1), repeat=3):
            turn = np.zeros((3, 3))
            turn[range(3), axes] = signs
            if np.linalg.det(turn) > 0:
                still = np.array_equal(turn, np.eye(3))
                yield turn, (1 + STANDS_SO) * (1 + UPRIGHT) if still else 1 + UPRIGHT * (turn[2, 2] > 0)


def _assign(
    likeness: F64, sure: NDArray[np.bool_], above: NDArray[np.bool_], source_above: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """Return the source bone (T,) of each target bone, -1 for none, such that both trees agree.

    Pairs that are ``sure`` (T, S) do not contradict each other: rigs hang feet on the root as they like.
    """
    from scipy.optimize import linear_sum_assignment

    gain = np.maximum(likeness - LEAST, 0)
    useful = np.flatnonzero(gain.max(axis=0) > 0)  # of rigs with hundreds of bones few
    gain, chosen = gain[:, useful], np.full(len(likeness), -1)
    for _ in range(ROUNDS):
        rows, columns = linear_sum_assignment(gain, maximize=True)
        worth = gain[rows, columns]
        rows, columns, worth = rows[worth > 0], columns[worth > 0], worth[worth > 0]
        sources = useful[columns]
        wrong = above[np.ix_(rows, rows)] != source_above[np.ix_(sources, sources)]
        firm = sure[rows, sources]
        kept = _agreeing((wrong | wrong.T) & ~(firm[:, None] & firm), worth)
        chosen[:] = -1
        chosen[rows[kept]] = sources[kept]
        if kept.all():
            break
        gain[rows[~kept], columns[~kept]] = 0
    return chosen


def _agreeing(wrong: NDArray[np.bool_], worth: F64) -> NDArray[np.bool_]:
    """Return which pairs (P,) are left once those that most contradict others (``wrong``) are given up."""
    kept = np.ones(len(worth), bool)
    wrong = wrong.copy()
    while wrong.any():
        against = wrong @ worth - worth  # what giving the pair up would save, less what it is worth itself
        worst = int(np.argmax(np.where(wrong.any(axis=0), against, -np.inf)))
        kept[worst] = False
        wrong[worst] = wrong[:, worst] = False
    return kept


def _suggestion(likeness: F64, source: int, source_order: NDArray[np.intp], trust: float) -> BoneSuggestion:
    """The suggestion for a target bone of likeness (S,) to the source's bones."""
    if source < 0:
        return BoneSuggestion(-1, 0.0)
    lead = likeness[source] - np.delete(likeness, source).max(initial=0)
    sure = likeness[source] * np.clip(0.5 + 0.5 * lead / AHEAD, 0.25, 1)
    return BoneSuggestion(int(source_order[source]), float(trust * sure))
