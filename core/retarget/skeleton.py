"""A skeleton at rest, as retargeting sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import RigError

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class RestSkeleton:
    """B bones at rest, in axes of their own.

    names : B names
    parents : (B,) int32, -1 where there is none; parents come before children. There may be several roots.
    heads, tails : (B, 3) float64, both ends of every bone, in metres or any other unit
    world : (3, 3) float64, rotation from these axes into the scene's, whose up is +Z
    """

    names: tuple[str, ...]
    parents: NDArray[np.int32]
    heads: F64
    tails: F64
    world: F64

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def make(
        cls,
        names: Sequence[str],
        parents: NDArray[np.integer] | Sequence[int],
        heads: NDArray[np.floating],
        tails: NDArray[np.floating] | None = None,
        world: NDArray[np.floating] | None = None,
    ) -> RestSkeleton:
        """Return the skeleton, checked; without tails bones end at the mean of their children's heads.

        Raises
        ------
        RigError : shapes do not agree, values are not finite, or a child comes before its parent
        """
        above, places = np.array(parents, np.int32), np.array(heads, np.float64)
        count = len(names)
        if above.shape != (count,) or places.shape != (count, 3) or not np.isfinite(places).all():
            raise RigError("The skeleton's names, parents and heads do not agree, or are not finite.")
        if (above >= np.arange(count)).any() or (above < -1).any():
            raise RigError("A bone of the skeleton comes before its parent.")
        ends = _ends(above, places) if tails is None else np.array(tails, np.float64)
        turn = np.eye(3) if world is None else np.array(world, np.float64)
        return cls(tuple(names), above, places, ends, turn)

    @property
    def up(self) -> F64:
        """(3,) the scene's up in this skeleton's axes."""
        return self.world[2]

    def ancestry(self) -> NDArray[np.bool_]:
        """(B, B) matrix, True at [a, b] where a is above b; False on its diagonal."""
        above = np.zeros((len(self), len(self)), bool)
        for bone, parent in enumerate(self.parents):
            if parent >= 0:
                above[:, bone] = above[:, parent]
                above[parent, bone] = True
        return above


def _ends(parents: NDArray[np.int32], heads: F64) -> F64:
    """Tails (B, 3): the mean of the children's heads, on a leaf a stub along the bone before it."""
    tails = heads.copy()
    for bone in range(len(parents)):
        children = np.flatnonzero(parents == bone)
        if len(children):
            tails[bone] = heads[children].mean(axis=0)
        elif parents[bone] >= 0:
            tails[bone] += 0.3 * (heads[bone] - heads[parents[bone]])
    return tails
