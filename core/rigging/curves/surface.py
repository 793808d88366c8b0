"""One closed surface around a capture's rest pose, whatever it is made of: mesh, parts, sheets or
Gaussians.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, sparse
from scipy.spatial import KDTree

from ...progress import Progress, no_progress
from .components import bridge
from .isosurface import marching_cubes
from .solid import Grid, close_mesh, directed_edges, fill_cavities, fill_mesh, fill_points, sample_mesh

STAGE = "Surface"
VERTEX_BUDGET = 8000
MAX_VOXELS = 3_000_000
MIN_OPACITY = 0.1


@dataclass(frozen=True)
class Surface:
    """A closed, orientable 2-manifold of triangles with outward normals, in one piece.

    vertices : (V, 3) float64, metres
    faces : (T, 3) int32, anticlockwise as seen from outside
    """

    vertices: NDArray[np.float64]
    faces: NDArray[np.int32]


def closed_surface(
    points: NDArray[np.floating],
    faces: NDArray[np.integer] | None = None,
    scales: NDArray[np.floating] | None = None,
    opacities: NDArray[np.floating] | None = None,
    *,
    progress: Progress = no_progress,
) -> Surface:
    """Wrap points or a mesh into one closed surface of about 8000 evenly spread vertices.

    The body is filled on a voxel grid (a mesh by winding numbers after its holes are capped, points by
    balls that enclose an interior, sheets by their own layer), parts are bridged where they are nearest,
    and the boundary is extracted as a manifold and smoothed (Taubin 1995).

    Parameters
    ----------
    points : (N, 3) finite, metres, N >= 1; vertices of the mesh or centres of Gaussians
    faces : (T, 3) triangles, may be open, of many parts and self-intersecting; None for a cloud, and the
        points of a mesh without any area are taken for one
    scales : (N, 3) standard deviations of the Gaussians, metres
    opacities : (N,) 0..1; Gaussians below 0.1 are left out
    progress : called with "Surface"

    Returns
    -------
    Surface
    """
    points = np.asarray(points, np.float64)
    radius = np.zeros(0)
    body, corners = None, np.asarray([] if faces is None else faces, np.int64).reshape(-1, 3)
    if len(corners):
        body = close_mesh(points, corners)
        if not len(body[1]):
            body = None
    if body is not None:
        extent = points[np.unique(corners)]
    else:
        extent = _reliable(points, opacities)
        radius = _ball_radii(extent, None if scales is None else scales)
    longest = max(float(np.ptp(extent, axis=0).max()), float(2 * radius.max(initial=0)), 1e-9)
    voxel = _coarsest(longest / 96, extent, radius)
    attempt = 0
    while True:
        progress(STAGE, 0.1 + 0.25 * attempt)
        grid = Grid.around(extent, voxel, max(float(radius.max(initial=0)), 2.5 * voxel) + voxel)
        field = _mesh_field(extent, body, grid) if body else _point_field(extent, radius, grid)
        progress(STAGE, 0.2 + 0.25 * attempt)
        count = _vertex_count(field)
        if attempt == 2 or 0.7 * VERTEX_BUDGET < count < 1.1 * VERTEX_BUDGET:
            break
        voxel = _coarsest(voxel * float(np.clip(np.sqrt(count / VERTEX_BUDGET), 0.5, 4)), extent, radius)
        attempt += 1
    field = bridge(field, progress)
    field[fill_cavities(field > 0.5) & (field <= 0.5)] = 1.0
    vertices, triangles = marching_cubes(field, 0.5)
    vertices = smooth(vertices, triangles, 3)
    progress(STAGE, 1.0)
    return Surface(grid.origin + grid.voxel * vertices, triangles)


def _reliable(points: NDArray[np.float64], opacities: NDArray[np.floating] | None) -> NDArray[np.float64]:
    """Points (M, 3) that are neither transparent nor far from all others; all where that would leave
    nothing.
    """
    if opacities is not None and (opacities >= MIN_OPACITY).any():
        points = points[opacities >= MIN_OPACITY]
    if len(points) > 100:
        distance = KDTree(points).query(points, 21)[0][:, 1:].mean(1)
        points = points[distance <= distance.mean() + 3 * distance.std()]
    return points


def _ball_radii(points: NDArray[np.float64], scales: NDArray[np.floating] | None) -> NDArray[np.float64]:
    """Radius (N,) of the ball each point stands for: reaches its eighth distinct neighbour."""
    distinct = np.unique(points, axis=0)
    if len(distinct) == 1:
        size = 1e-2 if scales is None else max(float(np.median(np.max(scales, 1))), 1e-6)
        return np.full(len(points), size)
    k = min(9, len(distinct))
    radius = KDTree(distinct).query(points, k)[0][:, -1]
    return np.minimum(radius, 2 * np.median(radius))


def _coarsest(voxel: float, points: NDArray[np.float64], radius: NDArray[np.float64]) -> float:
    """Voxel edge of at least `voxel` whose grid stays within MAX_VOXELS."""
    while (
        np.prod(
            np.array(
                Grid.around(points, voxel, max(float(radius.max(initial=0)), 2.5 * voxel) + voxel).shape,
                float,
            )
        )
        > MAX_VOXELS
    ):
        voxel *= 1.1
    return voxel


def _mesh_field(
    points: NDArray[np.float64], body: tuple[NDArray[np.float64], NDArray[np.int64]], grid: Grid
) -> NDArray[np.float32]:
    """Filled share of each voxel (X, Y, Z), blurred a little, sheets and wires thickened to two voxels."""
    x, y, z = grid.shape
    fine = Grid(grid.origin - grid.voxel / 4, grid.voxel / 2, (2 * x, 2 * y, 2 * z))
    share = fill_mesh(*body, fine).reshape(x, 2, y, 2, z, 2).mean((1, 3, 5), dtype=np.float32)
    field: NDArray[np.float32] = np.asarray(ndimage.gaussian_filter(share, 0.6), np.float32)
    samples = sample_mesh(*body, grid.voxel)
    gap = np.asarray(ndimage.distance_transform_edt(field <= 0.5))
    bare = np.zeros(grid.shape, bool)
    bare[tuple(grid.cells(samples).T)] = True
    bare &= gap > 2.5  # corners that the blur rounds off are nearer
    if bare.any():
        near = np.asarray(ndimage.distance_transform_edt(~bare)) < 1.5
        layer = ndimage.gaussian_filter(near.astype(np.float32), 0.5)
        field = np.maximum(field, np.asarray(layer, np.float32))
    return field


def _point_field(points: NDArray[np.float64], radius: NDArray[np.float64], grid: Grid) -> NDArray[np.float32]:
    """Soft mask (X, Y, Z), 0.5 on the surface."""
    depth = fill_points(points, np.maximum(radius, 2.5 * grid.voxel), grid)
    mask = np.clip(0.5 + depth / (2 * grid.voxel), 0, 1)
    return np.asarray(ndimage.gaussian_filter(mask, 0.5), np.float32)


def _vertex_count(field: NDArray[np.float32]) -> int:
    """Number of vertices marching cubes will give."""
    inside = field > 0.5
    return sum(int(np.count_nonzero(np.diff(inside, axis=axis))) for axis in range(3))


def neighbour_means(faces: NDArray[np.integer], count: int) -> sparse.csr_matrix:
    """Matrix (V, V) that averages a closed mesh's vertex values over their neighbours."""
    edges = directed_edges(faces)
    links = sparse.csr_matrix((np.ones(len(edges)), edges.T), shape=(count, count))
    return sparse.diags(1 / np.maximum(np.asarray(links.sum(1)).ravel(), 1)) @ links


def smooth(vertices: NDArray[np.float64], faces: NDArray[np.integer], passes: int) -> NDArray[np.float64]:
    """Smooth (V, 3) without shrinking (Taubin 1995, lambda 0.5, mu -0.53)."""
    mean = neighbour_means(faces, len(vertices))
    for step in (0.5, -0.53) * passes:
        vertices = vertices + step * (mean @ vertices - vertices)
    return vertices
