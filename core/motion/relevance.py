"""How much each part of a key matters to a motion kernel, learned by leaving out one clip at a time.

With ``G = (K + nu I)^-1`` and ``A = G Y``, the residual of a clip c left out is ``r_c = G_cc^-1 A_c``
(Rasmussen & Williams 2006, 5.4.2, for blocks): every clip is held out at the price of one inverse. The sum of
squares and its gradient are closed, so some tens of steps of Adam (Kingma & Ba 2015) take seconds in numpy.

There are some hundred relevances and often but a dozen clips, whose left-out error soon says more about those
clips than about others. So first the few numbers that all share are fitted (shape, scale and noise, one
factor for all distances and one for the linear kernel); single relevances then leave their common values by
as many steps as there are clips to tell: early stopping (Prechelt, "Early Stopping - But When?", 1998).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..progress import Progress, no_progress
from .kernel import squared_distances
from .keys import F32, F64

COMMON_STEPS = 20  # of what all relevances share
STEPS = 30  # most of single relevances
STEPS_PER_CLIP = 2 / 3  # of single relevances: best between 1/3 and 1 for 8, 12, 20 and 42 clips of a T-shirt
LEARNING_RATE = 0.12
FLOOR = 2e-3  # least noise nu
RANGES = {"channels": (-3.5, 2.0), "kinds": (-6.0, 1.5), "linear": (-7.0, 1.0)}
NUMBER_RANGES = np.array([(-2.0, 4.0), (-3.0, 3.0), (-7.0, 1.0)])  # logs of a, s, nu


@dataclass(frozen=True)
class Relevance:
    """Logarithms of what is learned: w_g = exp(channels + kinds), v_g = exp(channels + linear).

    channels : (C,); kinds, linear : (T,); numbers : (3,) of a, s and nu
    """

    channels: F64
    kinds: F64
    linear: F64
    numbers: F64

    @staticmethod
    def start(channel_count: int, kind_count: int) -> Relevance:
        """Where the fit starts."""
        return Relevance(
            np.zeros(channel_count),
            np.full(kind_count, -1.2),
            np.full(kind_count, -2.2),
            np.array([0.5, 0.0, -2.5]),
        )

    def flat(self) -> F64:
        """All as one vector."""
        return np.concatenate([self.channels, self.kinds, self.linear, self.numbers])

    def shaped(self, flat: F64) -> Relevance:
        """The vector as a relevance of this one's sizes, kept within its ranges."""
        c, t = len(self.channels), len(self.kinds)
        low, high = NUMBER_RANGES.T
        return Relevance(
            np.clip(flat[:c], *RANGES["channels"]),
            np.clip(flat[c : c + t], *RANGES["kinds"]),
            np.clip(flat[c + t : c + 2 * t], *RANGES["linear"]),
            np.clip(flat[c + 2 * t :], low, high),
        )

    def tied(self, gradient: F64) -> F64:
        """The gradient where channels stay, and all kinds move alike, as do all linear ones."""
        c, t = len(self.channels), len(self.kinds)
        alike = np.zeros_like(gradient)
        alike[c : c + t] = gradient[c : c + t].sum()
        alike[c + t : c + 2 * t] = gradient[c + t : c + 2 * t].sum()
        alike[c + 2 * t :] = gradient[c + 2 * t :]
        return alike


@dataclass(frozen=True)
class HeldOutError:
    """The leave-one-clip-out error of a relevance, and its gradient.

    keys : (N, D) float32 scaled; targets : (N, P) float64, centred values
    blocks : row indices of each clip; groups (D,), channels (G,), kinds (G,) as of `key_groups`
    """

    keys: F32
    targets: F64
    blocks: list[NDArray[np.intp]]
    groups: NDArray[np.intp]
    channels: NDArray[np.intp]
    kinds: NDArray[np.intp]

    def __call__(self, relevance: Relevance) -> tuple[float, F64]:
        """Squared error in parts of the variance, and its gradient in the order of `Relevance.flat`."""
        shape, scale, noise = np.exp(relevance.numbers)
        nonlinear = np.exp(relevance.channels[self.channels] + relevance.kinds[self.kinds])
        linear = np.exp(relevance.channels[self.channels] + relevance.linear[self.kinds])
        weighted = self.keys * nonlinear[self.groups].astype(np.float32)
        straight = self.keys * linear[self.groups].astype(np.float32)
        ratio = squared_distances(weighted, weighted) / np.float32(2 * shape)
        curved = np.float32(scale) * (1 + ratio) ** np.float32(-shape)
        gram = (curved + straight @ straight.T).astype(np.float64)
        gram[np.diag_indices_from(gram)] += noise + FLOOR
        error, slope = self._residuals(gram)
        slope = slope.astype(np.float32)
        by_distance = slope * curved / (-2 * (1 + ratio))
        spread = by_distance.sum(axis=1) @ weighted**2 - ((by_distance @ weighted) * weighted).sum(axis=0)
        pull = ((slope @ straight) * straight).sum(axis=0)
        per_group = [
            np.bincount(self.groups, column.astype(np.float64), len(self.channels))
            for column in (4 * spread, 2 * pull)
        ]
        by_shape = (slope * curved * (ratio / (1 + ratio) - np.log1p(ratio))).sum() * shape
        gradient = np.concatenate(
            [
                np.bincount(self.channels, per_group[0] + per_group[1], len(relevance.channels)),
                np.bincount(self.kinds, per_group[0], len(relevance.kinds)),
                np.bincount(self.kinds, per_group[1], len(relevance.linear)),
                [by_shape, (slope * curved).sum(), np.trace(slope) * noise],
            ]
        )
        return error, gradient

    def _residuals(self, gram: F64) -> tuple[float, F64]:
        """Error of the Gram matrix (N, N) and its derivative by the matrix, symmetric."""
        inverse = np.linalg.inv(gram)
        answers = inverse @ self.targets
        pulls, outer = np.empty_like(answers), np.empty_like(gram)
        error = 0.0
        for block in self.blocks:
            own = np.linalg.inv(inverse[np.ix_(block, block)])
            left_out = own @ answers[block]
            pulls[block] = own @ left_out
            error += float((left_out**2).sum())
            outer[:, block] = inverse[:, block] @ (pulls[block] @ left_out.T)
        slope = outer @ inverse - (inverse @ pulls) @ answers.T
        norm = float((self.targets**2).sum()) or 1.0  # one frame, or nothing moves
        return error / norm, (slope + slope.T) / norm


def fit_relevance(
    measure: HeldOutError, start: Relevance, steps: int, progress: Progress = no_progress
) -> tuple[Relevance, float]:
    """What all relevances share, then the relevances themselves by so many steps; the error of the best met.

    The error is in parts of the variance of the targets.
    """
    count = COMMON_STEPS + steps

    def report(step: int) -> None:
        progress("Motion kernel", step / count)

    common, error = _descend(measure, start, COMMON_STEPS, start.tied, report)
    if not steps:
        return common, error
    return _descend(measure, common, steps, lambda gradient: gradient, lambda s: report(COMMON_STEPS + s))


def steps_for(clips: int) -> int:
    """Steps of single relevances that so many clips allow."""
    return min(STEPS, max(1, round(STEPS_PER_CLIP * clips)))


def _descend(
    measure: HeldOutError,
    start: Relevance,
    steps: int,
    tie: Callable[[F64], F64],
    report: Callable[[int], None],
) -> tuple[Relevance, float]:
    """The best relevance met in so many steps of Adam and after them, and its error."""
    current, best, least = start, start, np.inf
    momentum = energy = np.zeros_like(start.flat())
    for step in range(1, steps + 2):
        report(step - 1)
        error, gradient = measure(current)
        if error < least:
            best, least = current, error
        gradient = tie(gradient)
        momentum = 0.9 * momentum + 0.1 * gradient
        energy = 0.999 * energy + 0.001 * gradient**2
        direction = momentum / (1 - 0.9**step) / (np.sqrt(energy / (1 - 0.999**step)) + 1e-8)
        current = start.shaped(current.flat() - LEARNING_RATE * direction)
    return best, float(least)
