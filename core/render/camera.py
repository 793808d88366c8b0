"""A pinhole or orthographic camera in the conventions of OpenGL and of Blender's view matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Vector = Floats | Sequence[float]


@dataclass(frozen=True, eq=False)
class Camera:
    """Where a picture is taken from, and how it maps to pixels.

    view : (4, 4) float64, world -> view, a rigid motion; the camera looks along -z, y is up
    projection : (4, 4) float64, view -> OpenGL clip space (depth -1 near, 1 far); its last row is
        (0, 0, -1, 0) in perspective and (0, 0, 0, 1) in orthographic cameras
    width, height : pixels; pixel (0, 0) is the bottom left one, its centre lies at (0.5, 0.5)

    In Blender: ``Camera(np.array(rv3d.view_matrix), np.array(rv3d.window_matrix), width, height)``, or what
    `Object.calc_matrix_camera` returns.
    """

    view: NDArray[np.float64]
    projection: NDArray[np.float64]
    width: int
    height: int

    def __post_init__(self) -> None:
        for name in ("view", "projection"):
            if getattr(self, name).shape != (4, 4):
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, expected (4, 4)")

    @classmethod
    def perspective(
        cls,
        eye: Vector,
        target: Vector,
        up: Vector,
        fov_y: float,
        width: int,
        height: int,
        near: float,
        far: float,
    ) -> Camera:
        """Look from ``eye`` at ``target`` (metres, world) with the vertical angle ``fov_y``, radians."""
        cotangent = 1 / np.tan(fov_y / 2)
        projection = np.zeros((4, 4))
        projection[0, 0], projection[1, 1] = cotangent * height / width, cotangent
        projection[2, 2:] = (near + far) / (near - far), 2 * near * far / (near - far)
        projection[3, 2] = -1
        return cls(look_at(eye, target, up), projection, width, height)

    @classmethod
    def orthographic(
        cls,
        eye: Vector,
        target: Vector,
        up: Vector,
        span_y: float,
        width: int,
        height: int,
        near: float,
        far: float,
    ) -> Camera:
        """Look from ``eye`` towards ``target``; the picture is ``span_y`` metres high."""
        projection = np.diag([2 * height / (span_y * width), 2 / span_y, 2 / (near - far), 1.0])
        projection[2, 3] = (near + far) / (near - far)
        return cls(look_at(eye, target, up), projection, width, height)

    @property
    def is_perspective(self) -> bool:
        """Whether distant things look smaller."""
        return bool(self.projection[3, 2] != 0)

    @property
    def position(self) -> NDArray[np.float64]:
        """The eye in the world, (3,), metres."""
        return -np.linalg.solve(self.view[:3, :3], self.view[:3, 3])

    @property
    def forward(self) -> NDArray[np.float64]:
        """The direction the camera looks along in the world, (3,), unit."""
        axis = -self.view[2, :3]
        return axis / np.linalg.norm(axis)

    @property
    def depth_range(self) -> tuple[float, float]:
        """View depths (distances along `forward`, metres) of the near and the far clipping plane.

        The far one is infinite where a matrix in single precision says so (far / near above about 1e7).
        """
        scale, offset = self.projection[2, 2:].tolist()
        if self.is_perspective:
            return offset / (scale - 1), offset / (scale + 1) if scale < -1 else math.inf
        return (1 + offset) / scale, (offset - 1) / scale


def look_at(eye: Vector, target: Vector, up: Vector) -> NDArray[np.float64]:
    """Return the view matrix (4, 4) of a camera at ``eye`` that has ``target`` in its centre."""
    eye = np.asarray(eye, dtype=np.float64)
    back = eye - np.asarray(target, dtype=np.float64)
    back /= np.linalg.norm(back)
    right = np.cross(np.asarray(up, dtype=np.float64), back)
    right /= np.linalg.norm(right)
    view = np.eye(4)
    view[:3, :3] = right, np.cross(back, right), back
    view[:3, 3] = -view[:3, :3] @ eye
    return view
