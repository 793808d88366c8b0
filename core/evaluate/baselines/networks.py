"""Neural networks that predict residuals: a perceptron on single frames, a recurrent one on whole clips.

Both predict the values of `motion.values` (residuals in joint frames, scaled so that squared error is that of
the points), which is far stronger than predicting where bones are in the world. Training clips held out for
validation choose the width and the number of epochs; then the network is trained on everything. Seeds are
fixed and the time is bounded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import MissingDependencyError
from ...motion.database import Residuals
from ...motion.timeline import clip_lengths
from ...progress import Progress, no_progress
from ..fitted import Fitted, residual_method
from ..subject import Query, Training
from .features import PoseFeatures
from .linear import validation_groups

if TYPE_CHECKING:
    import torch

F32 = NDArray[np.float32]
SECONDS = 60.0  # of training, all widths together, then as much again at most for the final network


@dataclass(frozen=True)
class Recipe:
    """How a kind of network is trained.

    widths : hidden units to choose from; batch : frames, or clips of a recurrent network
    epochs : most; patience : epochs without a gain after which training stops
    """

    widths: tuple[int, ...]
    batch: int
    epochs: int
    patience: int
    rate: float
    dropout: float
    decay: float = 1e-3


PERCEPTRON = Recipe(widths=(128, 256), batch=128, epochs=300, patience=30, rate=1e-3, dropout=0.1)
RECURRENT = Recipe(widths=(192,), batch=8, epochs=160, patience=25, rate=2e-3, dropout=0.15)


@dataclass
class _Trained:
    """A network with what its training met."""

    network: Any
    error: float = np.inf
    epochs: int = 0
    seconds: float = 0.0
    stopped: bool = False
    state: dict[str, Any] = field(default_factory=dict)


def fit_network(
    learned: Training,
    recurrent: bool,
    motion: bool,
    progress: Progress = no_progress,
    recipe: Recipe | None = None,
    seconds: float = SECONDS,
    seed: int = 0,
) -> Fitted:
    """Fit a network to the training frames.

    Parameters
    ----------
    recurrent : a GRU (Cho et al. 2014) that runs over each clip from its start; else two hidden layers on
        single frames
    motion : also give velocities, accelerations and root motion
    recipe : None: `RECURRENT` or `PERCEPTRON`
    seconds : most time for training, once for choosing and once for the final network

    Raises
    ------
    MissingDependencyError : torch is not installed
    """
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError(
            "Networks need torch; install gaussianimate[torch], or leave mlp and gru out."
        ) from error
    features = PoseFeatures.of(learned, motion)
    targets, mean, scale = _standardised(learned)
    data = _Data.of(features(learned.poses), targets, learned, recurrent, torch)
    recipe = recipe or (RECURRENT if recurrent else PERCEPTRON)
    held_out = validation_groups(learned.clips, 6) == 0
    build = _builder(torch, recurrent, data.inputs.shape[-1], targets.shape[1], recipe)
    tried = {}
    for width in recipe.widths:
        progress(f"network of {width}", 0.0)
        share = seconds / len(recipe.widths)
        tried[width] = _train(torch, build, width, data, recipe, share, seed, ~held_out, held_out)
    width = min(tried, key=lambda w: tried[w].error)
    everything = np.ones(len(held_out), bool)
    final = _train(
        torch, build, width, data, recipe, seconds, seed, everything, None, max(tried[width].epochs, 1)
    )
    network = final.network

    def answer(query: Query) -> Residuals:
        with torch.no_grad():
            values = _answer(torch, network, features(query), query, recurrent)
        return learned.space.project(values * scale + mean)

    size = sum(p.numel() * p.element_size() for p in network.parameters())
    hit = any(one.stopped for one in (*tried.values(), final))
    note = f"{width} units, {final.epochs} epochs" + (f", stopped after {seconds:g} s" if hit else "")
    return residual_method(learned, answer, size, note=note)


def _standardised(learned: Training) -> tuple[F32, F32, float]:
    """Values centred and divided by their common spread: errors stay comparable between bones."""
    mean = learned.values.mean(axis=0)
    scale = float(np.sqrt(learned.values.var(axis=0).mean())) or 1.0
    return ((learned.values - mean) / scale).astype(np.float32), mean, scale


@dataclass(frozen=True)
class _Data:
    """Items of training: frames (R, D) -> (R, V), or padded clips (C, L, D) -> (C, L, V).

    rows : captured row that each item, or each step of a clip, belongs to; -1 where there is none
    """

    inputs: torch.Tensor
    targets: torch.Tensor
    rows: NDArray[np.intp]

    @staticmethod
    def of(inputs: F32, targets: F32, learned: Training, recurrent: bool, torch: Any) -> _Data:
        rows = np.full(len(inputs), -1)
        rows[learned.rows] = np.arange(len(learned.rows))
        if not recurrent:
            return _Data(
                torch.from_numpy(inputs[learned.rows]), torch.from_numpy(targets), rows[learned.rows]
            )
        clips = _padded(np.arange(len(inputs)), learned.database.clips)
        steps = np.where(_inside(learned.database.clips), rows[clips], -1)
        return _Data(torch.from_numpy(inputs[clips]), torch.from_numpy(targets[np.maximum(steps, 0)]), steps)

    def mask(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which items, or steps, are captured rows that are chosen (R,)."""
        return (self.rows >= 0) & chosen[np.maximum(self.rows, 0)]


def _padded(rows: NDArray[np.intp], clips: NDArray[np.integer]) -> NDArray[np.intp]:
    """Rows of clips (C, L), the last one repeated to the length of the longest."""
    lengths = clip_lengths(clips)
    starts = np.cumsum(lengths) - lengths
    return rows[starts[:, None] + np.minimum(np.arange(lengths.max()), lengths[:, None] - 1)]


def _inside(clips: NDArray[np.integer]) -> NDArray[np.bool_]:
    lengths = clip_lengths(clips)
    return np.arange(lengths.max()) < lengths[:, None]


def _builder(torch: Any, recurrent: bool, inputs: int, outputs: int, recipe: Recipe) -> Callable[[int], Any]:
    nn = torch.nn

    def perceptron(width: int) -> Any:
        layers = [nn.Linear(inputs, width), nn.SiLU(), nn.Dropout(recipe.dropout)]
        layers += [nn.Linear(width, width), nn.SiLU(), nn.Dropout(recipe.dropout)]
        return nn.Sequential(*layers, nn.Linear(width, outputs))

    class Recurrent(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.enter = nn.Sequential(nn.Linear(inputs, width), nn.SiLU(), nn.Dropout(recipe.dropout))
            self.gru = nn.GRU(width, width, batch_first=True)
            self.leave = nn.Sequential(nn.Dropout(recipe.dropout), nn.Linear(2 * width, outputs))

        def forward(self, x: Any) -> Any:
            entered = self.enter(x)
            return self.leave(torch.cat([entered, self.gru(entered)[0]], dim=-1))

    return Recurrent if recurrent else perceptron


def _train(
    torch: Any,
    build: Callable[[int], Any],
    width: int,
    data: _Data,
    recipe: Recipe,
    seconds: float,
    seed: int,
    learn: NDArray[np.bool_],
    validate: NDArray[np.bool_] | None,
    epochs: int | None = None,
) -> _Trained:
    """Train on captured rows `learn` (R,); with rows to `validate`, keep the best epoch's network."""
    start = time.perf_counter()
    torch.manual_seed(seed)
    order = torch.Generator().manual_seed(seed)
    trained = _Trained(build(width))
    network = trained.network
    optimizer = torch.optim.AdamW(network.parameters(), lr=recipe.rate, weight_decay=recipe.decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, recipe.epochs)
    mask = torch.from_numpy(data.mask(learn))
    items = torch.nonzero(mask.reshape(len(mask), -1).any(dim=1))[:, 0]
    checked = None if validate is None else torch.from_numpy(data.mask(validate))
    for epoch in range(epochs or recipe.epochs):
        network.train()
        for batch in items[torch.randperm(len(items), generator=order)].split(recipe.batch):
            loss = _loss(network, data, batch, mask)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
        schedule.step()
        trained.stopped = time.perf_counter() - start > seconds
        if checked is None:
            trained.epochs = epoch + 1
        elif not _improved(torch, trained, data, checked, epoch, recipe.patience):
            break
        if trained.stopped:
            break
    if trained.state:
        network.load_state_dict(trained.state)
    network.eval()
    return trained


def _loss(network: Any, data: _Data, batch: Any, mask: Any) -> Any:
    squared = ((network(data.inputs[batch]) - data.targets[batch]) ** 2).mean(dim=-1)
    return squared[mask[batch]].mean()


def _improved(torch: Any, trained: _Trained, data: _Data, mask: Any, epoch: int, patience: int) -> bool:
    """Note a better epoch; whether there is still hope."""
    trained.network.eval()
    items = torch.nonzero(mask.reshape(len(mask), -1).any(dim=1))[:, 0]
    with torch.no_grad():
        error = float(_loss(trained.network, data, items, mask))
    if error < trained.error:
        trained.error, trained.epochs = error, epoch + 1
        trained.state = {name: value.clone() for name, value in trained.network.state_dict().items()}
    return epoch + 1 - trained.epochs <= patience


def _answer(torch: Any, network: Any, inputs: F32, query: Query, recurrent: bool) -> F32:
    """Standardised values (Q, V)."""
    if not recurrent:
        return network(torch.from_numpy(inputs)).numpy()
    clips = _padded(np.arange(len(inputs)), query.clips)
    return network(torch.from_numpy(inputs[clips])).numpy()[_inside(query.clips)]
