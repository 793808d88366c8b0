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
    table : (V, P) the values that describe each piece
    near : the pieces each point has to do with; None compares all with all
    measure : takes coordinates (N,) and descriptions (V, N) or (V, 1), returns (N,)
    """
    if near is None:
        best, which = np.full_like(x, np.inf), np.zeros(len(x), dtype=np.intp)
        for piece in range(table.shape[1]):
            found = measure(x, y, table[:, piece, None])
            closer = found < best
            np.copyto(best, found, where=closer)
            which[closer] = piece
        return which
    if not near.pieces.size:
        return np.zeros(len(x), dtype=np.int32)
    which = near.pieces[:, 0].take(near.cell)  # unlike indexing, take lets other threads work
    best, rows = measure(x, y, table.take(which, axis=1)), np.arange(len(x))
    for slot in near.pieces.T[1:]:
        piece = slot.take(near.cell.take(rows))
        some = np.flatnonzero(piece >= 0)
        rows, piece = rows.take(some), piece.take(some)
        if not len(rows):
            break
        found = measure(x.take(rows), y.take(rows), table.take(piece, axis=1))
        closer = np.flatnonzero(found < best.take(rows))
        at = rows.take(closer)
        best[at], which[at] = found.take(closer), piece.take(closer)
    return which
