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
MOST_CELLS = 96 * 96
SPLATS_PER_CELL = 8


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

    def surface(self, x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the depth (N,) of the surface at pixels, and its derivatives by x and y.

        Beyond the picture the depths of its rim go on.
        """
        columns, by_x = _spline(x, self.box[0], self.box[2], self.shape[1])
        rows, by_y = _spline(y, self.box[1], self.box[3], self.shape[0])
        depth, slope_x, slope_y = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
        for row, along_y, rise_y in zip(*rows, by_y, strict=True):
            for column, along_x, rise_x in zip(*columns, by_x, strict=True):
                value = self.depths[row, column].astype(x.dtype)
                depth += value * along_x * along_y
                slope_x += value * rise_x * along_y
                slope_y += value * along_x * rise_y
        return depth, slope_x, slope_y

    def fade(
        self, view: Viewpoint, points: Floats, at: Projected, slopes: bool
    ) -> tuple[Floats, Floats | None]:
        """Return the fade (N,) at points, and where asked for its gradient (3, N) in object space."""
        depth, slope_x, slope_y = self.surface(at.x, at.y)
        behind = view.depth(points).astype(depth.dtype) - depth - self.thickness
        if self.falloff == 0:
            flat = np.zeros((3, len(depth)), depth.dtype) if slopes else None
            return (behind <= 0).astype(depth.dtype), flat
        t = np.clip(behind / self.falloff, 0, 1)
        value = 1 - t * t * (3 - 2 * t)
        if not slopes:
            return value, None
        rate = t * (1 - t) * (-6 / self.falloff)
        gradient = view.pull_back(at, -rate * slope_x, -rate * slope_y)
        return value, gradient + np.outer(view.depth_gradient, rate).astype(rate.dtype)

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


def front_surface(
    view: Viewpoint,
    points: Floats,
    box: Box,
    opacities: Floats | None = None,
    scales: Floats | None = None,
    thickness: float | None = None,
    falloff: float | None = None,
) -> FrontSurface | None:
    """Take the depth picture of splats under a gesture.

    The depth of a cell is that at which half of the light is gone (median depth, as splat renderers take
    it); cells that stay see-through take that of their neighbours, so that neither stray splats nor gaps
    between splats make holes.

    Parameters
    ----------
    points : (N, 3) positions in object space
    box : least x, y and largest x, y, pixels; that of the shape with its feather
    opacities, scales : (N,) and (N, 3) of the splats; without them every point hides what is behind it
    thickness, falloff : units of camera space; None takes two cells of the picture

    Returns
    -------
    None where no splat lies in the box
    """
    at = view.project(points)
    inside = (at.x >= box[0]) & (at.x <= box[2]) & (at.y >= box[1]) & (at.y <= box[3])
    rows = np.flatnonzero(inside)
    size = (box[2] - box[0], box[3] - box[1])
    if not len(rows) or min(size) <= 0:
        return None
    cell = np.sqrt(size[0] * size[1] / np.clip(len(rows) / SPLATS_PER_CELL, 1, MOST_CELLS))
    shape = (min(int(np.ceil(size[1] / cell)), 1024), min(int(np.ceil(size[0] / cell)), 1024))
    pixels = 0.5 * abs(view.projection[0][0]) * view.window[2] / at.w[rows]  # a unit of camera space
    hidden = np.full(len(rows), 1.0)
    if opacities is not None and scales is not None:
        wide = np.sort(scales[rows].astype(np.float64), axis=1)[:, 1:].prod(axis=1) * pixels**2
        hidden = opacities[rows] * np.minimum(2 * np.pi * wide / cell**2, 1)
    row = np.minimum((at.y[rows] - box[1]) / size[1] * shape[0], shape[0] - 1).astype(int)
    column = np.minimum((at.x[rows] - box[0]) / size[0] * shape[1], shape[1] - 1).astype(int)
    depth = view.depth(np.asarray(points, dtype=np.float64)[rows])
    picture = _median_depths(row * shape[1] + column, depth, hidden, shape)
    if not np.isfinite(picture).any():
        picture = _median_depths(row * shape[1] + column, depth, np.ones(len(rows)), shape)
    reach = 2 * float(cell / np.median(pixels))
    return FrontSurface(
        box,
        shape,
        _filled(_least_around(picture)).astype("<f4").tobytes(),
        reach if thickness is None else thickness,
        reach if falloff is None else falloff,
    )


def _spline(
    x: Floats, low: float, high: float, count: int
) -> tuple[tuple[tuple[NDArray[np.intp], ...], tuple[Floats, ...]], tuple[Floats, ...]]:
    """Return three cells (N,) about each coordinate, their B-spline weights, and the weights' derivatives."""
    scale = x.dtype.type(count / (high - low))
    t = (x - x.dtype.type(low)) * scale - x.dtype.type(0.5)
    middle = np.rint(t)
    d = t - middle
    cells = tuple(np.clip(middle + k, 0, count - 1).astype(np.intp) for k in (-1, 0, 1))
    weights = (0.5 * (0.5 - d) ** 2, 0.75 - d * d, 0.5 * (0.5 + d) ** 2)
    return (cells, weights), ((d - 0.5) * scale, -2 * d * scale, (d + 0.5) * scale)


def _median_depths(
    cell: NDArray[np.integer], depth: Floats, hidden: Floats, shape: tuple[int, int]
) -> NDArray[np.float64]:
    """Return for each cell the depth behind which less than half of the light comes from; else inf."""
    order = np.lexsort((depth, cell))
    cell, depth = cell[order], depth[order]
    passed = np.cumsum(-np.log(np.maximum(1 - hidden[order], 1e-9)))
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    before = np.concatenate([[0.0], passed])[first]
    passed -= np.repeat(before, np.diff(first, append=len(cell)))
    dark = np.flatnonzero(passed >= np.log(2) - 1e-9)
    picture = np.full(shape[0] * shape[1], np.inf)
    picture[cell[dark][::-1]] = depth[dark][::-1]  # the first one is written last
    return picture.reshape(shape)


def _least_around(picture: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least of each cell and its eight neighbours."""
    for axis in (0, 1):
        padded = np.pad(picture, [(1, 1) if k == axis else (0, 0) for k in (0, 1)], constant_values=np.inf)
        parts = [np.take(padded, np.arange(picture.shape[axis]) + k, axis=axis) for k in (0, 1, 2)]
        picture = np.minimum(np.minimum(parts[0], parts[1]), parts[2])
    return picture


def _filled(picture: NDArray[np.float64]) -> NDArray[np.float64]:
    """Let cells that are not finite take the least of their neighbours until there are none left."""
    while not np.isfinite(picture).all():
        picture = np.where(np.isfinite(picture), picture, _least_around(picture))
    return picture
