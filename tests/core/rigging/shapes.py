"""Bodies whose surface and middle are known: implicit functions, points on them, a bent tube."""

from __future__ import annotations

import numpy as np

from gaussianimate.core.rigging.curves.isosurface import marching_cubes
from gaussianimate.core.rigging.curves.surface import Surface


def segment_distance(p: np.ndarray, a, b) -> np.ndarray:
    """Distance of points (..., 3) to the segment a-b."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    t = np.clip(((p - a) @ (b - a)) / ((b - a) @ (b - a)), 0, 1)
    return np.linalg.norm(p - a - t[..., None] * (b - a), axis=-1)


def sphere(p):
    return np.linalg.norm(p, axis=-1) - 0.5


def capsule(p):
    return segment_distance(p, (-1, 0, 0), (1, 0, 0)) - 0.2


def torus(p):
    return np.hypot(np.hypot(p[..., 0], p[..., 1]) - 0.7, p[..., 2]) - 0.2


Y_ENDS = np.array([[0, -1.0, 0], [0.8, 0.7, 0], [-0.8, 0.7, 0]])


def y_shape(p):
    return np.min([segment_distance(p, (0, 0, 0), e) for e in Y_ENDS], axis=0) - 0.18


def iso(shape, voxel: float = 0.04) -> Surface:
    """Surface of an implicit body within [-1.5, 1.5]^3."""
    axis = np.arange(-1.5, 1.5 + voxel, voxel)
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1)
    vertices, faces = marching_cubes(-shape(grid), 0.0)
    return Surface(axis[0] + voxel * vertices, faces)


def on_surface(shape, count: int, seed: int = 0) -> np.ndarray:
    """About `count` points (N, 3) spread at random over an implicit body's surface, by projection along
    gradients.
    """
    rng = np.random.default_rng(seed)
    fine = iso(shape, 0.05)
    a, b, c = fine.vertices[fine.faces].transpose(1, 0, 2)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    rows = rng.choice(len(area), count, p=area / area.sum())
    u, v = rng.random((2, count, 1))
    flip = u + v > 1
    u, v = np.where(flip, 1 - u, u), np.where(flip, 1 - v, v)
    p = a[rows] + u * (b - a)[rows] + v * (c - a)[rows]
    for _ in range(3):
        eps = 1e-5
        gradient = np.stack([(shape(p + eps * e) - shape(p - eps * e)) / (2 * eps) for e in np.eye(3)], -1)
        p = p - shape(p)[:, None] * gradient
    return p


def axis_of_tube(samples: int = 2000) -> np.ndarray:
    s = np.linspace(0, 4, samples)
    return np.stack([s, 0.6 * np.sin(s), 0 * s], 1)


def bent_tube(seed: int = 7) -> Surface:
    """Closed tube of radius 0.25 along y = 0.6 sin x, x in 0..4, round ends, 1202 vertices, noise."""
    nu, nv, r, length = 60, 20, 0.25, 4.0
    s = np.linspace(0, length, nu)
    ends = np.maximum(np.maximum(r - s, s - (length - r)), 0) / r
    radius = r * np.sqrt(np.maximum(1 - ends**2, 1e-3))
    angle = 2 * np.pi * np.arange(nv) / nv
    x = np.repeat(s, nv)
    y = 0.6 * np.sin(x) + (radius[:, None] * np.cos(angle)).ravel()
    z = (radius[:, None] * np.sin(angle)).ravel()
    caps = [[0, 0, 0], [length, 0.6 * np.sin(length), 0]]
    vertices = np.concatenate([np.stack([x, y, z], 1), caps])
    i, k = (v.ravel() for v in np.meshgrid(np.arange(nu - 1), np.arange(nv), indexing="ij"))
    a, b = i * nv + k, i * nv + (k + 1) % nv
    k = np.arange(nv)
    n = len(vertices)
    faces = np.concatenate(
        [
            np.stack([a, b, a + nv], 1),
            np.stack([b, b + nv, a + nv], 1),
            np.stack([np.full(nv, n - 2), (k + 1) % nv, k], 1),
            np.stack([np.full(nv, n - 1), (nu - 1) * nv + k, (nu - 1) * nv + (k + 1) % nv], 1),
        ]
    )
    noise = np.random.default_rng(seed).normal(size=vertices.shape) * 0.004
    return Surface(vertices + noise, faces.astype(np.int32))


def degrees(edges: np.ndarray, count: int) -> np.ndarray:
    """Number of edges at each node."""
    return np.bincount(np.ravel(edges), minlength=count)


def pieces(edges: np.ndarray, count: int) -> int:
    """Number of connected parts of a graph."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    edges = np.reshape(edges, (-1, 2))
    graph = coo_matrix((np.ones(len(edges)), edges.T), shape=(count, count))
    return connected_components(graph, directed=False)[0]
