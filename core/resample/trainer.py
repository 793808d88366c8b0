"""Training of the splitting dictionary: 780 small problems, many at a time, from several starts each.

Every problem is first solved from all arrangements of `starts.py`. Then it is solved once more from the best
that was found for it or for its neighbours in the grid, which levels luck between them, and finally children
are named and mirrored alike from entry to entry, so that what lies between entries can be interpolated.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from os import PathLike, fspath
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..progress import Progress, no_progress
from .alignment import align
from .dictionary import PROBLEMS, Dictionary, save_dictionary
from .grid import OPACITY_COUNT, PAIRS, problems
from .splitting_loss import Rays, alpha_errors, diameter_ratios, draw_rays, splitting_loss
from .starts import ARRANGEMENTS, starting_children
from .training_state import TrainingSettings, TrainingState, load_state, save_state

F32 = NDArray[np.float32]
# Problems solved at once: their arrays of rays by children stay in the cache.
BLOCK = 39
START_SHARE = 0.2  # iterations of the first pass, relative to the settings
REFINED_RATE = 0.3  # learning rate of the second pass, relative to the settings
CHECK_RAYS = 16384  # the same for all, by which solutions are compared
MEASURE_RAYS = 65536
SAVE_SECONDS = 20


def train_dictionary(
    path: str | PathLike[str],
    settings: TrainingSettings | None = None,
    progress: Progress = no_progress,
) -> Dictionary:
    """Train a dictionary and write it, taking up a training that was interrupted.

    The loss is the mean squared difference of alpha between a parent and its five children over rays, plus
    ``conditioning`` times the largest child's diameter over the parent's (`splitting_loss.py`).

    Parameters
    ----------
    path : the file to write; what is solved so far is kept beside it, in PATH.partial.npz
    settings : None: as the shipped dictionary was trained
    progress : told after every step of a block; may raise `Cancelled`, what is solved stays

    Raises
    ------
    RigError : a setting is out of range, or a begun training has other settings
    """
    settings = settings or TrainingSettings()
    settings.check()
    partial = Path(fspath(path) + ".partial.npz")
    state = load_state(settings, len(ARRANGEMENTS), partial)
    keeper = _Keeper(lambda: save_state(state, settings, partial))
    try:
        for solved in _solve_all(state, settings, progress):
            keeper.offer()
            progress("Train dictionary", solved)
    finally:
        keeper.save()
    dictionary = measured(align(state.refined), settings)
    save_dictionary(dictionary, path)
    partial.unlink()
    return dictionary


class _Keeper:
    """Saves now and then."""

    def __init__(self, save: Callable[[], None]) -> None:
        self.save = save
        self.at = time.monotonic()

    def offer(self) -> None:
        if time.monotonic() - self.at > SAVE_SECONDS:
            self.save()
            self.at = time.monotonic()


def _solve_all(state: TrainingState, settings: TrainingSettings, progress: Progress):
    """Solve block after block in place of the state; yield the part of all that is done."""
    axes, opacities = (torch.from_numpy(array.astype(np.float32)) for array in problems())
    blocks = [slice(row, row + BLOCK) for row in range(0, PROBLEMS, BLOCK)]
    first = replace(settings, iterations=max(round(START_SHARE * settings.iterations), 1))
    second = replace(settings, learning_rate=REFINED_RATE * settings.learning_rate)
    for (number, name), (index, rows) in itertools.product(enumerate(ARRANGEMENTS), enumerate(blocks)):
        if np.isfinite(state.start_losses[number, rows]).all():
            continue
        seed = settings.seed + number * len(blocks) + index
        start = starting_children(name, opacities[rows])
        children, losses = solve(start, axes[rows], opacities[rows], first, seed, _tick(state, progress))
        state.starts[number, rows], state.start_losses[number, rows] = children, losses
        yield state.done
    best = np.take_along_axis(state.starts, np.nanargmin(state.start_losses, axis=0)[None, :, None, None], 0)[
        0
    ]
    for index, rows in enumerate(blocks):
        if np.isfinite(state.refined_losses[rows]).all():
            continue
        seed = settings.seed + len(ARRANGEMENTS) * len(blocks) + index
        start = best_nearby(best, np.arange(PROBLEMS)[rows], axes, opacities, settings)
        children, losses = solve(start, axes[rows], opacities[rows], second, seed, _tick(state, progress))
        state.refined[rows], state.refined_losses[rows] = children, losses
        yield state.done


def _tick(state: TrainingState, progress: Progress) -> Callable[[], None]:
    return lambda: progress("Train dictionary", state.done)


def solve(
    start: Tensor,
    axes: Tensor,
    opacities: Tensor,
    settings: TrainingSettings,
    seed: int,
    tick: Callable[[], None] = lambda: None,
) -> tuple[F32, F32]:
    """Minimise the loss of E problems by Adam (Kingma & Ba 2015) with fresh rays in every step.

    Parameters
    ----------
    start : (E, 5, 7), axes : (E, 3), opacities : (E,)
    seed : of the rays
    tick : called now and then

    Returns
    -------
    children (E, 5, 7), never worse than the start, and losses (E,)
    """
    generator = torch.Generator().manual_seed(seed)
    children = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([children], lr=settings.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, settings.iterations)
    relative = settings.loss == "relative"
    for step in range(settings.iterations):
        if step % 20 == 0:
            tick()
        rays = draw_rays(settings.rays, generator)
        optimiser.zero_grad()
        splitting_loss(rays, children, axes, opacities, settings.conditioning, relative).sum().backward()
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        rays = check_rays()
        losses = [
            splitting_loss(rays, each, axes, opacities, settings.conditioning, relative)
            for each in (start, children)
        ]
        better = losses[1] <= losses[0]
        kept = torch.where(better[:, None, None], children, start)
        return kept.numpy().copy(), torch.where(better, losses[1], losses[0]).numpy().copy()


def check_rays(count: int = CHECK_RAYS) -> Rays:
    """Return the rays by which solutions are compared."""
    return draw_rays(count, torch.Generator().manual_seed(7))


def best_nearby(
    children: F32, rows: NDArray[np.intp], axes: Tensor, opacities: Tensor, settings: TrainingSettings
) -> Tensor:
    """Return for each problem of ``rows`` the best children (.., 5, 7) among its own and its neighbours'."""
    candidates = neighbours()[rows].T  # (7, E)
    relative = settings.loss == "relative"
    rays, pool = check_rays(2048), torch.from_numpy(children)
    with torch.no_grad():
        losses = torch.stack(
            [
                splitting_loss(rays, pool[c], axes[rows], opacities[rows], settings.conditioning, relative)
                for c in candidates
            ]
        )
    chosen = candidates[losses.argmin(dim=0).numpy(), np.arange(len(rows))]
    return pool[chosen]


def neighbours() -> NDArray[np.intp]:
    """Return for each problem itself and its six neighbours in the grid, (780, 7); itself at the border."""
    pairs = {tuple(pair): number for number, pair in enumerate(PAIRS.tolist())}
    table = np.tile(np.arange(PROBLEMS)[:, None], (1, 7))
    for problem in range(PROBLEMS):
        pair, opacity = divmod(problem, OPACITY_COUNT)
        near, far = PAIRS[pair]
        steps = [(near - 1, far), (near + 1, far), (near, far - 1), (near, far + 1)]
        for slot, step in enumerate(steps, start=1):
            table[problem, slot] = pairs.get((int(step[0]), int(step[1])), pair) * OPACITY_COUNT + opacity
        table[problem, 5] = problem - (opacity > 0)
        table[problem, 6] = problem + (opacity < OPACITY_COUNT - 1)
    return table


def measured(children: F32, settings: TrainingSettings) -> Dictionary:
    """Return the dictionary of children (780, 5, 7), each measured by the same many rays."""
    axes, opacities = (torch.from_numpy(array.astype(np.float32)) for array in problems())
    rays, pool = check_rays(MEASURE_RAYS), torch.from_numpy(children)
    mean, largest = np.empty(PROBLEMS, np.float32), np.empty(PROBLEMS, np.float32)
    with torch.no_grad():
        for first in range(0, PROBLEMS, 13):
            rows = slice(first, first + 13)
            errors = alpha_errors(rays, pool[rows], opacities[rows]) / opacities[rows]
            mean[rows] = (errors**2).mean(dim=0).sqrt().numpy()
            largest[rows] = errors.abs().amax(dim=0).numpy()
        ratios = diameter_ratios(pool, axes).numpy()
    metadata = {
        **asdict(settings),
        "torch": torch.__version__.split("+")[0],
        "arrangements": list(ARRANGEMENTS),
    }
    return Dictionary(children, mean, largest, ratios, metadata)
