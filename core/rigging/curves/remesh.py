"""Collapsing the short edges of a triangle mesh that shrinks."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from .solid import directed_edges


@dataclass(frozen=True)
class Collapsed:
    """A mesh after edge collapses.

    vertices : (W, 3) float64
    faces : (U, 3) int32
    image : (V,) vertex that each former vertex went to
    stuck : (W,) bool, with two or more short edges that could not collapse: the mesh is a thin tube here
    """

    vertices: NDArray[np.float64]
    faces: NDArray[np.int32]
    image: NDArray[np.int64]
    stuck: NDArray[np.bool_]


def collapse_short_edges(
    vertices: NDArray[np.float64], faces: NDArray[np.int32], shortest: float
) -> Collapsed:
    """Collapse edges below a length to their middle, shortest first, keeping a closed 2-manifold of the
    same genus.

    An edge collapses only if its ends have exactly two neighbours in common (the link condition, Dey et
    al. 1999).

    Parameters
    ----------
    vertices : (V, 3); faces : (T, 3), a closed manifold
    shortest : metres
    """
    x = vertices.tolist()
    triangles: list[list[int] | None] = faces.tolist()
    around: list[set[int]] = [set() for _ in x]
    near: list[set[int]] = [set() for _ in x]
    for k, (a, b, c) in enumerate(faces.tolist()):
        for v, others in ((a, (b, c)), (b, (a, c)), (c, (a, b))):
            around[v].add(k)
            near[v].update(others)
    limit = shortest**2
    heap = _short_edges(vertices, faces, limit)
    heapify(heap)
    parent = list(range(len(x)))
    alive = len(x)
    while heap and alive > 4:
        length, a, b = heappop(heap)
        if parent[a] != a or parent[b] != b or length != _squared(x[a], x[b]):
            continue  # an end has gone or moved since; a moved one was pushed again
        if len(near[a] & near[b]) != 2:
            continue
        alive -= 1
        parent[b] = a
        x[a] = [(p + q) / 2 for p, q in zip(x[a], x[b], strict=True)]
        for k in around[a] & around[b]:
            for v in triangles[k] or ():
                around[v].discard(k)
            triangles[k] = None
        for k in around[b]:
            triangle = triangles[k]
            if triangle is not None:
                triangle[triangle.index(b)] = a
        around[a] |= around[b]
        for v in near[b]:
            near[v].discard(b)
            if v != a:
                near[v].add(a)
                near[a].add(v)
        for v in near[a]:
            squared = _squared(x[a], x[v])
            if squared < limit:
                heappush(heap, (squared, min(a, v), max(a, v)))
    return _compact(np.array(x), triangles, np.array(parent), limit)


def _squared(p: list[float], q: list[float]) -> float:
    return (p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 + (p[2] - q[2]) ** 2


def _short_edges(
    x: NDArray[np.float64], faces: NDArray[np.int32], limit: float
) -> list[tuple[float, int, int]]:
    edges = np.unique(np.sort(directed_edges(faces), axis=1), axis=0)
    p = x.tolist()
    candidates = edges[((x[edges[:, 0]] - x[edges[:, 1]]) ** 2).sum(1) < 1.0001 * limit]
    return [(_squared(p[a], p[b]), a, b) for a, b in candidates.tolist()]


def _compact(
    x: NDArray[np.float64], triangles: list[list[int] | None], parent: NDArray[np.int64], limit: float
) -> Collapsed:
    while (parent[parent] != parent).any():
        parent = parent[parent]
    kept = np.flatnonzero(parent == np.arange(len(x)))
    number = np.full(len(x), -1)
    number[kept] = np.arange(len(kept))
    faces = number[np.array([t for t in triangles if t is not None])].astype(np.int32)
    x = x[kept]
    edges = np.unique(np.sort(directed_edges(faces), axis=1), axis=0)
    short = ((x[edges[:, 0]] - x[edges[:, 1]]) ** 2).sum(1) < limit
    stuck = np.bincount(edges[short].ravel(), minlength=len(x)) >= 2
    return Collapsed(x, faces, number[parent], stuck)
