"""Which frames are learned from and which are held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..capture import Capture
from ..errors import CaptureError

I64 = NDArray[np.intp]
SEED = 42
FIFTH = 0.2


@dataclass(frozen=True)
class Split:
    """One way to hold out frames.

    name : for the report
    train, test : indices of frames of the capture, rising, without a frame in common; frames that are in
        neither are not usable
    """

    name: str
    train: I64
    test: I64


def fold_splits(capture: Capture, count: int, fraction: float = FIFTH) -> list[Split]:
    """Hold out whole clips, a share of them in each fold, never the same clip twice.

    The clips' numbers, rising, are put in the order of ``numpy.random.default_rng(42).permutation``; each
    fold takes the next ``round(fraction * clips)``.

    Raises
    ------
    CaptureError : the clips are too few, or the capture does not say which there are
    """
    order = np.random.default_rng(SEED).permutation(_clip_numbers(capture))
    size = max(1, round(fraction * len(order)))
    if count < 1 or count * size > len(order) or size == len(order):
        raise CaptureError(
            f"{capture.name} has {len(order)} clips, too few for {count} folds of {size}; take fewer, or "
            "hold out every n-th frame."
        )
    return [
        _clip_split(capture, f"fold {fold + 1}", order[fold * size : (fold + 1) * size])
        for fold in range(count)
    ]


def fraction_split(capture: Capture, fraction: float = FIFTH) -> Split:
    """Hold out a share of the clips (that of the first fold), or the end of a capture of one motion."""
    if not 0 < fraction < 1:
        raise CaptureError(f"The share of frames to hold out lies between 0 and 1, not at {fraction:g}.")
    name = f"{100 * fraction:g} % held out"
    if capture.clips is not None and len(_clip_numbers(capture)) > 1:
        (split,) = fold_splits(capture, 1, fraction)
        return Split(name, split.train, split.test)
    frames = _usable(capture)
    return _split(capture, f"last {name}", np.arange(len(frames)) >= round((1 - fraction) * len(frames)))


def clip_split(capture: Capture, clips: Sequence[str]) -> Split:
    """Hold out clips given by name or number.

    Raises
    ------
    CaptureError : there is no such clip
    """
    numbers = _clip_numbers(capture)
    names = {str(number): number for number in numbers.tolist()}
    names |= {name: number for number, name in enumerate(capture.clip_names) if number in numbers}
    unknown = next((clip for clip in clips if clip not in names), None)
    if unknown is not None:
        raise CaptureError(f"{capture.name} has no clip called '{unknown}'; it has {', '.join(names)}.")
    return _clip_split(capture, ", ".join(clips) + " held out", np.array([names[clip] for clip in clips]))


def every_split(capture: Capture, step: int) -> Split:
    """Hold out every `step`-th frame, the last of each `step`."""
    if step < 2:
        raise CaptureError(f"Every 2nd frame or fewer can be held out, not every {step}.")
    return _split(capture, f"every {_ordinal(step)} frame held out", _usable(capture) % step == step - 1)


def _clip_split(capture: Capture, name: str, held_out: NDArray[np.integer]) -> Split:
    assert capture.clips is not None
    return _split(capture, name, np.isin(capture.clips[_usable(capture)], held_out))


def _split(capture: Capture, name: str, test: NDArray[np.bool_]) -> Split:
    frames = _usable(capture)
    if test.all() or not test.any():
        raise CaptureError(
            f"{capture.name}: {name} leaves no frame to {'learn from' if test.all() else 'test on'}."
        )
    return Split(name, frames[~test], frames[test])


def _usable(capture: Capture) -> I64:
    return np.flatnonzero(capture.frame_valid)


def _clip_numbers(capture: Capture) -> NDArray[np.int32]:
    if capture.clips is None:
        raise CaptureError(
            f"{capture.name} does not say which motions its frames belong to; hold out every n-th frame or a "
            "fraction."
        )
    return np.unique(capture.clips[capture.frame_valid])


def _ordinal(number: int) -> str:
    teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
