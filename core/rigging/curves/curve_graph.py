"""The graph that a curve skeleton is whittled from: nodes that own patches of a surface."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

# An end branch has to reach this many radii of the body it leaves; a corner of a cube reaches 1.73 from
# its middle.
TWIG = 1.9
SAME_BALL = 0.2  # distance of the middles of two balls, of the larger radius, up to which they are one


class CurveGraph:
    """Nodes with the surface vertices they own, edges where owned patches touch.

    Parameters
    ----------
    nodes : (S, 3) positions
    label : (V,) node that owns each surface vertex
    links : (E, 2) edges of the surface
    area : (V,) area each vertex stands for
    """

    def __init__(
        self,
        nodes: NDArray[np.float64],
        label: NDArray[np.int64],
        links: NDArray[np.int64],
        area: NDArray[np.float64],
    ) -> None:
        self.position = dict(enumerate(nodes))
        self.weight = dict(enumerate(np.bincount(label, area, len(nodes)).tolist()))
        self.near: dict[int, set[int]] = {k: set() for k in self.position}
        pairs = np.unique(np.sort(label[links], axis=1), axis=0)
        for a, b in pairs[pairs[:, 0] != pairs[:, 1]].tolist():
            self.near[a].add(b)
            self.near[b].add(a)
        self._first_label = label
        self._merged = np.arange(len(nodes))

    @property
    def label(self) -> NDArray[np.int64]:
        """Node (V,) that owns each surface vertex."""
        return self._merged[self._first_label]

    # ------------------------------------------------------------ topology

    def merge(self, kept: int, gone: int) -> None:
        """Collapse the edge between two nodes into `kept`."""
        total = self.weight[kept] + self.weight[gone]
        share = self.weight[gone] / total if total > 0 else 0.5
        self.position[kept] = (1 - share) * self.position[kept] + share * self.position.pop(gone)
        self.weight[kept] = total
        del self.weight[gone]
        for n in self.near.pop(gone):
            self.near[n].discard(gone)
            if n != kept:
                self.near[n].add(kept)
                self.near[kept].add(n)
        self._merged[self._merged == gone] = kept

    def length(self, a: int, b: int) -> float:
        """Distance of two nodes."""
        return float(np.linalg.norm(self.position[a] - self.position[b]))

    def thin(self, genus: int, smallest_loop: float) -> None:
        """Collapse triangles, then the shortest loops until only genuine handles are left.

        A surface of genus g encloses a body with g loops: more are left-overs of an incomplete
        contraction, and loops shorter than `smallest_loop` metres are welds of the voxel grid.
        """
        while (edge := self._shortest_triangle_edge()) is not None:
            self.merge(*edge)
        while self.loops() > 0:
            loop = self._shortest_loop()
            pairs = list(zip(loop, loop[1:] + loop[:1], strict=True))
            if self.loops() <= genus and sum(self.length(a, b) for a, b in pairs) >= smallest_loop:
                break
            self._zip(loop)
            while (edge := self._shortest_triangle_edge()) is not None:
                self.merge(*edge)

    def _zip(self, loop: list[int]) -> None:
        """Merge the two nodes that pinch a loop off best: near each other, far along the loop."""
        n = len(loop)
        pairs = [(i, j) for i in range(n) for j in range(i + 2, n) if (i, j) != (0, n - 1)]
        i, j = min(
            pairs,
            key=lambda ij: self.length(loop[ij[0]], loop[ij[1]]) / min(ij[1] - ij[0], n + ij[0] - ij[1]),
        )
        self.merge(loop[i], loop[j])

    def loops(self) -> int:
        """Number of independent cycles of the connected graph."""
        return sum(map(len, self.near.values())) // 2 - len(self.near) + 1

    def _shortest_triangle_edge(self) -> tuple[int, int] | None:
        best, found = np.inf, None
        for a, others in self.near.items():
            for b in others:
                if a < b and self.near[b] & others:
                    length = self.length(a, b)
                    if length < best:
                        best, found = length, (a, b)
        return found

    def _shortest_loop(self) -> list[int]:
        """Nodes of a cycle with the fewest edges, ties by metric length."""
        best: tuple[int, float, list[int]] | None = None
        for a in sorted(self.near):
            for b in sorted(self.near[a]):
                path = self._path(a, b) if a < b else None
                if path is None or (best and len(path) > best[0]):
                    continue
                metric = sum(self.length(p, q) for p, q in zip(path, path[1:] + path[:1], strict=True))
                if best is None or (len(path), metric) < best[:2]:
                    best = (len(path), metric, path)
        if best is None:
            raise ValueError("the graph has no cycle")
        return best[2]

    def _path(self, a: int, b: int) -> list[int] | None:
        """Fewest-edges path from a to b that avoids the edge a-b."""
        back = {a: a}
        queue = deque([a])
        while queue:
            n = queue.popleft()
            for m in sorted(self.near[n]):
                if m in back or (n == a and m == b):
                    continue
                back[m] = n
                if m == b:
                    path = [b]
                    while path[-1] != a:
                        path.append(back[path[-1]])
                    return path
                queue.append(m)
        return None

    # ------------------------------------------------------------ branches

    def branches(self) -> list[list[int]]:
        """Paths between nodes of degree other than 2 (ends included); a closed loop starts at its first
        node.
        """
        stops = [n for n in sorted(self.near) if len(self.near[n]) != 2]
        paths, seen = [], set()
        for start in stops or sorted(self.near)[:1]:
            for step in sorted(self.near[start]):
                if (start, step) in seen:
                    continue
                path = [start, step]
                while len(self.near[path[-1]]) == 2 and path[-1] != start:
                    path.append(next(n for n in sorted(self.near[path[-1]]) if n != path[-2]))
                seen |= {(path[0], path[1]), (path[-1], path[-2])}
                paths.append(path)
        return paths

    def prune(self, centre: NDArray[np.float64], radius: NDArray[np.float64]) -> None:
        """Drop end branches that hardly leave the body they branch from, the least first.

        Parameters
        ----------
        centre, radius : (S, 3), (S,) middle and inscribed radius of each node's share of the body, S
        first nodes
        """
        while True:
            twigs = []
            for path in self.branches():
                if len(self.near[path[0]]) == 1:
                    path = path[::-1]
                if len(self.near[path[-1]]) == 1 and len(self.near[path[0]]) > 2:
                    root = path[0]
                    reach = np.linalg.norm(centre[path] - centre[root], axis=1) + radius[path]
                    twigs.append((float(reach.max() / max(float(radius[root]), 1e-300)), path))
            ratio, twig = min(twigs, default=(np.inf, []))
            if ratio > TWIG:
                return
            for node in twig[1:]:
                self.merge(twig[0], node)

    def join_junctions(self, centre: NDArray[np.float64], radius: NDArray[np.float64]) -> None:
        """Make one of two junctions whose largest inscribed balls are much the same: limbs that leave a
        trunk opposite each other, such as the two arms, leave it at one place.

        Parameters
        ----------
        centre, radius : as in `prune`
        """
        while True:
            short = []
            for path in self.branches():
                a, b = path[0], path[-1]
                if a != b and len(self.near[a]) > 2 and len(self.near[b]) > 2:
                    apart = float(np.linalg.norm(centre[a] - centre[b]))
                    short.append((apart / max(float(radius[a]), float(radius[b]), 1e-300), path))
            ratio, path = min(short, default=(np.inf, []))
            if ratio > SAME_BALL:
                return
            for node in path[1:]:
                self.merge(path[0], node)
