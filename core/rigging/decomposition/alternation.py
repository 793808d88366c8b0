"""The state of a decomposition while it is fitted, and the alternation that refines it (Le & Deng 2012)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..kabsch import F64
from .bones import BoneSolver, nearest_rigid
from .motion_matrix import MotionMatrix
from .weights import WeightSolver

Tick = Callable[..., None]  # tick(rounds=0): still alive, and that many rounds further


@dataclass(frozen=True)
class Fit:
    """Bones and weights with the errors they leave.

    bones : (B, 4, 3F) float64, see :class:`MotionMatrix`
    weights : (N, B) float64
    errors : (N,) float64, squared error of each point over all frames
    """

    bones: F64
    weights: F64
    errors: F64

    @property
    def total(self) -> float:
        """Squared error over all points and frames."""
        return float(self.errors.sum())


def fit_to_bones(
    motion: MotionMatrix, bones: F64, influences: int, weights: F64 | None = None, tick: Tick = lambda: None
) -> Fit:
    """Return the fit of given bones, its weights no worse than ``weights`` (N, B)."""
    return Fit(bones, *WeightSolver(bones).solve(motion, influences, weights, tick=tick))


@dataclass
class Alternation:
    """Solve bones and weights in turn, running ahead of the bones' last step where that pays.

    Block descent creeps along narrow valleys. Each round therefore first tries bones extrapolated beyond
    their new place by ``momentum`` times their step, made rigid again, and falls back on the plain ones where
    the error would rise: it never does (over-relaxation with a guard).
    """

    motion: MotionMatrix
    influences: int
    momentum: float = 0.0
    last: F64 | None = None

    def round(self, fit: Fit, tick: Tick = lambda: None) -> Fit:
        """Return the fit after one round, its error no larger."""
        tick()
        bones = BoneSolver(self.motion, fit.weights).sweep(fit.bones, tick)
        if self.momentum > 0 and self.last is not None and self.last.shape == bones.shape:
            ahead = nearest_rigid(bones + self.momentum * (bones - self.last))
            trial = fit_to_bones(self.motion, ahead, self.influences, fit.weights, tick)
            self.last = bones
            if trial.total <= fit.total:
                self.momentum = min(1.3 * self.momentum + 0.1, 4.0)
                return trial
        self.last = bones
        self.momentum = max(self.momentum / 2, 0.5)
        return fit_to_bones(self.motion, bones, self.influences, fit.weights, tick)


def refine(
    motion: MotionMatrix, fit: Fit, influences: int, rounds: int, tick: Tick, tolerance: float = 1e-3
) -> Fit:
    """Return the fit after up to ``rounds`` rounds; three in a row of less than ``tolerance`` end it."""
    alternation = Alternation(motion, influences)
    slow = 0
    for _ in range(rounds):
        before = fit.total
        fit = alternation.round(fit, tick)
        tick(1)
        slow = slow + 1 if fit.total >= before * (1 - tolerance) else 0
        if slow == 3 or fit.total <= motion.floor:
            break
    return fit


def prediction(motion: MotionMatrix, fit: Fit) -> F64:
    """Return (N, 3F), the displacements that the fit replays."""
    spread = (fit.weights[:, :, None] * motion.homogeneous[:, None, :]).reshape(len(motion), -1)
    return spread @ fit.bones.reshape(spread.shape[1], -1)


def without_bones(motion: MotionMatrix, fit: Fit, drop: np.ndarray) -> tuple[F64, F64]:
    """Return bones (B', 4, 3F) and weights (N, B') without bones ``drop``, the other weights scaled up."""
    keep = np.setdiff1d(np.arange(len(fit.bones)), drop)
    weights = fit.weights[:, keep]
    left = weights.sum(1)
    lost = np.flatnonzero(left < 1e-6)
    weights = weights / np.maximum(left, 1e-6)[:, None]
    if len(lost):
        alone = motion.take(lost).single_errors(fit.bones[keep]).argmin(1)
        weights[lost] = np.eye(len(keep))[alone]
    return fit.bones[keep], weights
