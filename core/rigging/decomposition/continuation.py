"""A decomposition taken up again: known bones posed in more frames, and more bones where those ask for them.

The alternation is that of a first decomposition (Le & Deng 2012), started from the bones and weights there
are instead of motion clusters. A bone that is not traded for a better one keeps its points and its number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...progress import Progress, no_progress
from ..kabsch import F64
from .alternation import Fit, fit_to_bones, refine
from .bones import BoneSolver
from .clustering import candidate_motions
from .exchange import Exchange
from .lbs import I32, replay_rmse, sparse_weights
from .motion_matrix import Alignment, MotionMatrix, rigid_bone
from .sampling import stratified_subset
from .search import SETTLED, Work, carry_over, search_frames, search_points
from .separation import separate_places
from .ssdr import CHUNK_BYTES, FIT_POINTS, SkinningDecomposition
from .weights import FINAL_CANDIDATES, WeightSolver

SWEEPS = 30
STEADY = 1e-4  # relative gain of a sweep that ends the posing
WORTH = 2e-3  # share of the error that one more bone must take away

Origins = NDArray[np.int32]


@dataclass(frozen=True)
class Continuation:
    """A decomposition that goes on from an earlier one.

    skin : bones, weights and the error they leave
    origins : (B,) int32, bone of the earlier decomposition that each is, -1 where it is new
    """

    skin: SkinningDecomposition
    origins: Origins


def pose_bones(
    rest: NDArray,
    frames: NDArray,
    indices: I32,
    weights: NDArray,
    bone_count: int,
    progress: Progress = no_progress,
) -> F64:
    """Pose known bones in frames by least squares, the weights held.

    Parameters
    ----------
    rest : (N, 3); frames : (F, N, 3); indices, weights : (N, K)

    Returns
    -------
    (F, B, 3, 4) float64, rest -> frame; a bone that moves no point follows the whole.
    """
    rows = stratified_subset(rest, FIT_POINTS)
    alignment = Alignment.fit(rest[rows], frames[:, rows])
    motion = alignment.matrix(rest[rows], frames[:, rows])
    solver = BoneSolver(motion, dense_weights(indices[rows], weights[rows], bone_count))
    bones = _single_fits(solver)
    error = solver.error(bones)
    for sweep in range(SWEEPS):
        progress("Poses of skin bones", sweep / SWEEPS)
        bones = solver.sweep(bones, lambda sweep=sweep: progress("Poses of skin bones", sweep / SWEEPS))
        before, error = error, solver.error(bones)
        if error > before * (1 - STEADY) or error <= motion.floor:
            break
    return np.ascontiguousarray(alignment.world(bones).transpose(1, 0, 2, 3))


def _single_fits(solver: BoneSolver) -> F64:
    """Bones (B, 4, 3F) as if each moved its points alone."""
    alive = solver.alive
    bones = np.zeros_like(solver.moments)
    bones[alive] = rigid_bone(solver.moments[alive], solver.second.sum(axis=2)[alive])
    return bones


def dense_weights(indices: I32, weights: NDArray, bone_count: int) -> F64:
    """Weights (N, B) of sparse ones (N, K)."""
    dense = np.zeros((len(indices), bone_count))
    np.add.at(dense, (np.arange(len(indices))[:, None], indices), weights)
    return dense


def continue_decomposition(
    rest: NDArray,
    frames: NDArray,
    skin: SkinningDecomposition,
    max_bones: int = 50,
    enough: float = 0.0,
    *,
    progress: Progress = no_progress,
) -> Continuation:
    """Fit bones and weights to more frames, starting from those there are.

    Bones are added while each lowers the error by `WORTH` of it and there are fewer than ``max_bones``; then
    the least useful are traded as in a first decomposition (`Exchange`). Neither is done once the root mean
    square error is under ``enough``.

    Parameters
    ----------
    rest, frames : (N, 3) and (F, N, 3), all frames
    skin : with transforms in all of them
    enough : in units of the points
    """
    rows = stratified_subset(rest, FIT_POINTS)
    alignment = Alignment.fit(rest[rows], frames[:, rows])
    motion = alignment.matrix(rest[rows], frames[:, rows])
    known = alignment.local(skin.transforms)
    dense = dense_weights(skin.indices[rows], skin.weights[rows], len(known))
    influences = skin.indices.shape[1]
    fit, origins = _search(motion, known, dense, max(max_bones, len(known)), enough, influences, progress)
    work = Work(motion, progress)
    work.enter_final()
    start = _carried(fit, origins, known, motion, influences)
    fit = refine(motion, start, influences, work.final_rounds, work.tick)
    progress("Skin bones", 1.0)
    transforms = np.ascontiguousarray(alignment.world(fit.bones).transpose(1, 0, 2, 3))
    indices, weights = _all_weights(rest, frames, alignment, fit.bones, skin, origins, progress)
    return _finished(rest, frames, indices, weights, transforms, origins, max_bones, progress)


def _search(
    motion: MotionMatrix,
    known: F64,
    weights: F64,
    max_bones: int,
    enough: float,
    influences: int,
    progress: Progress,
) -> tuple[Fit, Origins]:
    """More and other bones, on few points and frames."""
    points, frames = search_points(motion), search_frames(motion)
    few = motion.take(points).take_frames(frames)
    bones = known.reshape(len(known), 4, -1, 3)[:, :, frames].reshape(len(known), 4, -1)
    work = Work(motion, progress)
    fit = fit_to_bones(few, bones, influences, weights[points], work.tick)
    fit = refine(few, fit, influences, work.rounds, work.tick)
    origins = np.arange(len(known), dtype=np.int32)
    exchange = Exchange(few, candidate_motions(few), influences, work.rounds_per_trial)
    floor = max(few.floor, len(few) * few.frame_count * enough**2)
    fit, origins = _add(exchange, fit, origins, max_bones, floor, work)
    fit, origins = _trade(exchange, fit, origins, floor, work)
    return refine(few, fit, influences, work.settle_rounds, work.tick, SETTLED), origins


def _add(
    exchange: Exchange, fit: Fit, origins: Origins, max_bones: int, floor: float, work: Work
) -> tuple[Fit, Origins]:
    count = max(1, len(origins) // 4)
    while count and len(origins) < max_bones and fit.total > floor:
        incoming = exchange.best_incoming(exchange.gains(fit), min(count, max_bones - len(origins)), set())
        bones = np.concatenate([fit.bones, exchange.candidates[incoming]])
        weights = np.pad(fit.weights, ((0, 0), (0, len(incoming))))
        start = fit_to_bones(exchange.motion, bones, exchange.influences, weights, work.tick)
        trial = refine(exchange.motion, start, exchange.influences, exchange.rounds_per_trial, work.tick)
        if incoming and trial.total < fit.total * (1 - WORTH) ** len(incoming):
            fit, origins = trial, np.append(origins, np.full(len(incoming), -1)).astype(np.int32)
        else:
            count //= 2
    return fit, origins


def _trade(exchange: Exchange, fit: Fit, origins: Origins, floor: float, work: Work) -> tuple[Fit, Origins]:
    """As `Exchange.search`, keeping account of which bone is which."""
    count, banned = max(1, len(origins) // 4), set[int]()
    for _ in range(work.trials):
        if fit.total <= floor or len(origins) < 2:
            break
        costs = exchange.costs(fit)
        found, incoming = exchange.trial(fit, min(count, len(origins) - 1), banned, work.tick)
        if not incoming:
            break
        if found.total < fit.total:
            outgoing = np.argsort(costs, kind="stable")[: len(incoming)]
            kept = np.delete(origins, outgoing)
            fit, origins = found, np.append(kept, np.full(len(incoming), -1)).astype(np.int32)
        elif count > 1:
            count //= 2
        else:
            banned.update(incoming)
    return fit, origins


def _carried(fit: Fit, origins: Origins, known: F64, motion: MotionMatrix, influences: int) -> Fit:
    """The fit of the searched points and frames extended to all; bones that stayed start from their poses."""
    searched = search_frames(motion)
    start = carry_over(fit, motion)
    stayed = np.flatnonzero(origins >= 0)
    others = np.setdiff1d(np.arange(motion.frame_count), searched)
    shape = (len(start), 4, motion.frame_count, 3)
    start.reshape(shape)[stayed[:, None], :, others] = np.swapaxes(
        known[origins[stayed]].reshape(len(stayed), *shape[1:])[:, :, others], 1, 2
    )
    solver = BoneSolver(motion.take(search_points(motion)), fit.weights)
    for _ in range(3):
        start = solver.sweep(start)
    return fit_to_bones(motion, start, influences)


def _all_weights(
    rest: NDArray,
    frames: NDArray,
    alignment: Alignment,
    bones: F64,
    skin: SkinningDecomposition,
    origins: Origins,
    progress: Progress,
) -> tuple[I32, F64]:
    """Weights of every point (N, K), no worse than those it had on the bones that stayed."""
    influences, count = skin.indices.shape[1], len(bones)
    place = np.zeros(skin.transforms.shape[1], np.int64)
    lasting = np.zeros(len(place), bool)
    place[origins[origins >= 0]] = np.flatnonzero(origins >= 0)
    lasting[origins[origins >= 0]] = True
    solver = WeightSolver(bones)
    indices, weights = np.zeros((len(rest), influences), np.int32), np.zeros((len(rest), influences))
    step = max(1, CHUNK_BYTES // (8 * (3 * len(frames) + 4 * count)))
    for first in range(0, len(rest), step):
        rows = slice(first, first + step)
        done = first / len(rest)
        motion = alignment.matrix(rest[rows], frames[:, rows])
        old = np.where(lasting[skin.indices[rows]], skin.weights[rows], 0.0)
        start = dense_weights(place[skin.indices[rows]].astype(np.int32), old, count)
        left = start.sum(axis=1)
        lost = left < 0.5
        start[~lost] /= left[~lost, None]
        start[lost] = np.eye(count)[motion.take(lost).single_errors(bones).argmin(axis=1)]
        dense = start
        for _ in range(2):
            dense, _ = solver.solve(
                motion, influences, dense, FINAL_CANDIDATES, lambda done=done: progress("Weights", done)
            )
        indices[rows], weights[rows] = sparse_weights(dense, influences)
    return indices, weights


def _finished(
    rest: NDArray,
    frames: NDArray,
    indices: I32,
    weights: F64,
    transforms: F64,
    origins: Origins,
    max_bones: int,
    progress: Progress,
) -> Continuation:
    """Bones in the order they had, new ones last; without those that move nothing; one place each."""
    used = np.unique(indices[weights > 0])
    used = used[np.argsort(np.where(origins[used] < 0, np.iinfo(np.int32).max, origins[used]), kind="stable")]
    place = np.zeros(len(origins), np.int32)
    place[used] = np.arange(len(used))
    indices = np.where(weights > 0, place[indices], 0).astype(np.int32)
    transforms, origins = np.ascontiguousarray(transforms[:, used]), origins[used]
    rmse = replay_rmse(rest, frames, indices, weights, transforms, progress=progress)
    skin = SkinningDecomposition(indices, weights, transforms, rmse)
    if len(used) > 1:
        skin = separate_places(rest, skin, max_bones)
    more = skin.transforms.shape[1] - len(origins)
    return Continuation(skin, np.append(origins, np.full(more, -1)).astype(np.int32))
