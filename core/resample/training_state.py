"""What a training has solved so far, kept beside its result so that it can be taken up again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..atomic_npz import read_npz, write_npz
from ..errors import RigError
from .dictionary import PROBLEMS

F32 = NDArray[np.float32]


@dataclass(frozen=True)
class TrainingSettings:
    """How a dictionary is trained.

    conditioning : weight of the largest child's diameter in the loss
    loss : "relative" measures errors against the parent's opacity, "absolute" is the published loss
    iterations : steps of Adam from the best found nearby; every start takes a fifth as many
    rays : drawn afresh for every step
    learning_rate : of the starts, 0.3 times that afterwards; it falls to 0 along a cosine
    seed : of the rays; a training is the same whether interrupted or not
    """

    conditioning: float = 0.002
    loss: Literal["relative", "absolute"] = "relative"
    iterations: int = 700
    rays: int = 1024
    learning_rate: float = 0.03
    seed: int = 0

    def check(self) -> None:
        """Raise `RigError` where a setting is out of range."""
        for name in ("iterations", "rays"):
            if getattr(self, name) < 1:
                raise RigError(f"{name} is {getattr(self, name)}, but must be at least 1.")
        if not (0 <= self.conditioning < float("inf") and 0 < self.learning_rate < float("inf")):
            raise RigError("The conditioning must be 0 or more, and the learning rate above 0.")
        if not abs(self.seed) < 2**62:
            raise RigError(f"The seed is {self.seed}, but must be below 2^62.")


@dataclass(eq=False)
class TrainingState:
    """Children and losses found so far; a loss of nan says that the problem is still open.

    starts : (S, 780, 5, 7), start_losses : (S, 780)
    refined : (780, 5, 7), refined_losses : (780,)
    """

    starts: F32
    start_losses: F32
    refined: F32
    refined_losses: F32

    @classmethod
    def fresh(cls, starts: int) -> TrainingState:
        """Return the state before the first step."""
        f32 = np.float32
        return cls(
            np.zeros((starts, PROBLEMS, 5, 7), f32),
            np.full((starts, PROBLEMS), np.nan, f32),
            np.zeros((PROBLEMS, 5, 7), f32),
            np.full(PROBLEMS, np.nan, f32),
        )

    @property
    def done(self) -> float:
        """Part of all work that is done, 0..1."""
        solved = np.isfinite(self.start_losses).sum() + np.isfinite(self.refined_losses).sum()
        return float(solved / (self.start_losses.size + self.refined_losses.size))


def save_state(state: TrainingState, settings: TrainingSettings, path: Path) -> None:
    """Write the state, whole or not at all."""
    arrays = {entry.name: getattr(state, entry.name) for entry in fields(state)}
    write_npz(path, {"settings": np.array(_text(settings)), **arrays}, compress=False)


def load_state(settings: TrainingSettings, starts: int, path: Path) -> TrainingState:
    """Return the state of a training begun with the same settings, or a fresh one where there is none.

    Raises
    ------
    RigError : the file belongs to other settings, or is no training
    """
    state = TrainingState.fresh(starts)
    if not path.exists():
        return state
    names = [entry.name for entry in fields(state)]
    arrays = read_npz(path, "a begun training", ("settings", *names))
    if str(arrays["settings"]) != _text(settings):
        raise RigError(f"{path}: was begun with other settings; give the same ones, or delete it.")
    for name in names:
        if arrays[name].shape != getattr(state, name).shape:
            raise RigError(f"{path}: was begun by another version of GaussiAnimate; delete it.")
        setattr(state, name, arrays[name])
    return state


def _text(settings: TrainingSettings) -> str:
    return json.dumps(asdict(settings), sort_keys=True)
