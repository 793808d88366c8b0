"""Exchange of bones: leave a local minimum of the alternation by moving bones to where they help more.

Le & Deng (2012, section 4.3) restart bones that have lost their points. Here any bone may move: those whose
loss costs least are traded for the candidate motions that gain most, and a trade stands only if the error is
lower after a few rounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kabsch import F64
from .alternation import Fit, Tick, fit_to_bones, prediction, refine, without_bones
from .motion_matrix import MotionMatrix


@dataclass
class Exchange:
    """Candidate motions (D, 4, 3F) for the bones of one motion matrix."""

    motion: MotionMatrix
    candidates: F64
    influences: int
    rounds_per_trial: int = 4

    def __post_init__(self) -> None:
        homogeneous = self.motion.homogeneous
        gram = self.candidates @ np.swapaxes(self.candidates, 1, 2)
        self._own = np.einsum("na,bac,nc->nb", homogeneous, gram, homogeneous, optimize=True)
        self._right = self.motion.correlate(self.candidates)

    def gains(self, fit: Fit) -> F64:
        """Return (N, D): how much each point's error falls when its replay is blended with a candidate."""
        replay = prediction(self.motion, fit)
        residual = self.motion.displacements - replay
        along = self.motion.correlate(self.candidates, residual)  # <x - y, z>
        slope = along - np.vecdot(residual, replay)[:, None]
        length = self._own - 2 * (self._right - along) + np.vecdot(replay, replay)[:, None]
        step = np.clip(slope / np.maximum(length, 1e-300), 0, 1)
        return step * (2 * slope - step * length)

    def costs(self, fit: Fit) -> F64:
        """Return (B,): how much the error rises, at most, when a bone is lost."""
        replay = prediction(self.motion, fit)
        residual = self.motion.displacements - replay
        slope = self.motion.correlate(fit.bones, residual) - np.vecdot(residual, replay)[:, None]
        single = self.motion.single_errors(fit.bones)
        errors, share = fit.errors[:, None], fit.weights
        scaled_up = errors - 2 * share * (errors - slope) + share**2 * single
        scaled_up /= np.maximum(1 - share, 1e-6) ** 2
        two = np.partition(single, 1, axis=1)[:, :2]
        other = np.where(single <= two[:, :1], two[:, 1:], two[:, :1])  # best bone but this one
        return ((np.minimum(scaled_up, other) - errors) * (share > 0)).sum(0)

    def trial(self, fit: Fit, count: int, banned: set[int], tick: Tick) -> tuple[Fit, list[int]]:
        """Return a refined fit with ``count`` bones traded, and the candidates that came in."""
        incoming = self.best_incoming(self.gains(fit), count, banned)
        outgoing = np.argsort(self.costs(fit), kind="stable")[: len(incoming)]
        bones, weights = without_bones(self.motion, fit, outgoing)
        bones = np.concatenate([bones, self.candidates[incoming]])
        weights = np.pad(weights, ((0, 0), (0, len(incoming))))
        start = fit_to_bones(self.motion, bones, self.influences, weights, tick)
        return refine(self.motion, start, self.influences, self.rounds_per_trial, tick), incoming

    def best_incoming(self, gains: F64, count: int, banned: set[int]) -> list[int]:
        """Return up to ``count`` candidates that together gain most, picked greedily."""
        best = np.zeros(len(gains))
        chosen: list[int] = []
        allowed = np.array([c for c in range(gains.shape[1]) if c not in banned], np.intp)
        for _ in range(min(count, len(allowed))):
            column = int(allowed[np.maximum(gains[:, allowed], best[:, None]).sum(0).argmax()])
            best = np.maximum(best, gains[:, column])
            chosen.append(column)
        return list(dict.fromkeys(chosen))

    def search(self, fit: Fit, trials: int, tick: Tick) -> Fit:
        """Return the best fit after up to ``trials`` trades, of fewer bones each time one fails."""
        count = max(1, len(fit.bones) // 4)
        banned: set[int] = set()
        for _ in range(trials):
            if fit.total <= self.motion.floor:
                break
            found, incoming = self.trial(fit, count, banned, tick)
            if not incoming:
                break
            if found.total < fit.total:
                fit = found
            elif count > 1:
                count //= 2
            else:
                banned.update(incoming)
        return fit
