"""Selections that keep to the front surface: a small depth picture under a gesture, and a fade behind it."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SelectionError
from .viewpoint import Projected, Viewpoint

Floats = NDArray[np.floating]
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class FrontSurface:
    """Depths of the surface seen first, and how far behind it a selection reaches.

    A selection is multiplied by a fade that is 1 up to ``thickness`` behind the surface and smoothly falls to
    0 over ``falloff`` more. Between the cells of the picture depths follow a quadratic B-spline, so that the
    fade has a continuous gradient.

    box : least x, y and largest x, y of the picture, pixels
    shape : rows and columns
    data : (rows, columns) float32 little-endian depths from the bottom row, units of camera space, finite
    thickness, falloff : units of camera space; a falloff of 0 cuts off
    """

    box: Box
    shape: tuple[int, int]
    data: bytes
    thickness: float
    falloff: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "box", tuple(float(v) for v in self.box))
        object.__setattr__(self, "shape", tuple(int(v) for v in self.shape))
        if len(self.data) != 4 * self.shape[0] * self.shape[1] or not np.isfinite(self.depths).all():
            raise SelectionError("The depth picture of a selection is damaged; draw the selection again")
        if not (self.thickness >= 0 and self.falloff >= 0):
            raise SelectionError("The thickness and falloff of a selection in depth cannot be negative")

    @cached_property
    def depths(self) -> NDArray[np.float32]:
        """(rows, columns) depths."""
        return np.frombuffer(self.data, dtype="<f4").reshape(self.shape)

    @cached_property
    def _table(self) -> tuple[NDArray[np.float32], int]:
        """The depths with a rim of two cells, one row after the other, and the length of a row."""
        padded = np.pad(self.depths, 2, mode="edge")
        return padded.ravel(), padded.shape[1]

    def surface(
        self, x: Floats, y: Floats, slopes: bool = True
    ) -> tuple[Floats, Floats | None, Floats | None]:
        """Return the depth (N,) of the surface at pixels, and where asked for its derivatives by x and y.

        Beyond the picture the depths of its rim go on.
        """
        table, length = self._table
        column, along_x, rise_x = _spline(x, self.box[0], self.box[2], self.shape[1], slopes)
        cell, along_y, rise_y = _spline(y, self.box[1], self.box[3], self.shape[0], slopes)
        cell *= length
        cell += column
        depth = np.zeros_like(x)
        slope_x, slope_y = (np.zeros_like(x), np.zeros_like(x)) if slopes else (None, None)
        for k in range(3):
            values = [table.take(cell + (k * length + step)).astype(x.dtype, copy=False) for step in range(3)]
            line = sum(value * weight for value, weight in zip(values, along_x, strict=True))
            depth += line * along_y[k]
            if slope_x is not None and slope_y is not None:
                slope_y += line * rise_y[k]
                slope_x += sum(v * rise for v, rise in zip(values, rise_x, strict=True)) * along_y[k]
        return depth, slope_x, slope_y

    def fade(
        self, view: Viewpoint, points: Floats, at: Projected, slopes: bool
    ) -> tuple[Floats, NDArray[np.intp], Floats | None]:
        """Return how far points are in front.

        Returns
        -------
        value : (N,) the fade
        rows : (R,) ascending, the points where it has a slope
        slope : (3, R) its gradient there in object space; None where it was not asked for
        """
        depth = view.depth(points).astype(at.x.dtype, copy=False)
        t = depth - self.surface(at.x, at.y, slopes=False)[0]
        t -= self.thickness
        if self.falloff == 0:
            return (t <= 0).astype(t.dtype), np.zeros(0, np.intp), np.zeros((3, 0), t.dtype)
        t *= 1 / self.falloff
        np.clip(t, 0, 1, out=t)
        value = 1 - t * t * (3 - 2 * t)
        rows = np.flatnonzero((t > 0) & (t < 1))
        if not slopes:
            return value, rows, None
        at, t = at.take(rows), t.take(rows)
        _, slope_x, slope_y = self.surface(at.x, at.y)
        assert slope_x is not None and slope_y is not None
        rate = t * (1 - t) * (-6 / self.falloff)
        gradient = view.pull_back(at, -rate * slope_x, -rate * slope_y)
        gradient += np.outer(view.depth_gradient, rate)
        return value, rows, gradient

    def mirrored(self, x: float) -> FrontSurface:
        """Return the picture flipped about a vertical line."""
        low, bottom, high, top = self.box
        flipped = np.ascontiguousarray(self.depths[:, ::-1]).tobytes()
        return FrontSurface(
            (2 * x - high, bottom, 2 * x - low, top), self.shape, flipped, self.thickness, self.falloff
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; the depths are compressed text."""
        return {
            "box": list(self.box),
            "shape": list(self.shape),
            "data": base64.b64encode(zlib.compress(self.data, 9)).decode("ascii"),
            "thickness": self.thickness,
            "falloff": self.falloff,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> FrontSurface:
        """Read what `to_dict` wrote."""
        try:
            depths = zlib.decompress(base64.b64decode(data["data"]))
        except (ValueError, zlib.error) as error:
            raise SelectionError(
                "The depth picture of a selection is damaged; draw the selection again"
            ) from error
        return cls(tuple(data["box"]), tuple(data["shape"]), depths, data["thickness"], data["falloff"])


def _spline(
    x: Floats, low: float, high: float, count: int, slopes: bool
) -> tuple[NDArray[np.intp], list[Floats], list[Floats]]:
    """Return the first of three cells (N,) about each coordinate, in a row with a rim of two, their B-spline
    weights, and where asked for the weights' derivatives."""
    scale = x.dtype.type(count / (high - low))
    t = x - x.dtype.type(low)
    t *= scale
    t -= x.dtype.type(0.5)
    middle = np.rint(t)
    t -= middle
    cell = np.clip(middle, -1, count, out=middle).astype(np.intp)
    cell += 1
    before, after = 0.5 - t, 0.5 + t
    weights: list[Floats] = [0.5 * before * before, 0.75 - t * t, 0.5 * after * after]
    return cell, weights, [-before * scale, -2 * t * scale, after * scale] if slopes else []
