"""Lassos: polygons, with holes where outlines lie inside each other or cross."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .base import Distance, Floats, Ints, Near, Point, points_of
from .nearest import nearest_piece
from .ramer import kept_by_ramer

F64 = NDArray[np.float64]
# Pixels from an edge within which rounding spoils the direction to it, in double and in single precision.
ON_EDGE, ON_EDGE_SINGLE = 1e-6, 1e-3
BESIDE = 1e-2  # pixels from an edge, surely to one side of it


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
    def piece_count(self) -> int:
        """Number of edges."""
        return len(self.edges)

    def piece_distances(self, x: Floats, y: Floats, pieces: Ints) -> Floats:
        """Return the distances (C, P) of points (C,) to edges (C, P), not negative."""
        return np.sqrt(_squared(x[:, None], y[:, None], np.moveaxis(self._segments[pieces], -1, 0))[0])

    def distance(self, x: Floats, y: Floats, normals: bool = True, near: Near | None = None) -> Distance:
        """Return the distance to the nearest edge, negative inside."""
        if not len(self.edges):
            return Distance(np.full_like(x, np.inf), np.zeros_like(x), np.zeros_like(x))
        table = np.ascontiguousarray(self._segments.T, dtype=x.dtype)
        piece = nearest_piece(x, y, table, near, lambda px, py, edge: _squared(px, py, edge)[0])
        squared, ex, ey = _squared(x, y, table.take(piece, axis=1))
        inside = self._odd(x, y) if near is None else self._inside(x, y, near, table)
        value = np.sqrt(squared)
        np.negative(value, out=value, where=inside)
        if not normals:
            return Distance(value)
        on_edge = np.flatnonzero(squared < (ON_EDGE if x.dtype == np.float64 else ON_EDGE_SINGLE) ** 2)
        if not len(on_edge):
            return Distance(value, ex / value, ey / value)
        foot_x, foot_y = x[on_edge] - ex[on_edge], y[on_edge] - ey[on_edge]
        length = value.copy()
        length[on_edge] = 1
        nx, ny = ex / length, ey / length
        nx[on_edge], ny[on_edge] = self._outward(foot_x, foot_y, piece[on_edge])
        return Distance(value, nx, ny)

    @cached_property
    def _segments(self) -> F64:
        """(E, 5) start, direction and inverse squared length of the edges."""
        direction = self.edges[:, 2:] - self.edges[:, :2]
        inverse = 1 / (direction**2).sum(axis=1, keepdims=True)
        return np.concatenate([self.edges[:, :2], direction, inverse], axis=1)

    def _outward(self, x: Floats, y: Floats, piece: Ints) -> tuple[F64, F64]:
        """Return unit normals of edges at points (N,) of theirs, away from the region beside these.

        Which side that is changes along an edge that others cross.
        """
        _, _, dx, dy, inverse = self._segments[piece].T
        nx, ny = dy * np.sqrt(inverse), -dx * np.sqrt(inverse)
        inwards = self._odd(x + BESIDE * nx, y + BESIDE * ny)
        return np.where(inwards, -nx, nx), np.where(inwards, -ny, ny)

    def _odd(self, x: Floats, y: Floats) -> NDArray[np.bool_]:
        """Count the edges that a ray to the right meets; each holds its lower end, not its upper one."""
        odd = np.zeros(len(x), dtype=bool)
        for ax, ay, bx, by in self.edges.astype(x.dtype):
            rows = np.flatnonzero((ay > y) != (by > y))
            odd[rows] ^= x[rows] < ax + (y[rows] - ay) / (by - ay) * (bx - ax)
        return odd

    def _inside(self, x: Floats, y: Floats, near: Near, table: Floats) -> NDArray[np.bool_]:
        """Start from what is known of the cell's middle, and count the edges on the way from there.

        The way goes along the y axis, then along the x axis. Both legs take the same side of an edge for
        the corner between them, so that rounding there cannot count an edge once instead of twice.
        """
        inside = near.inside.take(near.cell)
        rows = np.flatnonzero(near.crossed.take(near.cell))
        middle_x, middle_y = near.x.astype(x.dtype), near.y.astype(x.dtype)
        for slot in near.pieces.T:
            piece = slot.take(near.cell.take(rows))
            some = np.flatnonzero(piece >= 0)
            rows, piece = rows.take(some), piece.take(some)
            if not len(rows):
                break
            cell = near.cell.take(rows)
            px, py, cx, cy = x.take(rows), y.take(rows), middle_x.take(cell), middle_y.take(cell)
            ax, ay, dx, dy, _ = table.take(piece, axis=1)
            bx, by = ax + dx, ay + dy
            corner = dx * (py - ay) > dy * (cx - ax)
            along_x = ((ay > py) != (by > py)) & ((dx * (py - ay) > dy * (px - ax)) != corner)
            along_y = ((ax > cx) != (bx > cx)) & ((dx * (cy - ay) > dy * (cx - ax)) != corner)
            inside[rows] ^= along_x ^ along_y
        return inside

    def simplified(self, tolerance: float = 0.5) -> Lasso:
        """Return the lasso without the corners it does not need (Ramer-Douglas-Peucker).

        Parameters
        ----------
        tolerance : pixels
        """
        return Lasso(
            tuple(
                tuple(ring[k] for k in kept_by_ramer(np.array([*ring, ring[0]]), tolerance)[:-1])
                for ring in self.outlines
            )
        )

    def mirrored(self, x: float) -> Lasso:
        """Return the lasso flipped about a vertical line."""
        return Lasso(tuple(tuple((2 * x - px, py) for px, py in ring) for ring in self.outlines))

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and floats."""
        return {"kind": self.kind, "outlines": [[list(point) for point in ring] for ring in self.outlines]}


def _squared(x: Floats, y: Floats, edge: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the squared distance of points to segments, and the offset from the closest points."""
    ax, ay, dx, dy, inverse = edge
    ex, ey = x - ax, y - ay
    along = ex * dx
    along += ey * dy
    along *= inverse
    np.clip(along, 0, 1, out=along)
    ex -= along * dx
    ey -= along * dy
    return ex * ex + ey * ey, ex, ey
