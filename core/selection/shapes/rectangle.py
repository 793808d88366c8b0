"""Rectangles, turned by any angle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...errors import SelectionError
from .base import Distance, Floats, Near, Point, box_of, finite, local_frame


@dataclass(frozen=True)
class Rectangle:
    """A rectangle by its centre and half its sides (pixels), turned counter-clockwise (radians)."""

    centre: Point
    half: Point
    angle: float = 0.0
    kind: ClassVar[str] = "rectangle"

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", finite(self.centre, "centre"))
        object.__setattr__(self, "half", finite(self.half, "sides"))
        object.__setattr__(self, "angle", finite([self.angle], "angle")[0])
        if len(self.centre) != 2 or len(self.half) != 2 or min(self.half) < 0:
            raise SelectionError("A rectangle needs a centre and two sides that are not negative")

    @classmethod
    def from_corners(cls, a: Point, b: Point) -> Rectangle:
        """Return the upright rectangle between two opposite corners."""
        (ax, ay), (bx, by) = a, b
        return cls(((ax + bx) / 2, (ay + by) / 2), (abs(bx - ax) / 2, abs(by - ay) / 2))

    @property
    def bounds(self) -> tuple[float, float, float, float] | None:
        """Box of the corners; None where a side is zero."""
        if min(self.half) == 0:
            return None
        c, s = abs(np.cos(self.angle)), abs(np.sin(self.angle))
        (a, b) = self.half
        return box_of(self.centre, float(c * a + s * b), float(s * a + c * b))

    def distance(self, x: Floats, y: Floats, normals: bool = True, near: Near | None = None) -> Distance:
        """Return the distance to the edge; inside, the gradient is that of the nearest side.

        That holds outside as well, but for the points beyond a corner, which are few.
        """
        u, v, c, s = local_frame(x, y, self.centre, self.angle)
        across, along = np.abs(u), np.abs(v)
        across -= self.half[0]
        along -= self.half[1]
        value = np.maximum(across, along)
        corner = np.flatnonzero(np.minimum(across, along) > 0)
        across_, along_ = across.take(corner), along.take(corner)
        value[corner] = length = np.sqrt(across_ * across_ + along_ * along_)
        if not normals:
            return Distance(value)
        nu = (across >= along).astype(x.dtype)
        nv = 1 - nu
        nu[corner], nv[corner] = across_ / length, along_ / length
        nu, nv = np.copysign(nu, u, out=nu), np.copysign(nv, v, out=nv)
        if s == 0:
            return Distance(value, c * nu, c * nv)
        nx = c * nu
        nx -= s * nv
        nu *= s
        nv *= c
        nu += nv
        return Distance(value, nx, nu)

    def mirrored(self, x: float) -> Rectangle:
        """Return the rectangle flipped about a vertical line."""
        return Rectangle((2 * x - self.centre[0], self.centre[1]), self.half, -self.angle)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and floats."""
        return {
            "kind": self.kind,
            "centre": list(self.centre),
            "half": list(self.half),
            "angle": self.angle,
        }
