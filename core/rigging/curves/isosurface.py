"""Marching cubes whose table is derived, not typed, and whose result is always a closed 2-manifold."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

# Corner c of a cell sits at (c & 1, c >> 1 & 1, c >> 2 & 1). A face lists its corners anticlockwise as
# seen from outside.
_FACES = ((0, 4, 6, 2), (1, 3, 7, 5), (0, 1, 5, 4), (2, 6, 7, 3), (0, 2, 3, 1), (4, 5, 7, 6))
_EDGES = tuple((c, c | 1 << axis) for axis in range(3) for c in range(8) if not c >> axis & 1)
_EDGE_OF = {frozenset(corners): e for e, corners in enumerate(_EDGES)}
_FACES_OF_EDGE = tuple(
    frozenset(f for f, face in enumerate(_FACES) if {a, b} <= set(face)) for a, b in _EDGES
)


def marching_cubes(
    field: NDArray[np.floating], level: float
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Extract the surface ``field == level`` of a grid, normals towards lower values.

    Lorensen & Cline 1987, with the ambiguous cell faces always resolved so that inside corners stay apart
    (6-connected inside): neighbouring cells agree, every edge has exactly two triangles and every vertex
    one fan.

    Parameters
    ----------
    field : (X, Y, Z) values, below `level` on the whole border of the grid
    level : the value of the surface

    Returns
    -------
    vertices : (V, 3) float64, in grid units (sample (i, j, k) is the point (i, j, k))
    faces : (T, 3) int32
    """
    inside = field > level
    vertices, ids = [], []
    count = 0
    for axis in range(3):
        low = [slice(None)] * 3
        high = [slice(None)] * 3
        low[axis], high[axis] = slice(None, -1), slice(1, None)
        cells = np.argwhere(inside[tuple(low)] != inside[tuple(high)])
        a = field[tuple(low)][tuple(cells.T)].astype(float)
        b = field[tuple(high)][tuple(cells.T)].astype(float)
        points = cells.astype(float)
        points[:, axis] += np.clip((level - a) / (b - a), 0.05, 0.95)  # no vertex doubles a grid sample
        index = np.full(field.shape, -1, np.int32)
        index[tuple(cells.T)] = count + np.arange(len(cells))
        count += len(cells)
        vertices.append(points)
        ids.append(index)
    return np.concatenate(vertices), _faces(inside, np.stack(ids))


def _faces(inside: NDArray[np.bool_], ids: NDArray[np.int32]) -> NDArray[np.int32]:
    """Triangles (T, 3) of all cells; `ids` (3, X, Y, Z) is the vertex on the grid edge that leaves a sample
    along an axis.
    """
    x, y, z = (n - 1 for n in inside.shape)
    code = np.zeros((x, y, z), np.int32)
    for c in range(8):
        i, j, k = c & 1, c >> 1 & 1, c >> 2 & 1
        code += inside[i : i + x, j : j + y, k : k + z].astype(np.int32) << c
    table, sizes = _table()
    cells = np.argwhere((code > 0) & (code < 255))
    code = code[tuple(cells.T)]
    rows = np.repeat(np.arange(len(cells)), sizes[code])
    slot = np.arange(len(rows)) - np.repeat(np.cumsum(sizes[code]) - sizes[code], sizes[code])
    edges = table[code[rows], slot]  # (T, 3)
    corner = np.array([a for a, _ in _EDGES])[edges]
    offset = np.stack([corner & 1, corner >> 1 & 1, corner >> 2 & 1], -1)
    at = cells[rows][:, None, :] + offset
    return ids[edges // 4, at[..., 0], at[..., 1], at[..., 2]]


@cache
def _table() -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Triangles of each of the 256 corner patterns, as cell edges (256, 5, 3), and their number (256,)."""
    patterns = [[t for loop in _loops(code) for t in _triangulate(loop)] for code in range(256)]
    sizes = np.array([len(p) for p in patterns])
    table = np.zeros((256, sizes.max(), 3), np.int8)
    for code, triangles in enumerate(patterns):
        table[code, : len(triangles)] = np.reshape(triangles, (-1, 3))
    return table, sizes


def _loops(code: int) -> list[list[int]]:
    """Closed polygons (of cell edges) that separate the inside corners of a pattern from the others."""
    follow = {}
    for face in _FACES:
        for k in range(4):  # a run of inside corners is entered on one edge and left on another
            if not code >> face[k] & 1 and code >> face[(k + 1) % 4] & 1:
                end = next(m for m in range(k + 1, k + 5) if not code >> face[(m + 1) % 4] & 1)
                entry = _EDGE_OF[frozenset((face[k], face[(k + 1) % 4]))]
                follow[entry] = _EDGE_OF[frozenset((face[end % 4], face[(end + 1) % 4]))]
    loops = []
    while follow:
        loop = [next(iter(follow))]
        while loop[-1] in follow:
            loop.append(follow.pop(loop[-1]))
        loops.append(loop[:-1])
    return loops


def _triangulate(loop: list[int]) -> list[tuple[int, int, int]]:
    """Split a polygon by diagonals that run through the cell: one within a cell face could meet its
    neighbour's.
    """
    if len(loop) == 3:
        return [(loop[0], loop[1], loop[2])]
    for k in range(2, len(loop) - 1 + 1):
        turned = loop[k:] + loop[:k]
        if not _FACES_OF_EDGE[turned[0]] & _FACES_OF_EDGE[turned[2]]:
            try:
                return [(turned[0], turned[1], turned[2]), *_triangulate([turned[0], *turned[2:]])]
            except ValueError:
                continue
    raise ValueError("no manifold triangulation")


def is_closed_manifold(faces: NDArray[np.integer]) -> bool:
    """Whether each directed edge of (T, 3) triangles occurs once and its reverse once."""
    edges = np.concatenate([faces[:, [a, b]] for a, b in pairwise((0, 1, 2, 0))]).astype(np.int64)
    base = int(edges.max(initial=0)) + 1
    forward = np.sort(edges[:, 0] * base + edges[:, 1])
    backward = np.sort(edges[:, 1] * base + edges[:, 0])
    return bool((forward == backward).all() and (np.diff(forward) > 0).all())
