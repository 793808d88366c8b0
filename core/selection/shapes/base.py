"""What every shape of a selection offers.

Coordinates are pixels, y up. Distances are signed, negative inside, and 1-Lipschitz:
``|d(p) - d(q)| <= |p - q|``. Coordinates are handed over as separate rows x (N,), y (N,), which the
processor goes through fastest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import SelectionError

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Point = tuple[float, float]


class Distance(NamedTuple):
    """Signed distances (N,), pixels, and where asked for the unit gradient (N,) + (N,), else None."""

    value: Floats
    x: Floats | None = None
    y: Floats | None = None


@dataclass(frozen=True, eq=False)
class Near:
    """The pieces of a shape that can be the nearest ones to points, by cells of the screen.

    cell : (N,) the cell of each point
    pieces : (C, P) for each cell the pieces that may be nearest to a point in it, and all that meet the cell,
        ascending, padded by -1
    x, y : (C,) the middle of each cell
    inside : (C,) whether the middle is inside of the shape
    crossed : (C,) whether the shape's edge may meet the cell
    """

    cell: Ints
    pieces: Ints
    x: Floats
    y: Floats
    inside: NDArray[np.bool_]
    crossed: NDArray[np.bool_]

    def at(self, rows: Ints) -> Near:
        """Return the same for other points, each in the cell of one of these."""
        return replace(self, cell=self.cell.take(rows))


class Shape(Protocol):
    """A region of the screen."""

    kind: ClassVar[str]

    @property
    def bounds(self) -> tuple[float, float, float, float] | None:
        """Least x, y and largest x, y of the region; None where it is empty."""
        ...

    def distance(self, x: Floats, y: Floats, normals: bool = True, near: Near | None = None) -> Distance:
        """Return the signed distance of points to the region's edge."""
        ...

    def mirrored(self, x: float) -> Shape:
        """Return the shape flipped from left to right about a vertical line."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and floats."""
        ...


class PieceShape(Shape, Protocol):
    """A shape whose distance, but for the sign, is the least of its pieces' distances."""

    @property
    def piece_count(self) -> int:
        """Number of pieces."""
        ...

    def piece_distances(self, x: Floats, y: Floats, pieces: Ints) -> Floats:
        """Return the distances (C, P) of points (C,) to pieces (C, P), each of them 1-Lipschitz."""
        ...


def finite(values: object, name: str) -> tuple[float, ...]:
    """Return numbers as floats; raise SelectionError where one is not finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise SelectionError(f"The {name} of a selection must be finite numbers, not {values}")
    return tuple(array.tolist())


def points_of(values: object, name: str, columns: int = 2) -> tuple[Any, ...]:
    """Return rows of numbers as tuples of floats; raise SelectionError where they are not."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != columns or not np.isfinite(array).all():
        raise SelectionError(f"The {name} of a selection must be rows of {columns} finite numbers")
    return tuple(tuple(row) for row in array.tolist())


def local_frame(x: Floats, y: Floats, centre: Point, angle: float) -> tuple[Floats, Floats, float, float]:
    """Return coordinates about a centre along axes turned by ``angle``, and the angle's cosine and sine."""
    c, s = float(np.cos(angle)), float(np.sin(angle))
    dx, dy = x - x.dtype.type(centre[0]), y - y.dtype.type(centre[1])
    return c * dx + s * dy, c * dy - s * dx, c, s


def box_of(centre: Point, reach_x: float, reach_y: float) -> tuple[float, float, float, float]:
    """Return the box about a centre."""
    return centre[0] - reach_x, centre[1] - reach_y, centre[0] + reach_x, centre[1] + reach_y
