"""From a contracted surface to a curve skeleton that knows which points it carries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import KDTree

from ...progress import Progress, no_progress
from .canonical import select_canonical_frame
from .centring import centre_curves
from .contraction import ring_areas
from .curve_graph import CurveGraph
from .medial import medial_balls
from .solid import directed_edges
from .surface import Surface

__all__ = ["CurveSkeleton", "extract_curve", "select_canonical_frame"]

STAGE = "Curve"
SPACING = 0.02  # of the surface's diagonal


@dataclass(frozen=True)
class CurveSkeleton:
    """A graph of curves inside a surface; connected, and a tree but for the surface's genuine handles.

    nodes : (M, 3) float64, metres, about 2 % of the diagonal apart along a branch
    edges : (E, 2) int32, pairs of nodes, lower index first
    owners : (N,) int32, the one node that owns each capture point
    radii : (M,) float64, mean radius of the balls inscribed around a node, metres
    """

    nodes: NDArray[np.float64]
    edges: NDArray[np.int32]
    owners: NDArray[np.int32]
    radii: NDArray[np.float64]


def extract_curve(
    surface: Surface,
    contracted: NDArray[np.floating],
    points: NDArray[np.floating],
    *,
    progress: Progress = no_progress,
) -> CurveSkeleton:
    """Turn a contracted surface into a curve skeleton (after Au et al. 2008, Tagliasacchi et al. 2012).

    Parameters
    ----------
    surface : closed surface
    contracted : (V, 3) contracted vertices of it
    points : (N, 3) capture points that the nodes are to own
    progress : called with "Curve"
    """
    x = np.asarray(contracted, np.float64)
    vertices, faces = surface.vertices, surface.faces
    spacing = SPACING * max(float(np.linalg.norm(np.ptp(vertices, axis=0))), 1e-12)
    links = np.unique(np.sort(directed_edges(faces), axis=1), axis=0)
    label, seeds = geodesic_samples(x, links, spacing, progress)
    area = ring_areas(vertices, faces)
    centres, inscribed = medial_balls(surface)
    graph = CurveGraph(x[seeds], label, links, area)
    graph.thin(genus(surface), 6 * spacing)
    progress(STAGE, 0.8)
    graph.prune(*_deepest(graph.label, centres, inscribed, len(seeds)))
    graph.join_junctions(*_deepest(graph.label, centres, inscribed, len(seeds)))
    curves = centre_curves(graph.position, graph.branches(), graph.label, centres, inscribed, area, spacing)
    owners = curves.owner[KDTree(vertices).query(np.asarray(points, np.float64))[1]]
    radii = _means(curves.owner, area, centres, inscribed, len(curves.nodes))[1]
    progress(STAGE, 1.0)
    return CurveSkeleton(curves.nodes, curves.edges.astype(np.int32), owners.astype(np.int32), radii)


def _means(
    label: NDArray[np.int64],
    weight: NDArray[np.float64],
    centres: NDArray[np.float64],
    radii: NDArray[np.float64],
    count: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean ball (count, 3), (count,) of the surface vertices of each label."""
    total = np.maximum(np.bincount(label, weight, count), 1e-300)
    sums = [np.bincount(label, weight * v, count) / total for v in (*centres.T, radii)]
    return np.stack(sums[:3], 1), sums[3]


def _deepest(
    label: NDArray[np.int64], centres: NDArray[np.float64], radii: NDArray[np.float64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Largest ball (count, 3), (count,) of the surface vertices of each label."""
    best = np.zeros(count, np.int64)
    order = np.argsort(radii, kind="stable")
    best[label[order]] = order  # the last, largest, wins
    return centres[best], radii[best]


def genus(surface: Surface) -> int:
    """Number of handles of a closed connected surface, from its Euler characteristic."""
    return 1 - (len(surface.vertices) - len(surface.faces) // 2) // 2


def geodesic_samples(
    x: NDArray[np.float64], links: NDArray[np.int64], spacing: float, progress: Progress
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Farthest-point samples of a mesh, and the sample nearest to each vertex along the mesh's own edges.

    Distances run along the (contracted) mesh, so that limbs that touch in space stay apart.

    Returns
    -------
    label : (V,) index into seeds
    seeds : (S,) vertices, no vertex further than `spacing` from one
    """
    length = np.linalg.norm(x[links[:, 0]] - x[links[:, 1]], axis=1) + 1e-9 * spacing
    graph = sparse.csr_matrix((length, links.T), shape=(len(x), len(x)))
    distance = np.full(len(x), np.inf)
    label = np.zeros(len(x), np.int64)
    seeds = [int(np.argmax(((x - x.mean(0)) ** 2).sum(1)))]
    while True:
        progress(STAGE, 0.5 * min(len(seeds) / 200, 1.0))
        limit = 2 * spacing if len(seeds) > 1 else np.inf
        d = dijkstra(graph, directed=False, indices=seeds[-1], limit=limit)
        closer = d < distance
        distance[closer], label[closer] = d[closer], len(seeds) - 1
        farthest = int(np.argmax(distance))
        if distance[farthest] <= spacing:
            return label, np.array(seeds)
        seeds.append(farthest)
