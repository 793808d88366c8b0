"""Where the outer bones lie and touch: the points each dominates, and the seams between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from ..decomposition.sampling import stratified_subset

F64 = NDArray[np.float64]
SAMPLE = 8000
NEIGHBOURS = 8
GAP = 0.04  # of the box diagonal


@dataclass(frozen=True)
class BoneShapes:
    """Points of the rest pose and the bones that dominate them, in units of the box diagonal.

    points : (P, 3), a sample; bones : (P,) the strongest bone of each
    contacts : (B, B) number of neighbouring points of two bones, symmetric
    seams : (B, B, 3) sum of the midpoints between such neighbours
    """

    points: F64
    bones: NDArray[np.int32]
    contacts: F64
    seams: F64

    @classmethod
    def of(cls, points: F64, strongest: NDArray[np.integer], bone_count: int) -> BoneShapes:
        """Sample points (N, 3) with the strongest bone (N,) of each."""
        rows = stratified_subset(points, SAMPLE)
        points, bones = points[rows], np.asarray(strongest[rows], dtype=np.int32)
        near = KDTree(points).query(points, min(NEIGHBOURS + 1, len(points)))[1].reshape(len(points), -1)
        first = np.repeat(np.arange(len(points)), near.shape[1])
        second = near.ravel()
        a, b = bones[first], bones[second]
        apart = a != b
        midpoints = 0.5 * (points[first[apart]] + points[second[apart]])
        contacts = np.zeros((bone_count, bone_count))
        seams = np.zeros((bone_count, bone_count, 3))
        for i, j in ((a[apart], b[apart]), (b[apart], a[apart])):
            np.add.at(contacts, (i, j), 1.0)
            np.add.at(seams, (i, j), midpoints)
        shapes = cls(points, bones, contacts, seams)
        shapes._bridge_gaps()
        return shapes

    def _bridge_gaps(self) -> None:
        """Count one contact between bones that are apart by less than `GAP` (rigid parts need not touch)."""
        count = len(self.contacts)
        members = [np.flatnonzero(self.bones == bone) for bone in range(count)]
        for b in range(count):
            if not len(members[b]):
                continue
            distance, nearest = map(np.asarray, KDTree(self.points[members[b]]).query(self.points))
            for a in range(b):
                if self.contacts[a, b] > 0 or not len(members[a]):
                    continue
                gap = distance[members[a]]
                if gap.min() < GAP:
                    close = members[a][gap <= 1.5 * gap.min()]
                    middle = 0.5 * (self.points[close] + self.points[members[b][nearest[close]]]).mean(axis=0)
                    self.contacts[a, b] = self.contacts[b, a] = 1
                    self.seams[a, b] = self.seams[b, a] = middle

    def component(self, seed: int, among: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mask (B,) of the bones in `among` that hang together with `seed` by contacts."""
        reached = np.zeros(len(among), dtype=bool)
        reached[seed] = True
        while True:
            grown = reached | (among & (self.contacts[reached].sum(axis=0) > 0))
            if (grown == reached).all():
                return reached
            reached = grown

    def seam(self, some: NDArray[np.bool_], others: NDArray[np.bool_]) -> F64:
        """Middle (3,) of the seam between two sets of bones (B,), or of the gap where they are apart."""
        contacts = self.contacts[np.ix_(some, others)].sum()
        if contacts > 0:
            return self.seams[np.ix_(some, others)].sum(axis=(0, 1)) / contacts
        mine, theirs = self.points[some[self.bones]], self.points[others[self.bones]]
        if not len(mine) or not len(theirs):  # a bone that is nowhere the strongest has no place of its own
            known = np.concatenate([mine, theirs])
            return (known if len(known) else self.points).mean(axis=0)
        distance, nearest = map(np.asarray, KDTree(theirs).query(mine))
        closest = np.argmin(distance)
        return 0.5 * (mine[closest] + theirs[nearest[closest]])

    def tip(self, some: NDArray[np.bool_], pivot: F64) -> F64:
        """Far end (3,) of a set of bones (B,) as seen from a pivot: the mean of its farthest tenth."""
        mine = self.points[some[self.bones]]
        if not len(mine):
            return pivot
        distance = np.linalg.norm(mine - pivot, axis=1)
        return mine[distance >= np.quantile(distance, 0.9)].mean(axis=0)
