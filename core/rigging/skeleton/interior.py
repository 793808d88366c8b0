"""Where joints may lie: inside the surface, as the union of the balls inscribed in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from ..curves.medial import medial_balls, vertex_normals
from ..curves.surface import Surface

F64 = NDArray[np.float64]
MARGIN = 0.008  # of the diagonal: how deep a joint is to lie where the body is thick enough
NEARBY = 32  # balls looked at first
SHALLOWEST = 0.5  # of a ball's radius: the depth asked for where it is not


@dataclass(frozen=True)
class Interior:
    """The inside of a closed surface: balls that touch it from within.

    centers : (V, 3); reach : (V,) radius of each ball less the depth wanted; tree : of the centres
    """

    centers: F64
    reach: F64
    tree: KDTree

    @classmethod
    def of(cls, surface: Surface, center: F64, scale: float) -> Interior:
        """Take over a surface in metres into units of `scale` around `center`."""
        centres, radii = medial_balls(surface)
        distance, nearest = KDTree(surface.vertices).query(centres)
        outward = np.einsum("va,va->v", surface.vertices[nearest] - centres, vertex_normals(surface)[nearest])
        edges = surface.vertices[surface.faces] - surface.vertices[np.roll(surface.faces, 1, axis=1)]
        sag = np.linalg.norm(edges, axis=2).mean() / np.sqrt(
            3
        )  # triangles come this much nearer than vertices
        radii = np.sqrt(np.maximum(np.minimum(radii, distance) ** 2 - sag**2, 0))
        sound = (outward > 0) & (radii > 0.5 * sag)
        if not sound.any():
            sound = radii >= radii.max()
        centers, radii = (centres[sound] - center) / scale, radii[sound] / scale
        return cls(centers, radii - np.minimum(MARGIN, SHALLOWEST * radii), KDTree(centers))

    def pull_inside(self, points: F64) -> F64:
        """Points (J, 3) moved the shortest way to where they lie `MARGIN` deep, or half a ball's radius."""
        pulled = np.array(points)
        near = self.tree.query(points, min(NEARBY, len(self.reach)))[1].reshape(len(points), -1)
        deep = np.linalg.norm(points[:, None] - self.centers[near], axis=-1) <= self.reach[near]
        for k in np.flatnonzero(~deep.any(axis=1)):
            away = points[k] - self.centers
            distance = np.linalg.norm(away, axis=1)
            best = np.argmin(distance - self.reach)
            if distance[best] > self.reach[best]:
                pulled[k] = self.centers[best] + away[best] * (self.reach[best] / distance[best])
        return pulled
