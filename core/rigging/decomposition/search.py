"""The search for the bones of a motion matrix: clusters, alternation, exchange; first coarse, then on all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...progress import Progress, no_progress
from ..kabsch import F64
from .alternation import Fit, fit_to_bones, refine
from .bones import BoneSolver
from .clustering import cluster, moves_as_one
from .exchange import Exchange
from .motion_matrix import MotionMatrix
from .sampling import stratified_subset

SEARCH_POINTS = 2000
SEARCH_FRAMES = 120
FULL_EFFORT = 1.5e6  # points x frames of a capture that gets the most rounds
SETTLED = 3e-4  # relative gain a round
CARRY_SWEEPS = 10


def find_bones(
    motion: MotionMatrix, max_bones: int, influences: int, progress: Progress = no_progress
) -> F64:
    """Return bones (B, 4, 3F), at most ``max_bones``, whose sparse blends replay the motion best.

    The search runs on few points and frames; what it finds is refined on all of them.
    """
    still = np.zeros((1, 4, motion.displacements.shape[1]))
    few = _thin(motion)
    if moves_as_one(few):
        return still
    clusters = cluster(few, max_bones, progress)
    if len(clusters.bones) == 1:
        return still
    work = Work(motion, progress)
    fit = refine(few, fit_to_bones(few, clusters.bones, influences), influences, work.rounds, work.tick)
    exchange = Exchange(few, clusters.candidates, influences, work.rounds_per_trial)
    fit = exchange.search(fit, work.trials, work.tick)
    fit = refine(few, fit, influences, work.settle_rounds, work.tick, SETTLED)
    work.enter_final()
    fit = fit_to_bones(motion, carry_over(fit, motion), influences)
    fit = refine(motion, fit, influences, work.final_rounds, work.tick)
    progress("Skin bones", 1.0)
    return fit.bones


class Work:
    """How many rounds each step of the fit gets, and how far it is.

    Small captures settle in few rounds, and a round of them is mostly overhead: effort grows with the data.
    """

    def __init__(self, motion: MotionMatrix, progress: Progress) -> None:
        effort = float(np.clip(len(motion) * motion.frame_count / FULL_EFFORT, 0, 1))
        self.rounds = round(6 + 24 * effort)
        self.trials = round(1 + 7 * effort)
        self.rounds_per_trial = round(4 + 4 * effort)
        self.settle_rounds = round(5 + 55 * effort)
        self.final_rounds = round(4 + 10 * effort)
        self._progress = progress
        self._searching = self.rounds + self.trials * self.rounds_per_trial + self.settle_rounds
        self._done = 0

    def tick(self, rounds: int = 0) -> None:
        """Report, after ``rounds`` more rounds."""
        self._done += rounds
        self._progress("Skin bones", min(self._done / (self._searching + self.final_rounds), 1.0))

    def enter_final(self) -> None:
        """The search may have ended early."""
        self._done = max(self._done, self._searching)


def _thin(motion: MotionMatrix) -> MotionMatrix:
    """Return the points and frames to search on."""
    return motion.take(search_points(motion)).take_frames(search_frames(motion))


def search_points(motion: MotionMatrix) -> NDArray[np.intp]:
    """Return the rows of the points to search on."""
    return stratified_subset(motion.points, SEARCH_POINTS)


def search_frames(motion: MotionMatrix) -> NDArray[np.intp]:
    """Return the frames to search on."""
    chosen = min(motion.frame_count, SEARCH_FRAMES)
    return np.arange(chosen) * motion.frame_count // chosen


def carry_over(fit: Fit, motion: MotionMatrix) -> F64:
    """Return the bones (B, 4, 3F) of the searched points and frames, extended to all those of ``motion``.

    Frames that were left out start from the nearest one searched.
    """
    frames = search_frames(motion)
    nearest = np.searchsorted((frames[1:] + frames[:-1]) / 2, np.arange(motion.frame_count))
    bones = fit.bones.reshape(len(fit.bones), 4, -1, 3)[:, :, nearest].reshape(len(fit.bones), 4, -1)
    solver = BoneSolver(motion.take(search_points(motion)), fit.weights)
    for _ in range(CARRY_SWEEPS):
        bones = solver.sweep(bones)
    return bones
