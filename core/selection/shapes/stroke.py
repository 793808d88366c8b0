"""Brush strokes: chains of round cones, whose radius follows the pressure of the pen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...errors import SelectionError
from .base import Distance, Floats, Ints, Near, Point, finite, points_of
from .nearest import nearest_piece
from .ramer import kept_by_ramer

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Stroke:
    """The path of a round brush: points (pixels) and the brush's radius (pixels) at each of them.

    Outside, the distance is the exact one to the union of all discs on the path; inside it is
    ``min_t(|x - c(t)| - r(t))``, which is lowest along the path, as a brush wants it.
    """

    points: tuple[Point, ...]
    radii: tuple[float, ...]
    kind: ClassVar[str] = "stroke"

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", points_of(self.points, "stroke") if len(self.points) else ())
        object.__setattr__(self, "radii", finite(self.radii, "radii"))
        if len(self.radii) != len(self.points) or min(self.radii, default=0) < 0:
            raise SelectionError("A stroke needs a radius that is not negative for each of its points")

    @property
    def bounds(self) -> tuple[float, float, float, float] | None:
        """Box of the discs; None where they have no area."""
        if max(self.radii, default=0) == 0:
            return None
        points, reach = np.array(self.points), np.array(self.radii)[:, None]
        low, high = (points - reach).min(axis=0), (points + reach).max(axis=0)
        return (*low.tolist(), *high.tolist())

    @property
    def piece_count(self) -> int:
        """Number of cones."""
        return len(self._cones)

    def piece_distances(self, x: Floats, y: Floats, pieces: Ints) -> Floats:
        """Return the distances (C, P) of points (C,) to cones (C, P)."""
        return _cone(x[:, None], y[:, None], np.moveaxis(self._cones[pieces], -1, 0))

    def distance(self, x: Floats, y: Floats, normals: bool = True, near: Near | None = None) -> Distance:
        """Return the least of the distances to the cones."""
        if self.bounds is None:
            return Distance(np.full_like(x, np.inf), np.zeros_like(x), np.zeros_like(x))
        table = np.ascontiguousarray(self._cones.T, dtype=x.dtype)
        piece = nearest_piece(x, y, table, near, _cone)
        if not normals:
            return Distance(_cone(x, y, table.take(piece, axis=1)))
        return _cone_and_normal(x, y, table.take(piece, axis=1))

    @cached_property
    def _cones(self) -> F64:
        """(S, 8) start, axis, length, radius, how much it shrinks a pixel, and that by its cosine."""
        c, r = np.array(self.points, dtype=np.float64), np.array(self.radii, dtype=np.float64)
        if len(c) == 1:
            c, r = np.repeat(c, 2, axis=0), np.repeat(r, 2)
        a, ra, rb = c[:-1].copy(), r[:-1].copy(), r[1:]
        axis = c[1:] - a
        length = np.hypot(*axis.T)
        disc = length <= (1 + 1e-5) * np.abs(ra - rb)  # one end holds the other, up to rounding
        shrink = np.where(disc, 0, (ra - rb) / np.where(disc, 1, length))
        a[disc & (rb > ra)], ra[disc] = c[1:][disc & (rb > ra)], np.maximum(ra, rb)[disc]
        axis = np.where(disc[:, None], [1, 0], axis / np.where(disc, 1, length)[:, None])
        tangent = shrink / np.sqrt(1 - shrink * shrink)
        return np.column_stack([a, axis, np.where(disc, 0, length), ra, shrink, tangent])

    def simplified(self, tolerance: float = 0.5) -> Stroke:
        """Return the stroke without the points that neither path nor radius needs (Ramer-Douglas-Peucker).

        Parameters
        ----------
        tolerance : pixels
        """
        if len(self.points) < 3:
            return self
        rows = kept_by_ramer(np.column_stack([self.points, self.radii]), tolerance)
        return Stroke(tuple(self.points[k] for k in rows), tuple(self.radii[k] for k in rows))

    def mirrored(self, x: float) -> Stroke:
        """Return the stroke flipped about a vertical line."""
        return Stroke(tuple((2 * x - px, py) for px, py in self.points), self.radii)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and floats."""
        return {
            "kind": self.kind,
            "points": [list(point) for point in self.points],
            "radii": list(self.radii),
        }


def _cone(x: Floats, y: Floats, cone: Floats) -> Floats:
    """Return the distance to round cones.

    The least of ``|x - c(t)| - r(t)`` over a straight axis lies where the line from the point meets the
    slanted side at a right angle; at the ends it is the distance to a disc.
    """
    beyond, across, reach = _about_axis(x, y, cone)
    return np.sqrt(beyond * beyond + across * across) - reach


def _cone_and_normal(x: Floats, y: Floats, cone: Floats) -> Distance:
    """Return the distance to round cones and its gradient; on the axis that of either side."""
    beyond, across, reach = _about_axis(x, y, cone)
    ux, uy, shrink = cone[2], cone[3], cone[6]
    size = np.sqrt(beyond * beyond + across * across)
    middle = size == 0
    scale = 1 / (size + middle)
    n_along = beyond * scale + middle * shrink
    n_across = across * scale + middle * np.sqrt(1 - shrink * shrink)
    return Distance(size - reach, n_along * ux - n_across * uy, n_along * uy + n_across * ux)


def _about_axis(x: Floats, y: Floats, cone: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the offset from the foot on the axis, along and across it, and the radius there."""
    ax, ay, ux, uy, length, radius, shrink, tangent = cone
    dx, dy = x - ax, y - ay
    along, across = dx * ux + dy * uy, dy * ux - dx * uy
    foot = np.abs(across)
    foot *= -tangent
    foot += along
    np.clip(foot, 0, length, out=foot)
    along -= foot
    return along, across, radius - shrink * foot
