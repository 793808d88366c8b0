"""Which of a shape's pieces is the nearest one to each of many points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .base import Floats, Ints, Near

Measure = Callable[[Floats, Floats, Floats], Floats]


def nearest_piece(x: Floats, y: Floats, table: Floats, near: Near | None, measure: Measure) -> Ints:
    """Return for points (N,) the piece (N,) of the least measure, the first of equals.

    Parameters
    ----------
    table : (P, V) the values that describe each piece
    near : the pieces each point has to do with; None compares all with all
    measure : takes coordinates (N,) and descriptions (V, N) or (V, 1), returns (N,)
    """
    if near is None:
        best, which = np.full_like(x, np.inf), np.zeros(len(x), dtype=np.intp)
        for piece in range(len(table)):
            found = measure(x, y, table[piece][:, None])
            closer = found < best
            np.copyto(best, found, where=closer)
            which[closer] = piece
        return which
    which = near.pieces[:, 0][near.cell] if near.pieces.size else np.zeros(len(x), dtype=np.int32)
    best, rows = measure(x, y, table[which].T), np.arange(len(x))
    for slot in near.pieces.T[1:]:
        piece = slot[near.cell[rows]]
        some = np.flatnonzero(piece >= 0)
        rows, piece = rows[some], piece[some]
        if not len(rows):
            break
        found = measure(x[rows], y[rows], table[piece].T)
        closer = np.flatnonzero(found < best[rows])
        best[rows[closer]] = found[closer]
        which[rows[closer]] = piece[closer]
    return which
