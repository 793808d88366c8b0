"""From a stack of selection layers to a skin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import SelectionError
from ..skinning.skin import MAX_INFLUENCES, STATIC, Skin, unit_sum
from ..skinning.weights import normalize
from .evaluate import Floats, StackField, in_chunks, zeros
from .layer import LayerStack

VALUES = 1 << 20  # weights held at once by a thread
Influences = tuple[NDArray[np.int32], Floats, Floats]


@dataclass(frozen=True, eq=False)
class SkinField:
    """Influences at any points: the layers of all bones, completed, cut to the strongest, normalised.

    A stack gives weights anywhere. Where the layers change weights that exist on splats only, those go on
    linearly from the splat a point belongs to.

    stack : the layers; its bones are the bones of the skin, in order
    influences : kept for each point at most
    base : the skin the layers start from; None starts from 0
    positions : (N, 3) of the base's splats
    completion : "static" gives what weights lack to 1 to ``root``; "none" normalises, so that one bone
        however weak takes a splat wholly
    root : bone that takes unweighted points and, with "static", missing weight; -1 stays where it is

    Raises
    ------
    SelectionError : the base has other splats than positions, or bones the stack has not
    """

    stack: LayerStack
    influences: int = MAX_INFLUENCES
    base: Skin | None = None
    positions: Floats | None = None
    completion: Literal["static", "none"] = "static"
    root: int = STATIC
    prepared: StackField = field(init=False, repr=False)

    def __post_init__(self) -> None:
        bones = len(self.stack.bones)
        if self.base is not None:
            if self.positions is None or len(self.positions) != len(self.base):
                raise SelectionError(
                    "The weights that the layers start from do not fit the cloud; bind it again"
                )
            if self.base.indices.max(initial=STATIC) >= bones:
                raise SelectionError(
                    "The weights that the layers start from name bones the layers do not know"
                )
        if not STATIC <= self.root < bones:
            raise SelectionError(
                f"The root bone {self.root} does not exist; there are bones 0 to {bones - 1}"
            )
        object.__setattr__(self, "prepared", StackField(self.stack))

    def __call__(self, points: Floats, rows: NDArray[np.integer] | None = None) -> Influences:
        """Return the influences on points.

        Parameters
        ----------
        points : (N, 3) positions in object space
        rows : (N,) the splat of the base each point belongs to; None for the splats themselves, in order

        Returns
        -------
        indices, weights, gradients : (N, K) int32, (N, K) and (N, K, 3) float64, strongest first, ties: the
            lower bone; weights sum to 1 and gradients to 0 (unused slots: index 0, weight 0, gradient 0)
        """
        return self.with_loss(points, rows)[0]

    def with_loss(
        self, points: Floats, rows: NDArray[np.integer] | None = None
    ) -> tuple[Influences, NDArray[np.float64]]:
        """Return the influences, and the share (N,) of the weight that was cut off."""
        points, bones = np.asarray(points, dtype=np.float64), len(self.stack.bones)
        weights, gradients = zeros(len(points), bones + 1)
        if self.base is not None:
            self._start(points, np.arange(len(points)) if rows is None else rows, weights, gradients)
        self.prepared.evaluate(points, weights[:, 1:], gradients[:, 1:], self.base is None)
        self._complete(weights, gradients)
        return _strongest(weights, gradients, min(self.influences, bones + 1))

    def all_weights(self, points: Floats, rows: NDArray[np.integer] | None = None) -> Floats:
        """Return the weights alone, (N, M + 1): the static bone's, then all bones'; see `__call__`."""
        points, bones = np.asarray(points, dtype=np.float64), len(self.stack.bones)
        weights = np.zeros((bones + 1, len(points))).T
        if self.base is not None:
            self._start(points, np.arange(len(points)) if rows is None else rows, weights, None)
        self.prepared.evaluate(points, weights[:, 1:], None)
        self._complete(weights, None)
        crowded = np.flatnonzero(np.count_nonzero(weights, axis=1) > self.influences)
        weakest = np.argsort(-weights[crowded], axis=1, kind="stable")[:, self.influences :]
        weights[crowded[:, None], weakest] = 0
        weights /= weights.sum(axis=1)[:, None]
        return weights

    def _start(
        self, points: Floats, rows: NDArray[np.integer], weights: Floats, gradients: Floats | None
    ) -> None:
        """Fill in the base's weights, carried from its splats; column 0 is left to completion."""
        assert self.base is not None and self.positions is not None
        base, away = self.base, points - self.positions[rows]
        for bones, w, g in zip(
            base.indices[rows].T,
            base.weights[rows].T.astype(np.float64),
            np.moveaxis(base.gradients[rows].astype(np.float64), 1, 0),
            strict=True,
        ):
            there = w + np.einsum("ni,ni->n", g, away)
            kept = np.flatnonzero((bones != STATIC) & ((w > 0) | (there > 0)))
            weights[kept, bones[kept] + 1] += np.clip(there[kept], 0, 1)
            if gradients is None:
                continue
            clamped = (there < 0) | (there > 1)
            gradients[kept, bones[kept] + 1] += np.where(clamped[:, None], 0, g)[kept]

    def _complete(self, weights: Floats, gradients: Floats | None) -> None:
        """Give missing weight to the root in place; column 0 is the bone that never moves."""
        total = weights.sum(axis=1)
        if self.completion == "none":
            empty = total < 1e-6
            weights[empty] = 0
            weights[empty, self.root + 1] = 1
            if gradients is not None:
                gradients[empty] = 0
            return
        lacking = np.flatnonzero(total < 1)
        weights[lacking, self.root + 1] += 1 - total[lacking]
        if gradients is not None:
            gradients[lacking, self.root + 1] -= gradients[lacking].sum(axis=1)


def stack_to_skin(
    stack: LayerStack,
    positions: Floats,
    influences: int = MAX_INFLUENCES,
    *,
    base: Skin | None = None,
    completion: Literal["static", "none"] = "static",
    root: int = STATIC,
    threads: int | None = None,
) -> Skin:
    """Evaluate a stack at splats and return their skin; see `SkinField` for the parameters.

    Parameters
    ----------
    positions : (N, 3) rest positions, metres, in object space

    Raises
    ------
    SelectionError : the base or the root does not fit
    """
    skin_field = SkinField(stack, influences, base, positions, completion, root)
    n, k = len(positions), min(influences, len(stack.bones) + 1)
    indices, lost = np.zeros((n, k), np.int32), np.zeros(n)
    weights, gradients = np.zeros((n, k), np.float32), np.zeros((n, k, 3), np.float32)

    def work(rows: slice) -> None:
        found, lost[rows] = skin_field.with_loss(positions[rows], np.arange(n)[rows])
        indices[rows], weights[rows], gradients[rows] = found

    in_chunks(n, work, threads, max(VALUES // (len(stack.bones) + 1), 256))
    notes = ()
    if lost.max(initial=0) > 1e-6:
        notes = (
            f"{(lost > 1e-6).sum()} splats had more than {influences} influences; the strongest stay "
            f"and take over up to {100 * lost.max():.1f} % of a splat's weight",
        )
    return Skin(indices, unit_sum(weights), gradients, notes)


def _strongest(weights: Floats, gradients: Floats, count: int) -> tuple[Influences, NDArray[np.float64]]:
    """Keep the strongest columns of each row and normalise them; column c is bone c - 1.

    Normalising, cutting off and normalising again is the same as normalising what is kept.
    """
    n, left = np.arange(len(weights)), weights.copy()
    indices = np.empty((len(weights), count), dtype=np.int32)
    for slot in range(count):
        indices[:, slot] = left.argmax(axis=1)
        left[n, indices[:, slot]] = -1
    total = weights.sum(axis=1)
    kept, slopes = weights[n[:, None], indices], gradients[n[:, None], indices]
    lost = np.maximum(1 - kept.sum(axis=1) / total, 0)
    kept, slopes = normalize(kept, slopes)
    unused = (kept == 0) & (slopes == 0).all(axis=-1)
    return (np.where(unused, 0, indices - 1).astype(np.int32), kept, slopes), lost
