"""Ellipses, turned by any angle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...errors import SelectionError
from .base import Distance, Floats, Near, Point, box_of, finite, local_frame

STEPS = 4  # of Newton's method for all points
MOST_STEPS = 120  # for those that have not got there


@dataclass(frozen=True)
class Ellipse:
    """An ellipse by its centre and half axes (pixels), turned counter-clockwise (radians)."""

    centre: Point
    radii: Point
    angle: float = 0.0
    kind: ClassVar[str] = "ellipse"

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", finite(self.centre, "centre"))
        object.__setattr__(self, "radii", finite(self.radii, "radii"))
        object.__setattr__(self, "angle", finite([self.angle], "angle")[0])
        if len(self.centre) != 2 or len(self.radii) != 2 or min(self.radii) < 0:
            raise SelectionError("An ellipse needs a centre and two radii that are not negative")

    @classmethod
    def from_corners(cls, a: Point, b: Point) -> Ellipse:
        """Return the upright ellipse that fills the box between two opposite corners."""
        (ax, ay), (bx, by) = a, b
        return cls(((ax + bx) / 2, (ay + by) / 2), (abs(bx - ax) / 2, abs(by - ay) / 2))

    @property
    def bounds(self) -> tuple[float, float, float, float] | None:
        """Box of the ellipse; None where a radius is zero."""
        if min(self.radii) == 0:
            return None
        c, s = np.cos(self.angle), np.sin(self.angle)
        (a, b) = self.radii
        return box_of(self.centre, float(np.hypot(c * a, s * b)), float(np.hypot(s * a, c * b)))

    def distance(self, x: Floats, y: Floats, normals: bool = True, near: Near | None = None) -> Distance:
        """Return the distance to the edge.

        The closest point of an ellipse with radii a >= b to (u, v) in the first quadrant is
        ``(a^2 u / (t + e), b^2 v / t)`` with ``e = a^2 - b^2`` and the only root t > 0 of
        ``(a u / (t + e))^2 + (b v / t)^2 = 1`` (Eberly, Distance from a Point to an Ellipse). The root is
        found by Newton's method on ``1 / sqrt(left side) - 1``, which is concave and nearly straight, from
        below, so that it converges monotonically. With ``g = (u / (t + e), v / t)`` the signed distance is
        ``(t - b^2) |g|`` and its gradient ``g / |g|``.
        """
        u, v, c, s = local_frame(x, y, self.centre, self.angle)
        (a, b), swapped = self.radii, self.radii[0] < self.radii[1]
        if swapped:
            u, v, a, b = v, u, b, a
        first, second = np.abs(u), np.maximum(np.abs(v), x.dtype.type(np.finfo(x.dtype).eps * b))
        t = closest_parameter(first, second, a, b)
        gu, gv = first / (t + (a * a - b * b)), second / t
        length = np.sqrt(gu * gu + gv * gv)
        value = (t - b * b) * length
        if not normals:
            return Distance(value)
        nu, nv = np.copysign(gu / length, u), np.copysign(gv / length, v)
        if swapped:
            nu, nv = nv, nu
        return Distance(value, c * nu - s * nv, s * nu + c * nv)

    def mirrored(self, x: float) -> Ellipse:
        """Return the ellipse flipped about a vertical line."""
        return Ellipse((2 * x - self.centre[0], self.centre[1]), self.radii, -self.angle)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and floats."""
        return {
            "kind": self.kind,
            "centre": list(self.centre),
            "radii": list(self.radii),
            "angle": self.angle,
        }


def closest_parameter(u: Floats, v: Floats, a: float, b: float) -> Floats:
    """Return the root t of ``(a u / (t + e))^2 + (b v / t)^2 = 1`` for u >= 0, v > 0, a >= b."""
    e = a * a - b * b
    au, bv = a * u, b * v
    t = np.maximum(bv, au - e)  # one of the squares is 1 here
    for _ in range(STEPS):
        t, _ = _newton(t, au, bv, e)
    tolerance = 16 * np.finfo(u.dtype).eps
    rest = np.flatnonzero(_newton(t, au, bv, e)[1] > tolerance)
    for _ in range(MOST_STEPS):  # the few points beside the ends of the evolute, where steps grow by half
        if not len(rest):
            break
        t[rest], left = _newton(t[rest], au[rest], bv[rest], e)
        rest = rest[left > tolerance]
    return t


def _newton(t: Floats, au: Floats, bv: Floats, e: float) -> tuple[Floats, Floats]:
    """Return one step of Newton's method, and what was left to go before it (0 at the root)."""
    p, q = au / (t + e), bv / t
    p, q = p * p, q * q
    total = p + q
    left = np.sqrt(total) - 1
    return t + total * left / (p / (t + e) + q / t), left
