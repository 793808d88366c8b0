"""Laying the curves of a graph through the middle of the body, evenly spaced."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

SHARPNESS = 3.0  # bends of a branch are kept down to the body's local radius divided by this


@dataclass(frozen=True)
class Curves:
    """Evenly spaced nodes along branches, and what they own.

    nodes : (M, 3); edges : (E, 2), lower index first; owner : (V,) node that owns each surface vertex
    """

    nodes: NDArray[np.float64]
    edges: NDArray[np.int64]
    owner: NDArray[np.int64]


def centre_curves(
    stations: dict[int, NDArray[np.float64]],
    branches: list[list[int]],
    label: NDArray[np.int64],
    centres: NDArray[np.float64],
    radii: NDArray[np.float64],
    area: NDArray[np.float64],
    spacing: float,
) -> Curves:
    """Draw each branch through the inscribed balls of the surface its nodes own, and deal the surface out
    anew.

    A node moves to the mean of its balls, the thick ones counting most: unlike the mean of surface points
    that is central even where a node owns only one side of the body, as at shoulders and hips.

    Parameters
    ----------
    stations : position (3,) of each graph node, kept where it owns nothing
    branches : paths of graph nodes
    label : (V,) graph node of each surface vertex
    centres, radii, area : (V, 3), (V,), (V,) inscribed ball of each surface vertex and area it stands for
    spacing : metres between nodes
    """
    middle, thickness = {}, {}
    for n, position in stations.items():
        mine = label == n
        weight = area[mine] * radii[mine]
        owns = weight.sum() > 0
        middle[n] = weight @ centres[mine] / weight.sum() if owns else position
        thickness[n] = float(weight @ radii[mine] / weight.sum()) if owns else spacing
    if not branches:
        return Curves(
            np.array(list(middle.values())), np.zeros((0, 2), np.int64), np.zeros(len(label), np.int64)
        )
    lines = []
    for path in branches:
        line = np.array([[*middle[n], thickness[n]] for n in path])
        for at, before in ((0, 1), (-1, -2)):
            if sum((other[0] == path[at]) + (other[-1] == path[at]) for other in branches) == 1:
                mine = label == path[at]
                line[at, :3] = _tip(centres[mine], radii[mine], line[before, :3], line[at, :3])
        line = _resample(line, spacing)
        lines.append(_resample(_smooth(line[:, :3], line[:, 3], spacing), spacing))
    return _assemble(branches, lines, [np.flatnonzero(np.isin(label, path)) for path in branches], centres)


def _tip(
    centres: NDArray[np.float64],
    radii: NDArray[np.float64],
    before: NDArray[np.float64],
    end: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Mean of the outermost tenth of an end's balls (C, 3), (C,), seen along the branch; small ones fit
    bumps.
    """
    if len(centres) == 0:
        return end
    centres = centres[radii >= np.median(radii)]
    along = (centres - before) @ (end - before)
    return centres[along >= np.quantile(along, 0.9)].mean(0)


def _resample(line: NDArray[np.float64], spacing: float) -> NDArray[np.float64]:
    """Rows (x, y, z, ...) evenly spaced by about `spacing` along a polyline, ends kept."""
    at = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line[:, :3], axis=0), axis=1))])
    new = np.linspace(0, at[-1], max(int(round(at[-1] / spacing)), 1) + 1)
    return np.stack([np.interp(new, at, column) for column in line.T], 1)


def _smooth(line: NDArray[np.float64], radius: NDArray[np.float64], spacing: float) -> NDArray[np.float64]:
    """Even a polyline (K, 3) out over the local thickness of the body (K,), ends kept.

    Minimises ``sum_i (3 s / r_i)^2 |x'_i - x_i|^2 + sum_i |x'_{i+1} - x'_i|^2``: detail shorter than the
    body is thick is no feature of its middle.
    """
    inner = len(line) - 2
    if inner < 1:
        return line
    hold = (SHARPNESS * spacing / np.maximum(radius[1:-1], 0.5 * spacing)) ** 2
    system = np.diag(hold + 2) - np.eye(inner, k=1) - np.eye(inner, k=-1)
    right = hold[:, None] * line[1:-1]
    right[0] += line[0]
    right[-1] += line[-1]
    return np.concatenate([line[:1], np.linalg.solve(system, right), line[-1:]])


def _assemble(
    branches: list[list[int]],
    lines: list[NDArray[np.float64]],
    members: list[NDArray[np.int64]],
    centres: NDArray[np.float64],
) -> Curves:
    """Join the branches at their shared ends; each ball goes to the nearest node of its own branches."""
    ends = sorted({n for path in branches for n in (path[0], path[-1])})
    number = {n: k for k, n in enumerate(ends)}
    nodes = np.zeros((len(ends) + sum(len(line) - 2 for line in lines), 3))
    count, edges = len(ends), set()
    best = np.full(len(centres), np.inf)
    owner = np.zeros(len(centres), np.int64)
    for path, line, mine in zip(branches, lines, members, strict=True):
        row = np.concatenate([[number[path[0]]], count + np.arange(len(line) - 2), [number[path[-1]]]])
        count += len(line) - 2
        nodes[row] = line
        edges |= {(min(a, b), max(a, b)) for a, b in pairwise(row.tolist()) if a != b}
        distance, index = KDTree(line).query(centres[mine])
        closer = distance < best[mine]
        best[mine[closer]] = distance[closer]
        owner[mine[closer]] = row[index[closer]]
    return Curves(nodes, np.array(sorted(edges), np.int64).reshape(-1, 2), owner)
