"""Lassos: polygons, with holes where outlines lie inside each other or cross."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .base import Distance, Floats, Near, Point, points_of
from .nearest import nearest_piece, piece_slots

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Lasso:
    """Closed outlines of at least three corners each (pixels); inside is where an odd number of them is.

    Outlines without area select nothing.
    """

    outlines: tuple[tuple[Point, ...], ...]
    kind: ClassVar[str] = "lasso"

    def __post_init__(self) -> None:
        rings = tuple(points_of(ring, "lasso") for ring in self.outlines if len(ring))
        object.__setattr__(self, "outlines", rings)

    @cached_property
    def edges(self) -> F64:
        """(E, 4) start and end of every edge that has a length, of every outline that has an area."""
        kept = [np.zeros((0, 4))]
        for ring in self.outlines:
            start = np.array(ring)
            if np.linalg.matrix_rank(start - start[0], tol=1e-9) < 2:
                continue
            edges = np.hstack([start, np.roll(start, -1, axis=0)])
            kept.append(edges[(edges[:, :2] != edges[:, 2:]).any(axis=1)])
        return np.concatenate(kept)

    @property
    def bounds(self) -> tuple[float, float, float, float] | None:
        """Box of the corners; None where there is no area."""
        corners = self.edges[:, :2]
        if not len(corners):
            return None
        return (*corners.min(axis=0).tolist(), *corners.max(axis=0).tolist())

    @property
    def piece_heights(self) -> F64:
        """(E, 2) least and largest y of the edges."""
        return np.sort(self.edges[:, 1::2], axis=1)

    def piece_distances(self, x: Floats, y: Floats) -> Floats:
        """Return the distances (C, E) of points (C,) to all edges, not negative."""
        return np.sqrt(_squared(x[:, None], y[:, None], *self._segments)[0])

    def distance(self, x: Floats, y: Floats, normals: bool = True, near: Near | None = None) -> Distance:
        """Return the distance to the nearest edge, negative where crossings to the left are odd."""
        if not len(self.edges):
            return Distance(np.full_like(x, np.inf), np.zeros_like(x), np.zeros_like(x))
        segments = tuple(row.astype(x.dtype) for row in self._segments)
        best, piece = nearest_piece(
            x, y, len(self.edges), near, lambda px, py, k: _squared(px, py, *(row[k] for row in segments))[0]
        )
        side = np.where(self._inside(x, y, near), -1, 1).astype(x.dtype)
        value = side * np.sqrt(best)
        if not normals:
            return Distance(value)
        _, ex, ey = _squared(x, y, *(row[piece] for row in segments))
        on_edge = best < 1e-24
        length = np.where(on_edge, 1, value)
        out = self._outward[piece].astype(x.dtype)
        return Distance(
            value, np.where(on_edge, out[:, 0], ex / length), np.where(on_edge, out[:, 1], ey / length)
        )

    @cached_property
    def _segments(self) -> tuple[F64, F64, F64, F64, F64]:
        """Start, direction and inverse squared length of the edges, rows of (E,)."""
        ax, ay, bx, by = self.edges.T
        dx, dy = bx - ax, by - ay
        return ax, ay, dx, dy, 1 / (dx * dx + dy * dy)

    @cached_property
    def _outward(self) -> F64:
        """(E, 2) unit normals of the edges, away from the region beside their middles."""
        ax, ay, dx, dy, inverse = self._segments
        nx, ny = dy * np.sqrt(inverse), -dx * np.sqrt(inverse)
        step = 1e-6 / np.sqrt(inverse)
        inwards = self._inside(ax + dx / 2 + step * nx, ay + dy / 2 + step * ny, None)
        return np.where(inwards, -1, 1)[:, None] * np.stack([nx, ny], axis=1)

    def _inside(self, x: Floats, y: Floats, near: Near | None) -> NDArray[np.bool_]:
        """Count the edges that a ray to the right meets; each holds its lower end, not its upper one."""
        odd = np.zeros(len(x), dtype=bool)
        ax, ay, bx, by = (column.astype(x.dtype) for column in self.edges.T)
        table = None if near is None else near.crossings
        for rows, k in piece_slots(len(x), len(self.edges), None if near is None else near.row, table):
            py = y[rows]
            level = np.flatnonzero((ay[k] > py) != (by[k] > py))
            rows = level if isinstance(rows, slice) else rows[level]
            k = k[level] if isinstance(k, np.ndarray) else k
            rise = (y[rows] - ay[k]) / (by[k] - ay[k])
            odd[rows] ^= x[rows] < ax[k] + rise * (bx[k] - ax[k])
        return odd

    def mirrored(self, x: float) -> Lasso:
        """Return the lasso flipped about a vertical line."""
        return Lasso(tuple(tuple((2 * x - px, py) for px, py in ring) for ring in self.outlines))

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and floats."""
        return {"kind": self.kind, "outlines": [[list(point) for point in ring] for ring in self.outlines]}


def _squared(
    x: Floats, y: Floats, ax: Floats, ay: Floats, dx: Floats, dy: Floats, inverse: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the squared distance of points to segments, and the offset from the closest points."""
    ex, ey = x - ax, y - ay
    along = np.clip((ex * dx + ey * dy) * inverse, 0, 1)
    ex, ey = ex - along * dx, ey - along * dy
    return ex * ex + ey * ey, ex, ey
