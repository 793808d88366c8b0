"""From a stack of selection layers to a skin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import SelectionError
from ..skinning.skin import MAX_INFLUENCES, STATIC, Skin
from .evaluate import Floats, StackField, in_chunks
from .gathering import Gathering, Slots, empty_slots
from .layer import LayerStack
from .memory import Memory, Seen

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
                    "The weights that the layers start from name bones the layers do not know; bind the "
                    "splats again"
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
        self,
        points: Floats,
        rows: NDArray[np.integer] | None = None,
        memory: Memory | None = None,
        start: int = 0,
    ) -> tuple[Influences, NDArray[np.float64]]:
        """Return the influences, and the share (N,) of the weight that was cut off.

        memory, start : where selections are kept, and the place of these points among all of them
        """
        points, bones = np.asarray(points, dtype=np.float64), len(self.stack.bones)
        seen = Seen(points, points.dtype, memory, start)
        found = self._gather(seen, np.arange(len(points)) if rows is None else rows)
        held = np.flatnonzero(found.total > 0 if self.completion == "static" else found.total >= 1e-6)
        slots, total = found.slots(held), found.total.take(held)
        if self.completion == "static":
            slots, total = self._completed(slots, total)
        kept = slots.strongest(min(self.influences, bones + 1))
        lost = np.zeros(len(points))
        lost[held] = np.maximum(1 - kept.weights.sum(axis=0) / total, 0)
        return _influences(kept, held, len(points), self.root), lost

    def _gather(self, seen: Seen, rows: NDArray[np.integer]) -> Gathering:
        """Return the weights of all bones that have any: those with layers, then what else the base has."""
        n = len(seen.points)
        found, start = Gathering(n), _Start(self, seen.points, rows)
        weights, gradients = np.zeros(n), np.zeros((3, n))
        touched = set(self.prepared.touched(seen))
        for bone in np.flatnonzero(self.prepared.layered).tolist():
            started = start.move(bone, weights, gradients)
            if not started and bone not in touched:
                continue
            self.prepared.evaluate_bone(bone, seen, weights, gradients, not started)
            found.add(np.broadcast_to(np.int32(bone), n), weights, gradients)
            weights[:], gradients[:] = 0, 0
        for bones, w, g in start.parts:
            found.add(bones, w, g)
        return found

    def _completed(self, slots: Slots, total: Floats) -> tuple[Slots, Floats]:
        """Give missing weight to the root, and return the new sums too."""
        lack, slope = np.maximum(1 - total, 0), -slots.gradients.sum(axis=1)
        slope[:, lack == 0] = 0
        if self.root == STATIC:
            return slots.led_by(STATIC, lack, slope), total + lack
        own = slots.bones == self.root  # unused slots of bone 0 have nothing
        lack_and_own = lack + np.where(own, slots.weights, 0).sum(axis=0)
        slope += np.where(own, slots.gradients, 0).sum(axis=1)
        for part in (slots.weights, *slots.gradients):
            part[own] = 0
        return slots.led_by(self.root, lack_and_own, slope), total + lack

    def all_weights(
        self, points: Floats, rows: NDArray[np.integer] | None = None
    ) -> tuple[NDArray[np.int32], Floats]:
        """Return the weights alone, none cut off, of all bones that may have any at one of the points.

        Those that `__call__` keeps jump where the strongest change places; these do not.

        Returns
        -------
        bones (B,) ascending, -1 the one that never moves; weights (B, N), which sum to 1 over B
        """
        points = np.asarray(points, dtype=np.float64)
        seen = Seen(points, points.dtype)
        start = _Start(self, points, np.arange(len(points)) if rows is None else rows)
        bones = np.unique([self.root, *start.bones(), *self.prepared.touched(seen)]).astype(np.int32)
        weights = np.zeros((len(bones), len(points)))
        start.add_all(bones, weights)
        for bone, own in zip(bones.tolist(), weights, strict=True):
            if bone != STATIC:
                self.prepared.evaluate_bone(bone, seen, own, None, self.base is None)
        self._complete(weights, weights[np.searchsorted(bones, self.root)])
        return bones, weights

    def _complete(self, weights: Floats, of_root: Floats) -> None:
        """Give missing weight of (B, N) to the root, one of the rows, and normalise, in place."""
        total = weights.sum(axis=0)
        if self.completion == "none":
            empty = total < 1e-6
            weights[:, empty] = 0
            of_root[empty] = total[empty] = 1
            weights /= total
            return
        of_root += np.maximum(1 - total, 0)
        over = np.flatnonzero(total > 1)
        weights[:, over] /= total[over]


class _Start:
    """The base's weights at points, carried on from its splats.

    parts : bones (N,), weights (N,) and gradients (3, N), 0 where there is nothing; no bone twice at a point
    """

    def __init__(self, skin_field: SkinField, points: Floats, rows: NDArray[np.integer]) -> None:
        self.parts: list[tuple[NDArray[np.int32], Floats, Floats]] = []
        base = skin_field.base
        if base is None:
            return
        assert skin_field.positions is not None
        away = (points - skin_field.positions[rows]).T
        for slot in range(base.influences):
            bones = base.indices[rows, slot]
            w = base.weights[rows, slot].astype(np.float64)
            g = np.ascontiguousarray(base.gradients[rows, slot].T, dtype=np.float64)
            there = w + (g * away).sum(axis=0)
            g[:, (there < 0) | (there > 1)] = 0
            there[(bones == STATIC) | ((w <= 0) & (there <= 0))] = 0
            self._add(bones, np.clip(there, 0, 1, out=there), g)

    def _add(self, bones: NDArray[np.int32], weights: Floats, gradients: Floats) -> None:
        """Add a slot, whose weights go to an earlier one where that has the same bone."""
        for others, kept, slopes in self.parts:
            rows = np.flatnonzero((others == bones) & (weights > 0) & (kept > 0))
            kept[rows] += weights[rows]
            slopes[:, rows] += gradients[:, rows]
            weights[rows] = 0
        self.parts.append((bones, weights, gradients))

    def move(self, bone: int, weights: Floats, gradients: Floats) -> bool:
        """Take a bone's weights out and add them to (N,), (3, N); return whether there are any."""
        any_there = False
        for bones, w, g in self.parts:
            rows = np.flatnonzero((bones == bone) & (w > 0))
            weights[rows] += w[rows]
            gradients[:, rows] += g[:, rows]
            w[rows] = 0
            any_there |= len(rows) > 0
        return any_there

    def bones(self) -> list[int]:
        """Return the bones that hold any of the points."""
        held = [np.unique(bones[w > 0]) for bones, w, _ in self.parts]
        return np.concatenate(held).tolist() if held else []

    def add_all(self, bones: NDArray[np.int32], weights: Floats) -> None:
        """Add the weights of all that is there to those (B, N) of bones (B,), ascending."""
        for own, w, _ in self.parts:
            rows = np.flatnonzero(w)
            weights[np.searchsorted(bones, own[rows]), rows] += w[rows]


def stack_to_skin(
    stack: LayerStack,
    positions: Floats,
    influences: int = MAX_INFLUENCES,
    *,
    base: Skin | None = None,
    completion: Literal["static", "none"] = "static",
    root: int = STATIC,
    threads: int | None = None,
    memory: Memory | None = None,
) -> Skin:
    """Evaluate a stack at splats and return their skin; see `SkinField` for the parameters.

    Parameters
    ----------
    positions : (N, 3) rest positions, metres, in object space
    memory : keeps what layers select for the next time; the result is the same

    Raises
    ------
    SelectionError : the base or the root does not fit
    """
    skin_field = SkinField(stack, influences, base, positions, completion, root)
    n, k = len(positions), min(influences, len(stack.bones) + 1)
    indices, lost = np.zeros((k, n), np.int32), np.zeros(n)
    weights, gradients = np.zeros((k, n), np.float32), np.zeros((3, k, n), np.float32)

    def work(rows: slice) -> None:
        (bones, w, g), lost[rows] = skin_field.with_loss(
            positions[rows], np.arange(n)[rows], memory, rows.start
        )
        indices[:, rows], weights[:, rows], gradients[..., rows] = bones.T, w.T, g.T

    if memory is not None:
        memory.begin(positions)
    in_chunks(n, work, threads)
    if memory is not None:
        memory.end()
    weights[0] = 1 - weights[1:].sum(axis=0)
    notes = ()
    if lost.max(initial=0) > 1e-6:
        notes = (
            f"{(lost > 1e-6).sum():,} splats had more than {influences} influences; the strongest stay "
            f"and take over up to {100 * lost.max():.1f} % of a splat's weight",
        )
    return Skin(indices.T, weights.T, gradients.T, notes)


def _influences(kept: Slots, held: NDArray[np.intp], count: int, root: int) -> Influences:
    """Return normalised influences on all points, those that nothing holds left to the root.

    Normalising, cutting off and normalising again is the same as normalising what is kept.
    """
    total, slope = kept.weights.sum(axis=0), kept.gradients.sum(axis=1)
    all_points = empty_slots(len(kept.weights), count, kept.weights.dtype)
    all_points.bones[0], all_points.weights[0] = root, 1
    for slot, (bones, weights) in enumerate(zip(kept.bones, kept.weights, strict=True)):
        share, used = weights / total, weights > 0
        gradients = (kept.gradients[:, slot] - share * slope) / total
        used |= gradients.any(axis=0)
        all_points.bones[slot, held] = np.where(used, bones, 0)
        all_points.weights[slot, held] = share
        for whole, part in zip(all_points.gradients[:, slot], gradients, strict=True):
            whole[held] = part
    return all_points.bones.T, all_points.weights.T, all_points.gradients.transpose(2, 1, 0)
