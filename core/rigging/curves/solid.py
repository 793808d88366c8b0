"""Which part of space a mesh or a cloud of points fills, on a voxel grid."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

PAD = 5  # empty voxels around the content: exterior floods around it, blurs fade out in it


@dataclass(frozen=True)
class Grid:
    """Voxels of edge `voxel` (metres); voxel (i, j, k) is centred at ``origin + voxel * (i, j, k)``."""

    origin: NDArray[np.float64]
    voxel: float
    shape: tuple[int, int, int]

    @classmethod
    def around(cls, points: NDArray[np.floating], voxel: float, margin: float = 0.0) -> Grid:
        """Cover points (N, 3) and `margin` metres around them, with PAD empty voxels on every side."""
        low, high = points.min(0) - margin, points.max(0) + margin
        size = np.ceil((high - low) / voxel).astype(int) + 1 + 2 * PAD
        return cls((low + high) / 2 - voxel * (size - 1) / 2, voxel, tuple(size.tolist()))

    def cells(self, points: NDArray[np.floating]) -> NDArray[np.int64]:
        """Voxel (N, 3) that holds each point, the border's where a point lies outside."""
        index = np.rint((points - self.origin) / self.voxel).astype(np.int64)
        return np.clip(index, 0, np.array(self.shape) - 1)

    def centres(self, cells: NDArray[np.integer]) -> NDArray[np.float64]:
        """Centres (M, 3) of voxels (M, 3)."""
        return self.origin + self.voxel * cells


# ---------------------------------------------------------------- meshes


def directed_edges(faces: NDArray[np.integer]) -> NDArray[np.int64]:
    """All 3T edges (3T, 2) of triangles (T, 3), along their orientation."""
    return np.concatenate([faces[:, [a, b]] for a, b in pairwise((0, 1, 2, 0))]).astype(np.int64)


def boundary_edges(faces: NDArray[np.integer], count: int) -> NDArray[np.int64]:
    """Directed edges (E, 2) whose reverse is missing, as often as it is missing: a cycle in the sense of
    homology.
    """
    edges = directed_edges(faces)
    low, high = edges.min(1), edges.max(1)
    keys, inverse = np.unique(low * count + high, return_inverse=True)
    surplus = np.zeros(len(keys), np.int64)
    np.add.at(surplus, inverse, np.where(edges[:, 0] == low, 1, -1))
    pairs = np.stack([keys // count, keys % count], 1)
    pairs[surplus < 0] = pairs[surplus < 0, ::-1]
    return np.repeat(pairs, np.abs(surplus), axis=0)


def close_mesh(
    vertices: NDArray[np.float64], faces: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Weld, cap every hole by a fan to its centre and turn every part outward.

    A fan over the boundary of any consistently oriented triangle soup cancels that boundary, so that
    winding numbers are whole everywhere, however wild its holes are.

    Parameters
    ----------
    vertices : (V, 3) metres
    faces : (T, 3), oriented consistently within each part

    Returns
    -------
    vertices : (V', 3), welded, followed by one centre a hole
    faces : (T', 3), without boundary, every part of volume >= 0
    """
    _, first, welded = np.unique(vertices, axis=0, return_index=True, return_inverse=True)
    vertices, faces = vertices[first], welded.ravel()[faces]
    faces = faces[(faces != np.roll(faces, 1, axis=1)).all(1)]
    open_edges = boundary_edges(faces, len(vertices))
    if len(open_edges):
        holes, label = _labels(open_edges, len(vertices))
        members = np.unique(open_edges)
        tally = np.bincount(label[members], minlength=holes)
        used = np.flatnonzero(tally)
        sums = [np.bincount(label[members], vertices[members, axis], minlength=holes) for axis in range(3)]
        centre_of = np.full(holes, -1)
        centre_of[used] = len(vertices) + np.arange(len(used))
        vertices = np.concatenate([vertices, np.stack(sums, 1)[used] / tally[used, None]])
        fans = np.stack([open_edges[:, 1], open_edges[:, 0], centre_of[label[open_edges[:, 0]]]], 1)
        faces = np.concatenate([faces, fans])
    _, part = _labels(directed_edges(faces), len(vertices))
    a, b, c = vertices[faces.T]
    volume = np.bincount(
        part[faces[:, 0]], np.einsum("ij,ij->i", a, np.cross(b, c)), minlength=part.max() + 1
    )
    inverted = volume[part[faces[:, 0]]] < 0
    faces[inverted] = faces[inverted, ::-1]
    return vertices, faces


def _labels(edges: NDArray[np.int64], count: int) -> tuple[int, NDArray[np.int32]]:
    graph = sparse.coo_matrix((np.ones(len(edges)), edges.T), shape=(count, count))
    return connected_components(graph, directed=False)


def fill_mesh(vertices: NDArray[np.float64], faces: NDArray[np.int64], grid: Grid) -> NDArray[np.bool_]:
    """Voxels (X, Y, Z) whose centre has a positive winding number in a mesh without boundary.

    Scan conversion along z. Which triangle a column hits is decided per edge with the edge's ends in one
    order, so that neighbours agree to the last bit and no column leaks.
    """
    # Any irregular shift of the columns keeps vertices of regular meshes off them.
    p = (vertices - grid.origin) / grid.voxel + np.array([1.234567e-4, 2.345678e-4, 0.0])
    tri = p[faces]  # (T, 3, 3)
    low = np.clip(np.ceil(tri[:, :, :2].min(1)).astype(np.int64), 0, np.array(grid.shape[:2]))
    high = np.clip(np.floor(tri[:, :, :2].max(1)).astype(np.int64), -1, np.array(grid.shape[:2]) - 1)
    span = np.maximum(high - low + 1, 0)
    crossings = np.zeros((*grid.shape[:2], grid.shape[2] + 1), np.int16)
    areas = span.prod(1)
    for start, stop in _chunks(areas, 4_000_000):
        n = areas[start:stop]
        t = np.repeat(np.arange(start, stop), n)
        local = np.arange(len(t)) - np.repeat(np.cumsum(n) - n, n)
        xy = np.stack([low[t, 0] + local // span[t, 1], low[t, 1] + local % span[t, 1]], 1)
        left = np.stack([_left_of(p, faces[t, k], faces[t, (k + 1) % 3], xy) for k in range(3)])
        sign = left.all(0).astype(np.int16) - (~left).all(0)
        hit = sign != 0
        t, xy, sign = t[hit], xy[hit], sign[hit]
        a, b, c = tri[t].transpose(1, 0, 2)
        normal = np.cross(b - a, c - a)
        height = np.divide(
            ((xy - a[:, :2]) * normal[:, :2]).sum(1),
            normal[:, 2],
            out=np.zeros(len(t)),
            where=normal[:, 2] != 0,
        )
        k = np.clip(np.ceil(a[:, 2] - height), 0, grid.shape[2]).astype(np.int64)
        np.add.at(crossings, (xy[:, 0], xy[:, 1], k), -sign)  # going up, a surface that looks down is entered
    return np.cumsum(crossings[:, :, :-1], axis=2, dtype=np.int16) > 0


def _chunks(sizes: NDArray[np.int64], limit: int) -> list[tuple[int, int]]:
    """Ranges of consecutive items whose sizes sum to about `limit`."""
    block = np.cumsum(sizes) // limit
    cuts = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(sizes)]
    return list(pairwise(cuts))


def _left_of(
    p: NDArray[np.float64], a: NDArray[np.int64], b: NDArray[np.int64], xy: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether columns (M, 2) lie left of the edges a -> b (M,), with the edge's ends taken in one order."""
    first, second = p[np.minimum(a, b), :2], p[np.maximum(a, b), :2]
    d, e = second - first, xy - first
    return (d[:, 0] * e[:, 1] - d[:, 1] * e[:, 0] >= 0) == (a < b)


# ---------------------------------------------------------------- points


def fill_points(points: NDArray[np.float64], radius: NDArray[np.float64], grid: Grid) -> NDArray[np.float32]:
    """Depth (X, Y, Z) in metres of voxels within what balls around points enclose; the surface is at zero.

    A shell with openings (a garment, a tube) encloses what is seen from outside through few of them.

    The balls are taken back by half their radius: all of it would leave nothing of a sheet or a wire.

    Parameters
    ----------
    points : (N, 3), on or under a surface
    radius : (N,) metres, balls that overlap where the points sample one surface
    grid : covers the balls
    """
    solid = fill_openings(fill_cavities(_clearance(points, radius, grid) < 0))
    depth = np.asarray(ndimage.distance_transform_edt(solid)) * grid.voxel
    return (depth - np.median(radius) / 2).astype(np.float32)


def _clearance(points: NDArray[np.float64], radius: NDArray[np.float64], grid: Grid) -> NDArray[np.float32]:
    """Distance (X, Y, Z) of voxel centres to the nearest point minus that point's radius, inf far away."""
    reach = float(radius.max()) / grid.voxel + 1
    near = np.ones(grid.shape, bool)
    near[tuple(grid.cells(points).T)] = False
    near = np.asarray(ndimage.distance_transform_edt(near)) <= reach
    cells = np.argwhere(near)
    distance, index = KDTree(points).query(grid.centres(cells))
    clearance = np.full(grid.shape, np.inf, np.float32)
    clearance[near] = distance - radius[index]
    return clearance


def fill_cavities(solid: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Solid with everything that the exterior cannot reach (6-connected) filled."""
    labelled: Any = ndimage.label(~solid)
    label: NDArray[np.int32] = labelled[0]
    return label != label[0, 0, 0]


def fill_openings(solid: NDArray[np.bool_], directions: int = 24) -> NDArray[np.bool_]:
    """Solid with the voxels filled from which at least `directions` of the 26 grid directions meet it.

    Inside an open tube all but the two along its axis do; between arm and trunk or legs not even 22.
    """
    met = np.zeros(solid.shape, np.uint8)
    for x, y, z in product((-1, 0, 1), repeat=3):
        if x or y or z:
            met += _sees(solid, (x, y, z))
    return solid | (met >= directions)


def _sees(solid: NDArray[np.bool_], direction: tuple[int, int, int]) -> NDArray[np.bool_]:
    """Voxels (X, Y, Z) that are solid or from which a ray along a grid direction meets the solid."""
    axis = next(a for a in range(3) if direction[a])
    result = solid.copy()
    layers = np.moveaxis(result, axis, 0)
    if direction[axis] > 0:
        layers = layers[::-1]
    across = [direction[a] for a in range(3) if a != axis]
    here = tuple(slice(max(-d, 0), n + min(-d, 0)) for d, n in zip(across, layers.shape[1:], strict=True))
    there = tuple(slice(max(d, 0), n + min(d, 0)) for d, n in zip(across, layers.shape[1:], strict=True))
    for next_layer, layer in pairwise(layers):
        layer[here] |= next_layer[there]
    return result


def sample_mesh(
    vertices: NDArray[np.float64], faces: NDArray[np.int64], spacing: float
) -> NDArray[np.float64]:
    """Points (M, 3) on all triangles, no further apart than `spacing`."""
    tri = vertices[faces]
    longest = np.linalg.norm(tri - np.roll(tri, 1, axis=1), axis=2).max(1)
    parts = np.maximum(np.ceil(longest / spacing).astype(int), 1)
    samples = []
    for n in np.unique(parts):
        i, j = np.divmod(np.arange((n + 1) ** 2), n + 1)
        i, j = i[i + j <= n], j[i + j <= n]
        weights = np.stack([n - i - j, i, j], 1) / n
        samples.append(np.einsum("wk,tkd->twd", weights, tri[parts == n]).reshape(-1, 3))
    return np.concatenate(samples)
