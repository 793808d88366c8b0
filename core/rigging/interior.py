"""Where joints may lie: inside the surface, and near the curve or the seam they came from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from .surface import Surface

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Interior:
    """The inside of a closed surface: its vertices (V, 3) and their outward unit normals (V, 3)."""

    vertices: F64
    normals: F64
    tree: cKDTree

    @classmethod
    def of(cls, surface: Surface, center: F64, scale: float) -> Interior:
        """Take over a surface in metres into units of `scale` around `center`."""
        vertices = (surface.vertices - center) / scale
        a, b, c = np.moveaxis(vertices[surface.faces], 1, 0)
        area = np.cross(b - a, c - a)
        normals = np.zeros_like(vertices)
        for corner in surface.faces.T:
            np.add.at(normals, corner, area)
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
        return cls(vertices, normals, cKDTree(vertices))

    def depth(self, points: F64) -> F64:
        """Depth (J,) below the surface of points (J, 3), measured at the nearest vertex; negative outside."""
        near = self.tree.query(points)[1]
        return np.einsum("ja,ja->j", self.vertices[near] - points, self.normals[near])

    def pull_inside(self, points: F64, anchors: F64, margin: float = 0.008) -> F64:
        """Points (J, 3) moved straight towards their anchors (J, 3) until they lie `margin` deep.

        Where even the anchor is not so deep (a thin limb), the deepest place on the way is taken.
        """
        ways = np.linspace(0, 1, 17)[:, None, None]
        path = points + ways * (anchors - points)  # (17, J, 3)
        depth = self.depth(path.reshape(-1, 3)).reshape(len(path), -1)
        enough = depth >= np.minimum(margin, depth.max(axis=0) - 1e-12)
        return path[np.argmax(enough, axis=0), np.arange(len(points))]
