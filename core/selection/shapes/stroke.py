"""Brush strokes: chains of round cones, whose radius follows the pressure of the pen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...errors import SelectionError
from .base import Distance, Floats, Near, Point, finite, points_of
from .nearest import nearest_piece

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
    def piece_heights(self) -> F64:
        """(0, 2): nothing is decided by horizontal lines."""
        return np.zeros((0, 2))

    def piece_distances(self, x: Floats, y: Floats) -> Floats:
        """Return the distances (C, S) of points (C,) to all cones."""
        return _cone(x[:, None], y[:, None], *self._cones)[0]

    def distance(self, x: Floats, y: Floats, normals: bool = True, near: Near | None = None) -> Distance:
        """Return the least of the distances to the cones."""
        if self.bounds is None:
            return Distance(np.full_like(x, np.inf), np.zeros_like(x), np.zeros_like(x))
        cones = tuple(row.astype(x.dtype) for row in self._cones)
        value, piece = nearest_piece(
            x, y, len(cones[0]), near, lambda px, py, k: _cone(px, py, *(row[k] for row in cones))[0]
        )
        if not normals:
            return Distance(value)
        return Distance(*_cone(x, y, *(row[piece] for row in cones)))

    @cached_property
    def _cones(self) -> tuple[F64, ...]:
        """Start, axis, length, radius, and how much it shrinks a pixel, of every cone, rows of (S,)."""
        c, r = np.array(self.points, dtype=np.float64), np.array(self.radii, dtype=np.float64)
        if len(c) == 1:
            c, r = np.repeat(c, 2, axis=0), np.repeat(r, 2)
        a, ra, rb = c[:-1].copy(), r[:-1].copy(), r[1:]
        axis = c[1:] - a
        length = np.hypot(*axis.T)
        disc = length <= (1 + 1e-5) * np.abs(ra - rb)  # one end holds the other, up to rounding
        a[disc & (rb > ra)], ra[disc] = c[1:][disc & (rb > ra)], np.maximum(ra, rb)[disc]
        length[disc], axis[disc] = 1, [1, 0]
        axis /= length[:, None]
        shrink = np.where(disc, 0, (ra - rb) / length)
        return a[:, 0], a[:, 1], axis[:, 0], axis[:, 1], np.where(disc, 0, length), ra, shrink

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


def _cone(
    x: Floats,
    y: Floats,
    ax: Floats,
    ay: Floats,
    ux: Floats,
    uy: Floats,
    length: Floats,
    radius: Floats,
    shrink: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Return the distance to round cones, and its gradient.

    The least of ``|x - c(t)| - r(t)`` over a straight axis lies where the line from the point meets the
    slanted side at a right angle; at the ends it is the distance to a disc.
    """
    dx, dy = x - ax, y - ay
    along, across = dx * ux + dy * uy, dy * ux - dx * uy
    cosine = np.sqrt(1 - shrink * shrink)
    foot = np.clip(along - np.abs(across) * (shrink / cosine), 0, length)
    beyond = along - foot
    size = np.hypot(beyond, across)
    middle = size == 0  # on the axis the gradient is that of either side
    scale = np.where(middle, 1, size)
    n_along = np.where(middle, shrink, beyond / scale)
    n_across = np.where(middle, cosine, across / scale)
    return size - (radius - shrink * foot), n_along * ux - n_across * uy, n_along * uy + n_across * ux


def kept_by_ramer(points: F64, tolerance: float) -> list[int]:
    """Return the rows (ascending) that approximate a path (N, D) within ``tolerance`` (Ramer 1972)."""
    kept, open_spans = {0, len(points) - 1}, [(0, len(points) - 1)]
    while open_spans:
        first, last = open_spans.pop()
        if last - first < 2:
            continue
        chord = points[last] - points[first]
        offsets = points[first + 1 : last] - points[first]
        t = np.clip(offsets @ chord / max(float(chord @ chord), 1e-300), 0, 1)
        away = np.linalg.norm(offsets - t[:, None] * chord, axis=1)
        worst = int(np.argmax(away))
        if away[worst] > tolerance:
            kept.add(first + 1 + worst)
            open_spans += [(first, first + 1 + worst), (first + 1 + worst, last)]
    return sorted(kept)
