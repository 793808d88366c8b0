"""Weights taken over from a bound mesh, each splat's from the closest place on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import RigError

Floats = NDArray[np.floating]
F64 = NDArray[np.float64]
CHUNK = 16384


def transfer_weights(
    positions: Floats,
    vertices: Floats,
    triangles: NDArray[np.integer],
    vertex_weights: Floats,
    influences: int = 4,
) -> tuple[NDArray[np.int32], F64]:
    """Interpolate the weights of a mesh at the places closest to splats.

    Parameters
    ----------
    positions : (N, 3) metres, in the space of the mesh
    vertices, triangles : (V, 3) metres and (T, 3) of the mesh
    vertex_weights : (V, M) of its vertex groups, >= 0
    influences : kept for each splat at most

    Returns
    -------
    indices, weights : (N, K) int32, float64; strongest first, as much weight as the mesh has there. Give them
        to `make_skin`

    Raises
    ------
    RigError : the mesh has no faces, or the weights do not fit it
    """
    if not len(triangles):
        raise RigError("The proxy mesh has no faces; choose a mesh with a surface")
    if len(vertex_weights) != len(vertices):
        raise RigError(
            f"The proxy mesh has {len(vertices)} vertices but weights for {len(vertex_weights)}; "
            "apply its modifiers first"
        )
    count = min(influences, vertex_weights.shape[1])
    indices, kept = np.empty((len(positions), count), np.int32), np.empty((len(positions), count))
    triangle, place, _ = closest_on_mesh(positions, vertices, triangles)
    for start in range(0, len(positions), CHUNK):
        rows = slice(start, start + CHUNK)
        corners = np.asarray(vertex_weights)[triangles[triangle[rows]]]
        found = np.einsum("nc,ncm->nm", place[rows], corners)
        order = np.argsort(-found, axis=1, kind="stable")[:, :count]
        indices[rows], kept[rows] = order, np.take_along_axis(found, order, axis=1)
    return indices, kept


def closest_on_mesh(
    points: Floats, vertices: Floats, triangles: NDArray[np.integer]
) -> tuple[NDArray[np.intp], F64, F64]:
    """Return the triangle (N,) closest to points (N, 3), barycentric coordinates (N, 3), distance (N,).

    Exact: triangles of about the same size are tried in the order of their centres until no farther one can
    be closer.
    """
    from scipy.spatial import KDTree

    points = np.asarray(points, dtype=np.float64)
    corners = np.asarray(vertices, dtype=np.float64)[triangles]
    centres = corners.mean(axis=1)
    sizes = np.linalg.norm(corners - centres[:, None], axis=-1).max(axis=1)
    best, which = np.full(len(points), np.inf), np.zeros(len(points), dtype=np.intp)
    classes = np.round(np.log2(np.maximum(sizes, 1e-12)))
    for size in np.unique(classes):
        members = np.flatnonzero(classes == size)
        tree, reach, k = KDTree(centres[members]), float(sizes[members].max()), 4
        open_rows = np.arange(len(points))
        while len(open_rows):
            k = min(2 * k, len(members))
            unfinished = [
                _try_nearest(rows, points, corners, members, tree, k, reach, best, which)
                for rows in np.array_split(open_rows, -(-len(open_rows) * k // (8 * CHUNK)))
            ]
            open_rows = np.concatenate(unfinished)
    place = _closest_places(points, corners[which])
    return which, place, best


def _try_nearest(
    rows: NDArray[np.intp],
    points: F64,
    corners: F64,
    members: NDArray[np.intp],
    tree: object,
    k: int,
    reach: float,
    best: F64,
    which: NDArray[np.intp],
) -> NDArray[np.intp]:
    """Try the k nearest centres; note what is closer, and return the rows where others might still be."""
    away, nearest = (np.reshape(a, (len(rows), k)) for a in tree.query(points[rows], k=k))  # type: ignore[attr-defined]
    tried = members[nearest]
    flat = np.repeat(points[rows], k, axis=0)
    triangle = corners[tried.ravel()]
    found = np.linalg.norm(
        np.einsum("nc,nci->ni", _closest_places(flat, triangle), triangle) - flat, axis=1
    ).reshape(-1, k)
    slot = found.argmin(axis=1)
    distance = found[np.arange(len(rows)), slot]
    closer = distance < best[rows]
    best[rows[closer]] = distance[closer]
    which[rows[closer]] = tried[np.arange(len(rows)), slot][closer]
    return rows[:0] if k == len(members) else rows[away[:, -1] < best[rows] + reach]


def _closest_places(points: F64, corners: F64) -> F64:
    """Return the barycentric coordinates (N, 3) of the places of triangles (N, 3, 3) closest to points."""
    a, ab, ac = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    ap = points - a
    d00, d01, d11 = (ab * ab).sum(axis=1), (ab * ac).sum(axis=1), (ac * ac).sum(axis=1)
    d20, d21 = (ap * ab).sum(axis=1), (ap * ac).sum(axis=1)
    area = d00 * d11 - d01 * d01
    safe = np.where(area > 0, area, 1)
    v, w = (d11 * d20 - d01 * d21) / safe, (d00 * d21 - d01 * d20) / safe
    place = np.stack([1 - v - w, v, w], axis=1)
    outside = np.flatnonzero((area <= 0) | (place < 0).any(axis=1))
    place[outside] = _closest_on_edges(points[outside], corners[outside])
    return place


def _closest_on_edges(points: F64, corners: F64) -> F64:
    """Return the barycentric coordinates of the places of the triangles' edges closest to points."""
    place, best, rows = np.zeros((len(points), 3)), np.full(len(points), np.inf), np.arange(len(points))
    for one, other in ((0, 1), (1, 2), (2, 0)):
        start, along = corners[:, one], corners[:, other] - corners[:, one]
        t = ((points - start) * along).sum(axis=1) / np.maximum((along * along).sum(axis=1), 1e-300)
        t = np.clip(t, 0, 1)
        distance = ((points - start - t[:, None] * along) ** 2).sum(axis=1)
        closer = rows[distance < best]
        best[closer], place[closer] = distance[closer], 0
        place[closer, one], place[closer, other] = 1 - t[closer], t[closer]
    return place
