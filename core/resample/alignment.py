"""Children named and mirrored alike from one entry of the dictionary to the next.

The loss does not ask in which order children stand nor whether all are mirrored across a plane between the
parent's axes. Of these 120 x 8 equal solutions each entry takes the one nearest to an entry before it.
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from .grid import OPACITY_COUNT, PAIRS

F32 = NDArray[np.float32]
_ORDERS = np.array(list(permutations(range(5))))
_MIRRORS = np.array(list(product((1.0, -1.0), repeat=3)), dtype=np.float32)


def distances(a: F32, b: F32) -> F32:
    """Return how far apart children (..., 5, 7) are: the largest difference of a place or of a log size."""
    return np.abs(a[..., :6] - b[..., :6]).max(axis=(-1, -2))


def align(children: F32) -> F32:
    """Return children (780, 5, 7) of the same pictures, each as like its predecessors as can be."""
    table = children.reshape(len(PAIRS), OPACITY_COUNT, 5, 7).copy()
    numbers = {(near, far): number for number, (near, far) in enumerate(PAIRS.tolist())}
    for (near, far), pair in numbers.items():
        for opacity in range(OPACITY_COUNT):
            before = [(numbers.get(step), opacity) for step in ((near - 1, far), (near, far - 1))]
            before = [
                entry for entry in (*before, (pair, opacity - 1)) if entry[0] is not None and entry[1] >= 0
            ]
            references = [table[entry] for entry in before]
            table[pair, opacity] = _nearest(
                table[pair, opacity], references or [_canonical(table[pair, opacity])]
            )
    return table.reshape(-1, 5, 7)


def _canonical(children: F32) -> F32:
    return children[np.lexsort(children[:, 2::-1].T)]


def _nearest(children: F32, references: list[F32]) -> F32:
    variants = np.repeat(children[_ORDERS][None], len(_MIRRORS), axis=0)  # (8, 120, 5, 7)
    variants[..., :3] *= _MIRRORS[:, None, None, :]
    variants = variants.reshape(-1, 5, 7)
    costs = [((variants[..., :6] - reference[..., :6]) ** 2).sum(axis=(1, 2)) for reference in references]
    return variants[np.argmin(np.min(costs, axis=0))]
