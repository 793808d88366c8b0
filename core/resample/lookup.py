"""From a splat's scales and opacity to its children in the dictionary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .alignment import distances
from .dictionary import Dictionary
from .grid import OPACITIES, OPACITY_COUNT, PAIRS, RATIO_COUNT, REACH, STEP, TARGETS

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
LookupMode = Literal["nearest", "trilinear"]

# A parent beyond is taken as this opaque, and so is a child: nothing a picture shows lies between.
OPAQUE = 0.9999
# Entries are blended where none of the eight differs from the first by more than this, in places (standard
# deviations of the parent) or logs of sizes; where the best arrangement changes, the nearest entry stands.
ALIKE = 0.5
FLATTEST = 1e-6  # of the largest scale; flatter splats are looked up as this flat


@dataclass(frozen=True, eq=False)
class Whitened:
    """Children of N splats in whitened coordinates, parent's axes longest first.

    offsets, deviations : (N, 5, 3) float32; opacities : (N, 5) float32
    """

    offsets: NDArray[np.float32]
    deviations: NDArray[np.float32]
    opacities: NDArray[np.float32]


def look_up(
    dictionary: Dictionary, scales: Floats, opacities: Floats, mode: LookupMode = "nearest"
) -> Whitened:
    """Return the children of splats.

    Ratios beyond 10^4 are taken as 10^4. Children of an opacity between two entries are those of the one
    nearer in optical depth, -log(1 - o), with that depth scaled to the splat's: o_l becomes
    1 - (1 - o_l)^(log(1 - o) / log(1 - o_entry)).

    Parameters
    ----------
    scales : (N, 3) standard deviations, largest first
    opacities : (N,) in 0..1
    mode : the nearest entry, or between the eight around
    """
    first, second = _steps(scales)
    if mode == "nearest":
        children = _entries(dictionary, np.rint(first), np.rint(second), nearest_opacity(opacities))
        return _decoded(children, opacities, TARGETS[nearest_opacity(opacities)])
    children, target = _between(dictionary, first, second, opacities)
    return _decoded(children, opacities, target)


def _steps(scales: Floats) -> tuple[Floats, Floats]:
    """Return where splats lie on the axes of the table, in steps of its ratios, (N,) and (N,)."""
    scales = np.asarray(scales, np.float64)
    smallest = np.maximum(scales[:, 2], FLATTEST * scales[:, 0])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.maximum(scales[:, :2] / smallest[:, None], 1)
        steps = np.clip(np.nan_to_num(2 * np.log10(ratios) / STEP, nan=0), 0, RATIO_COUNT - 1)
    return steps[:, 0], steps[:, 1]


def _depth(opacities: Floats) -> Floats:
    """Return optical depths, finite."""
    return -np.log1p(-np.clip(opacities, 0, OPAQUE))


_DEPTHS = _depth(TARGETS)


def nearest_opacity(opacities: Floats) -> NDArray[np.intp]:
    """Return the entry, 0..9, nearest in optical depth to each opacity (N,)."""
    return np.searchsorted((_DEPTHS[1:] + _DEPTHS[:-1]) / 2, _depth(opacities))


@lru_cache(maxsize=1)
def _pair_numbers() -> NDArray[np.intp]:
    numbers = np.zeros((REACH + 1, REACH + 1), np.intp)
    numbers[tuple(PAIRS.T)] = np.arange(len(PAIRS))
    return numbers


def _problem(first: Floats, second: Floats, opacity: Ints) -> NDArray[np.intp]:
    """Return the problem that answers for entries at whole steps, first >= second."""
    near = np.minimum(first - second, REACH).astype(np.intp)
    far = np.minimum(first, REACH).astype(np.intp)
    return _pair_numbers()[near, far] * OPACITY_COUNT + opacity


def _entries(dictionary: Dictionary, first: Floats, second: Floats, opacity: Ints) -> NDArray[np.float32]:
    return dictionary.children[_problem(first, second, opacity)]


def _decoded(children: NDArray[np.float32], opacities: Floats, target: Floats) -> Whitened:
    power = (_depth(opacities) / _depth(target)).astype(np.float32)
    clear = 1 / (1 + np.exp(children[..., 6]))  # 1 - o
    found = np.minimum(1 - clear ** power[:, None], np.float32(OPAQUE))
    return Whitened(children[..., :3], np.exp(children[..., 3:6]), found)


def _between(
    dictionary: Dictionary, first: Floats, second: Floats, opacities: Floats
) -> tuple[NDArray[np.float32], Floats]:
    """Return children blended from the eight entries around, and the opacity they were trained for."""
    tenth = np.clip(opacities * OPACITY_COUNT - 1, 0, OPACITY_COUNT - 1)
    place = np.stack([first, second, tenth], axis=1)
    low = np.minimum(np.floor(place), [RATIO_COUNT - 2, RATIO_COUNT - 2, OPACITY_COUNT - 2])
    share = place - low
    children = _entries(dictionary, np.rint(first), np.rint(second), nearest_opacity(opacities))
    target = TARGETS[nearest_opacity(opacities)]
    blended, alike = np.zeros_like(children), np.ones(len(children), bool)
    for corner in product((0, 1), repeat=3):
        at = low + corner
        weight = np.prod(np.where(corner, share, 1 - share), axis=1)
        # Below the diagonal the table is mirrored; the entry on it stands for its neighbour across.
        entry = _entries(dictionary, at[:, 0], np.minimum(at[:, 1], at[:, 0]), at[:, 2].astype(np.intp))
        blended += weight[:, None, None].astype(np.float32) * entry
        alike &= distances(entry, children) <= ALIKE
    between = np.interp(opacities, OPACITIES, TARGETS)
    return np.where(alike[:, None, None], blended, children), np.where(alike, between, target)
