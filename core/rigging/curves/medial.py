"""Inscribed balls of a closed surface: how thick the body is, and where its middle lies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from .surface import Surface

MIN_SEPARATION = np.deg2rad(32)  # a ball pinched between nearer touching points only fits noise
MAX_STEPS = 30


def vertex_normals(surface: Surface) -> NDArray[np.float64]:
    """Outward unit normals (V, 3), weighted by triangle area."""
    a, b, c = surface.vertices[surface.faces].transpose(1, 0, 2)
    face = np.cross(b - a, c - a)
    sums = [
        np.bincount(surface.faces.ravel(), np.repeat(face[:, k], 3), len(surface.vertices)) for k in range(3)
    ]
    normal = np.stack(sums, 1)
    return normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)


def medial_balls(surface: Surface) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shrink a ball inside the surface at each vertex until nothing of the surface is in it.

    Ma, Bae & Choi 2012 (3D medial axis point approximation using nearest neighbors and the normal field),
    with the separation-angle stop of Peters & Ledoux 2016 against noise.

    Returns
    -------
    centres : (V, 3) float64, metres, inside the surface
    radii : (V,) float64, metres
    """
    p, n = surface.vertices, -vertex_normals(surface)
    radius = np.full(len(p), max(float(np.ptp(p, axis=0).max()), 1e-300))
    tree = KDTree(p)
    edges = p[surface.faces] - p[np.roll(surface.faces, 1, axis=1)]
    spacing = float(np.linalg.norm(edges, axis=2).mean())
    active = np.arange(len(p))
    for _ in range(MAX_STEPS):
        centre = p[active] + radius[active, None] * n[active]
        distance, nearest = tree.query(centre)
        away = p[active] - p[nearest]
        squared = (away**2).sum(1)
        along = -(away * n[active]).sum(1)
        inside = (distance < radius[active] * (1 - 1e-6)) & (nearest != active) & (along > 0)
        shrunk = np.divide(squared, 2 * along, out=radius[active].copy(), where=along > 0)
        noise = (squared < (2.5 * spacing) ** 2) & (shrunk > 1.5 * np.sqrt(squared))
        fine = inside & ~noise
        radius[active[fine]] = shrunk[fine]
        active = active[fine]
        if len(active) == 0:
            break
    return p + radius[:, None] * n, radius
