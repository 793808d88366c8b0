"""Fit the kernel model: relevances by the closed-form error of leaving out one clip at a time.

With ``G = (K + nu I)^-1`` and ``A = G Y``, the residual of a clip c left out is ``r_c = G_cc^-1 A_c``
(Rasmussen & Williams 2006, 5.4.2, for blocks): every clip is held out at the price of one inverse. The sum of
squares and its gradient are closed, so some thirty steps of Adam (Kingma & Ba 2015) take seconds in numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..progress import Progress, no_progress
from .database import MotionDatabase
from .kernel import KernelModel, KeyScaling, rational_quadratic, squared_distances
from .keys import F32, F64, KeyLayout, key_groups, motion_keys, moving_layout
from .values import ValueSpace

STEPS = 30
LEARNING_RATE = 0.12
COMPONENTS = 60  # of the values, for the fit of the relevances
FIT_FRAMES = 900  # frames that the relevances are fitted on
MAX_CENTRES = 4000  # frames that the blend runs over
HEADROOM = 1.25  # how much longer than any captured one a group of a key may be
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
        norm = float((self.targets**2).sum())
        return error / norm, (slope + slope.T) / norm


def fit_relevance(
    measure: HeldOutError, start: Relevance, steps: int = STEPS, progress: Progress = no_progress
) -> tuple[Relevance, float]:
    """The best relevance met in so many steps of Adam, and its error."""
    current, best, least = start, start, np.inf
    momentum = energy = np.zeros_like(start.flat())
    steps = max(steps, 1)  # the start's own error is met in the first
    for step in range(1, steps + 1):
        progress("Motion kernel", (step - 1) / steps)
        error, gradient = measure(current)
        if error < least:
            best, least = current, error
        momentum = 0.9 * momentum + 0.1 * gradient
        energy = 0.999 * energy + 0.001 * gradient**2
        direction = momentum / (1 - 0.9**step) / (np.sqrt(energy / (1 - 0.999**step)) + 1e-8)
        current = start.shaped(current.flat() - LEARNING_RATE * direction)
    return best, float(least)


def fit_kernel(database: MotionDatabase, steps: int = STEPS, progress: Progress = no_progress) -> KernelModel:
    """Fit the kernel model to all captured frames of a database. Nothing is random: same input, same model.

    Parameters
    ----------
    steps : of the fit of the relevances; 0 keeps the ones it starts from
    progress : called with the stage "Motion kernel"
    """
    main_joint = int(np.bincount(database.bone_joints, database.masses, database.joint_count).argmax())
    layout = moving_layout(
        database.parents, database.joint_positions, main_joint, database.up, database.rotations, database.fps
    )
    values = ValueSpace.of(database)
    times = np.arange(database.frame_count) / database.fps
    rows = np.flatnonzero(database.captured)
    keys = motion_keys(layout, database.rotations, database.root_translations, times, database.clips, rows)
    return fit_model(
        layout, values, keys, values.embed(database.residuals[rows]), database.clips[rows], steps, progress
    )


def fit_model(
    layout: KeyLayout,
    values: ValueSpace,
    keys: F32,
    targets: F32,
    clips: NDArray[np.integer],
    steps: int = STEPS,
    progress: Progress = no_progress,
) -> KernelModel:
    """Fit the kernel model to raw keys (F, D), values (F, 12 B) and the clips (F,) they belong to."""
    groups, channels, kinds = key_groups(layout)
    scaling = _scaling(keys, groups)
    scaled = scaling(keys)
    mean = targets.mean(axis=0)
    some = _spread_over(np.arange(len(keys)), FIT_FRAMES)
    measure = HeldOutError(
        scaled[some], _components(targets - mean, some), _held_out(clips[some]), groups, channels, kinds
    )
    start = Relevance.start(int(channels.max()) + 1, int(kinds.max()) + 1)
    relevance, error = fit_relevance(measure, start, steps, progress)
    shape, scale, noise = (float(x) for x in np.exp(relevance.numbers))
    nonlinear = np.exp(relevance.channels[channels] + relevance.kinds[kinds])[groups].astype(np.float32)
    straight = np.exp(relevance.channels[channels] + relevance.linear[kinds])[groups].astype(np.float32)
    rows = _spread_over(np.arange(len(keys)), MAX_CENTRES)
    centres, lines = scaled[rows] * nonlinear, scaled[rows] * straight
    gram = (
        np.float32(scale) * rational_quadratic(squared_distances(centres, centres), shape) + lines @ lines.T
    )
    gram = gram.astype(np.float64)
    gram[np.diag_indices_from(gram)] += noise + FLOOR
    blend = np.linalg.solve(gram, (targets[rows] - mean).astype(np.float64)).astype(np.float32)
    linear = (straight[:, None] * (lines.T @ blend)).astype(np.float32)
    return KernelModel(layout, scaling, values, nonlinear, centres, blend, linear, mean, shape, scale, error)


def _scaling(keys: F32, groups: NDArray[np.intp]) -> KeyScaling:
    means = keys.mean(axis=0)
    norms = np.sqrt(np.bincount(groups, keys.var(axis=0))) + 1e-3
    scales = (1 / norms)[groups].astype(np.float32)
    endless = np.full(len(norms), np.inf, np.float32)
    scaled = KeyScaling(means, scales, groups.astype(np.int32), endless)(keys)
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    longest = np.sqrt(np.add.reduceat(scaled * scaled, starts, axis=1)).max(axis=0)
    return KeyScaling(means, scales, groups.astype(np.int32), (HEADROOM * longest).astype(np.float32))


def _components(values: F32, rows: NDArray[np.intp]) -> F64:
    """Principal components (R, P) of the values (F, V) at some rows: what the relevances are fitted to."""
    chosen = values[rows].astype(np.float64)
    _, axes = np.linalg.eigh(chosen.T @ chosen)
    return chosen @ axes[:, -COMPONENTS:]


def _spread_over(rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Every k-th row, so that at most so many remain."""
    return rows[:: -(-len(rows) // most)]


def _held_out(clips: NDArray[np.integer], least: int = 4) -> list[NDArray[np.intp]]:
    """Rows to hold out together: the clips, or stretches of them where there are but few."""
    names = np.unique(clips, return_inverse=True)[1]
    if names.max() + 1 < least:
        names = np.arange(len(clips)) * min(2 * least, len(clips)) // len(clips)
    return [np.flatnonzero(names == name) for name in np.unique(names)]
