"""Sparse convex blend weights, given the bones (Le & Deng 2012, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kabsch import F64
from .motion_matrix import MotionMatrix

CANDIDATES = 6  # bones a point chooses from in one round; those in use are always among them
FINAL_CANDIDATES = 8
CHUNK = 512  # points solved at once: their Gram matrices stay in the processor's cache
_UPPER = np.triu_indices(4)


class WeightSolver:
    """Inner products between bones, shared by all points.

    A point's displacement under bone j is ``[p, 1] U_j``, so the Gram matrix of its bones is a quadratic form
    of p and needs no pass over the frames.

    bones : (B, 4, 3F) float64
    """

    def __init__(self, bones: F64) -> None:
        count = len(bones)
        self.bones = bones
        flat = bones.reshape(4 * count, -1)
        products = (flat @ flat.T).reshape(count, 4, count, 4).transpose(0, 2, 1, 3)
        products = (products + np.swapaxes(products, 2, 3)) / 2
        doubled = np.where(_UPPER[0] == _UPPER[1], 1.0, 2.0)
        self._forms = (products[..., _UPPER[0], _UPPER[1]] * doubled).reshape(count * count, 10).T

    def gram(self, homogeneous: F64) -> F64:
        """Return (N, B, B), the Gram matrices of the bones at points (N, 4)."""
        monomials = homogeneous[:, _UPPER[0]] * homogeneous[:, _UPPER[1]]
        return (monomials @ self._forms).reshape(len(homogeneous), len(self.bones), len(self.bones))

    def solve(
        self,
        motion: MotionMatrix,
        influences: int,
        start: F64 | None = None,
        candidates: int = CANDIDATES,
        tick: Callable[[], None] = lambda: None,
    ) -> tuple[F64, F64]:
        """Return weights (N, B) float64 and squared errors (N,), no worse than those of ``start`` (N, B).

        Without a start, points begin with their best single bone and choose their bones again three times.
        """
        weights, errors = np.empty((len(motion), len(self.bones))), np.empty(len(motion))
        right = motion.correlate(self.bones)
        for first in range(0, len(motion), CHUNK):
            rows = slice(first, first + CHUNK)
            tick()
            gram = self.gram(motion.homogeneous[rows])
            old = _best_single(gram, right[rows]) if start is None else start[rows]
            for _ in range(1 if start is not None else 3):
                old = improve(gram, right[rows], old, influences, candidates)
            weights[rows] = old
            errors[rows] = quadratic(gram, right[rows], old)
        return weights, np.maximum(errors + motion.energy, 0)


def quadratic(gram: F64, right: F64, weights: F64) -> F64:
    """Return (N,): ``w^T G w - 2 w^T r`` for G (N, B, B), r and w (N, B)."""
    return np.vecdot(weights, np.matvec(gram, weights) - 2 * right)


def improve(gram: F64, right: F64, weights: F64, influences: int, choice: int = CANDIDATES) -> F64:
    """Return weights (N, B) at least as good, over a point's own and most promising bones."""
    rows = np.arange(len(right))[:, None]
    candidates = _candidates(gram, right, weights, min(choice, right.shape[1]))
    small = gram[rows[..., None], candidates[:, :, None], candidates[:, None, :]]
    found = np.zeros_like(weights)
    found[rows, candidates] = solve_simplex(small, right[rows, candidates], influences)
    worse = quadratic(gram, right, found) > quadratic(gram, right, weights)
    found[worse] = weights[worse]
    return found


def _best_single(gram: F64, right: F64) -> F64:
    """Return (N, B) one-hot weights of the bone that alone explains each point best."""
    alone = np.diagonal(gram, axis1=1, axis2=2) - 2 * right
    return np.eye(right.shape[1])[alone.argmin(1)]


def _candidates(gram: F64, right: F64, weights: F64, count: int) -> NDArray[np.intp]:
    """Return (N, count): bones in use, then those towards which a line search gains most (Frank-Wolfe)."""
    blended = np.matvec(gram, weights)
    descent = right - blended
    slope = descent - np.vecdot(weights, descent)[:, None]
    curvature = np.diagonal(gram, axis1=1, axis2=2) - 2 * blended + np.vecdot(weights, blended)[:, None]
    step = np.clip(slope / np.maximum(curvature, 1e-300), 0, 1)
    gain = step * (2 * slope - step * curvature)
    gain[weights > 0] = np.inf
    return np.argsort(-gain, axis=1, kind="stable")[:, :count]


def solve_simplex(gram: F64, right: F64, influences: int) -> F64:
    """Return the exact minimiser of ``w^T G w - 2 w^T r`` with w >= 0, sum 1 and few non-zeros.

    Every support of at most ``influences`` bones is tried; a larger one must be better by more than rounding,
    so that bones of the same motion do not share a point at random.

    Parameters
    ----------
    gram : (N, C, C) float64, symmetric positive semi-definite
    right : (N, C) float64
    influences : largest number of non-zeros, 1..4

    Returns
    -------
    (N, C) float64
    """
    points, count = right.shape
    g = np.ascontiguousarray(gram.transpose(1, 2, 0))
    r = np.ascontiguousarray(right.T)
    best = np.full(points, np.inf)
    weights = np.zeros((points, count))
    margin = 1e-13 * np.abs(g[range(count), range(count)] + 2 * np.abs(r)).max(0)
    rows = np.arange(points)
    for size in range(1, min(influences, count) + 1):
        supports = np.array(list(combinations(range(count), size)))
        value, solution = _solve_supports(g, r, supports)
        choice = value.argmin(0)
        better = np.flatnonzero(value[choice, rows] < best - margin)
        best[better] = value[choice[better], better]
        weights[better] = 0
        weights[better[:, None], supports[choice[better]]] = solution[:, choice[better], better].T
    return weights / weights.sum(1, keepdims=True)


def _solve_supports(g: F64, r: F64, supports: NDArray[np.intp]) -> tuple[F64, F64]:
    """Solve each support (S, s): values (S, N), infinite where infeasible, and weights (s, S, N)."""
    base, others = supports[:, 0], supports[:, 1:].T  # (S,), (s - 1, S)
    anchor, anchor_right = g[base, base], r[base]
    toward = [g[base, b] for b in others]
    q = [r[b] - anchor_right - (t - anchor) for b, t in zip(others, toward, strict=True)]
    d = [
        [g[b, c] - toward[i] - toward[j] + anchor if j >= i else None for j, c in enumerate(others)]
        for i, b in enumerate(others)
    ]
    value = anchor - 2 * anchor_right
    # Bones of the same motion differ by rounding alone: keep them solvable, and out of larger supports.
    rounding = [1e-14 * (anchor + g[b, b]) + 1e-300 for b in others]
    steps = _eliminate(d, q, rounding)
    for step, rhs in zip(steps, q, strict=True):
        value = value - step * rhs
    first = 1 - sum(steps) if steps else np.ones_like(value)
    solution = np.stack([first, *steps])
    feasible = (solution >= 0).all(0)
    return np.where(feasible, value, np.inf), solution


def _eliminate(d: list[list[Any]], q: list[F64], rounding: list[F64]) -> list[F64]:
    """Solve the symmetric systems (d + rounding) v = q (upper part given, at most 3 x 3) elementwise."""
    size = len(q)
    d, q = [row[:] for row in d], q[:]
    for i in range(size):
        d[i][i] = np.maximum(d[i][i], 0) + rounding[i]
        for j in range(i + 1, size):
            factor = d[i][j] / d[i][i]
            for k in range(j, size):
                d[j][k] = d[j][k] - factor * d[i][k]
            q[j] = q[j] - factor * q[i]
    for i in reversed(range(size)):
        for j in range(i + 1, size):
            q[i] = q[i] - d[i][j] * q[j]
        q[i] = q[i] / d[i][i]
    return q
