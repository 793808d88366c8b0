"""The view a gesture was drawn in: object space to pixels, and the derivative of that."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..errors import SelectionError
from ..thin_product import thin_product

Floats = NDArray[np.floating]
Matrix: TypeAlias = tuple[tuple[float, ...], ...]
# Points this much of the homogeneous coordinate's slope in front of the eye still count as in front.
NEAR = 1e-6


class Projected(NamedTuple):
    """Points in a view; coordinates of points that are not seen are -inf.

    x, y : (N,) pixels; (0, 0) is the bottom left corner of the region, y is up
    w : (N,) homogeneous coordinate, positive in front of the eye (1 where not seen)
    seen : (N,) bool, in front of the eye and finite; points outside the window are seen
    """

    x: Floats
    y: Floats
    w: Floats
    seen: NDArray[np.bool_]

    def take(self, rows: NDArray[np.intp]) -> Projected:
        """Return the given points, all of which are seen."""
        seen = np.broadcast_to(np.True_, len(rows))
        return Projected(self.x.take(rows), self.y.take(rows), self.w.take(rows), seen)


@dataclass(frozen=True)
class Viewpoint:
    """A perspective or orthographic view of an object.

    view : 4x4, object -> camera space (the camera looks along -z, y is up); in Blender
        ``region_3d.view_matrix @ object.matrix_world``
    projection : 4x4, camera -> OpenGL clip space; in Blender ``region_3d.window_matrix``
    window : x, y, width, height of the region, pixels, y up; in Blender
        ``(0, 0, region.width, region.height)``

    Any array of the right shape is taken; floats are kept, so that viewpoints compare and hash by value.

    Raises
    ------
    SelectionError : wrong shapes, values that are not finite, or a window without area
    """

    view: Matrix
    projection: Matrix
    window: tuple[float, float, float, float]

    def __post_init__(self) -> None:
        for name, shape in (("view", (4, 4)), ("projection", (4, 4)), ("window", (4,))):
            object.__setattr__(self, name, _floats(getattr(self, name), shape, f"the viewpoint's {name}"))
        if min(self.window[2:]) <= 0:
            raise SelectionError(f"A window of {self.window[2]} x {self.window[3]} pixels shows nothing")

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """(4, 4) object -> clip space."""
        return np.array(self.projection) @ np.array(self.view)

    def project(self, points: Floats, dtype: DTypeLike = np.float64) -> Projected:
        """Return where points (N, 3) of object space are seen.

        Single precision is taken relative to the first point, so that it serves far from the origin too.
        """
        rows = self.matrix[[0, 1, 3]]
        linear, constant = rows[:, :3], rows[:, 3]
        if np.dtype(dtype) != np.float64 and len(points):
            origin = points[0] if np.isfinite(points[0]).all() else np.zeros(3, points.dtype)
            constant = constant + linear @ origin.astype(np.float64)
            points = points - origin
        with np.errstate(all="ignore"):  # points that are not finite are sorted out by `seen`
            clip = thin_product(linear.astype(dtype), np.asarray(points, dtype=dtype).T)
            clip += constant.astype(dtype)[:, None]
            w = clip[2]
            seen = w > NEAR * np.linalg.norm(self.matrix[3])
            w = np.where(seen, w, 1)
            x, y = clip[0], clip[1]
            for coordinate, start, size in zip((x, y), self.window[:2], self.window[2:], strict=True):
                coordinate /= w
                coordinate *= size / 2
                coordinate += start + size / 2
            seen &= np.isfinite(x + y)
        if not seen.all():
            x[~seen] = y[~seen] = -np.inf
        return Projected(x, y, w, seen)

    def pull_back(self, at: Projected, along_x: Floats, along_y: Floats) -> Floats:
        """Return the gradient (3, N) in object space of a function whose derivatives by pixel are given.

        The product of a row vector with the Jacobian of the projection,
        ``diag(width, height)/2 (K[:2, :3] - ndc K[3, :3]) / w`` with the clip matrix K.
        """
        left, bottom, width, height = self.window
        rows = self.matrix[[0, 1, 3], :3] * np.array([[width / 2], [height / 2], [1]])
        slopes, inverse = np.empty((3, len(along_x)), dtype=along_x.dtype), 1 / at.w
        by_x, by_y, by_w = slopes
        np.multiply(along_x, inverse, out=by_x)
        np.multiply(along_y, inverse, out=by_y)
        np.subtract(left + width / 2, at.x, out=by_w)
        by_w *= by_x
        np.subtract(bottom + height / 2, at.y, out=inverse)
        inverse *= by_y
        by_w += inverse
        return thin_product(rows.T.astype(slopes.dtype), slopes)

    def depth(self, points: Floats) -> Floats:
        """Return distances (N,) along the view axis, in units of camera space; positive ahead of the eye."""
        axis = np.array(self.view[2])
        return -(np.asarray(points) @ axis[:3] + axis[3])

    @property
    def depth_gradient(self) -> NDArray[np.float64]:
        """(3,) gradient of `depth`, the same everywhere."""
        return -np.array(self.view[2][:3])

    def panned(self, left: float, bottom: float) -> Viewpoint:
        """Return the view with the corner of its window at another place; all is seen at the pixel it was."""
        x, y, width, height = self.window
        projection = np.array(self.projection)
        projection[0] += 2 * (x - left) / width * projection[3]
        projection[1] += 2 * (y - bottom) / height * projection[3]
        return Viewpoint(self.view, projection, (left, bottom, width, height))  # type: ignore[arg-type]

    def mirrored(self, reflection: ArrayLike) -> Viewpoint:
        """Return the view a mirrored observer has of the mirrored object.

        Seen from there, the picture is the same one flipped from left to right about the window's middle.

        Parameters
        ----------
        reflection : (4, 4) reflection in object space
        """
        flip = np.diag([-1.0, 1, 1, 1])
        view = flip @ np.array(self.view) @ np.asarray(reflection, dtype=np.float64)
        return Viewpoint(view, flip @ np.array(self.projection) @ flip, self.window)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists of floats, row by row."""
        return {
            "view": [list(row) for row in self.view],
            "projection": [list(row) for row in self.projection],
            "window": list(self.window),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Viewpoint:
        """Read what `to_dict` wrote."""
        return cls(data["view"], data["projection"], data["window"])


def _floats(values: ArrayLike, shape: tuple[int, ...], name: str) -> tuple[Any, ...]:
    """Return (nested) tuples of floats of the given shape."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise SelectionError(f"Expected {' x '.join(map(str, shape))} finite numbers for {name}")
    rows = array.tolist()
    return tuple(rows) if len(shape) == 1 else tuple(tuple(row) for row in rows)
