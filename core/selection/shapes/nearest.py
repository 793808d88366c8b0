"""Which of a shape's pieces is the nearest one to each of many points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import Floats, Ints, Near

Rows = slice | NDArray[np.integer]


def piece_slots(count: int, pieces: int, cell: Ints | None, table: Ints | None) -> Iterator[tuple[Any, Any]]:
    """Go through pairs of points and pieces: each point meets every piece of its cell once, in order.

    Parameters
    ----------
    count, pieces : numbers of points and of pieces
    cell, table : (count,) cells and (C, P) their pieces, padded by -1; None pairs all with all

    Yields
    ------
    rows, piece : points (a slice or indices), and the piece each of them meets (one number or indices)
    """
    if cell is None or table is None:
        yield from ((slice(None), piece) for piece in range(pieces))
        return
    rows = np.arange(count)
    for slot in table.T:
        piece = slot[cell[rows]]
        rows, piece = rows[piece >= 0], piece[piece >= 0]
        if not len(rows):
            return
        yield rows, piece


def nearest_piece(
    x: Floats, y: Floats, pieces: int, near: Near | None, measure: Callable[[Floats, Floats, Any], Floats]
) -> tuple[Floats, NDArray[np.intp]]:
    """Return the least measure (N,) over the pieces, and the piece (N,) that has it (the first of equals)."""
    best, which = np.full_like(x, np.inf), np.zeros(len(x), dtype=np.intp)
    cell, table = (None, None) if near is None else (near.cell, near.pieces)
    for rows, piece in piece_slots(len(x), pieces, cell, table):
        found = measure(x[rows], y[rows], piece)
        closer = np.flatnonzero(found < best[rows])
        at = closer if isinstance(rows, slice) else rows[closer]
        best[at] = found[closer]
        which[at] = piece[closer] if isinstance(piece, np.ndarray) else piece
    return best, which
