"""Sufficient statistics of linear blend skinning: what the fit of a skeleton needs to know of the points.

The squared error of ``y_i = sum_b w_ib T_b x_i`` is a quadratic form in the transforms T whose matrices are
sums over points (Le & Deng 2012 use the same sums to update one bone). Summed once, every later step of the
skeleton fit costs as much for a million points as for a hundred.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
_BLOCK_VALUES = 8_000_000


@dataclass(frozen=True)
class LbsStatistics:
    """Sums over the points, in units of `scale`, about `center` at rest and `frame_centers` in the frames.

    With ``phi_i = [w_i0 x_i, w_i0, w_i1 x_i, w_i1, ...]`` (4 B numbers a point):

    gram : (4B, 4B), sum phi phi^T
    cross : (F, 3, 4B), sum y phi^T
    energy : (F,), sum |y|^2
    point_count : number of points summed
    center : (3,) the rest points' mean, in metres; frame_centers : (F, 3) likewise per frame
    scale : diagonal of the rest points' box, in metres (1 where all points coincide)
    """

    gram: F64
    cross: F64
    energy: F64
    point_count: int
    center: F64
    frame_centers: F64
    scale: float

    @property
    def bone_count(self) -> int:
        """Number of bones B."""
        return len(self.gram) // 4

    @property
    def bone_masses(self) -> F64:
        """(B,) sum of each bone's weights."""
        return self.gram[3::4, 3::4].sum(axis=1)

    def take_frames(self, frames: NDArray[np.integer]) -> LbsStatistics:
        """Return the statistics of some of the frames."""
        return LbsStatistics(
            self.gram,
            self.cross[frames],
            self.energy[frames],
            self.point_count,
            self.center,
            self.frame_centers[frames],
            self.scale,
        )

    def to_units(self, transforms: F64, frames: NDArray[np.integer] | slice = slice(None)) -> F64:
        """Return transforms (F, K, 3, 4) from rest to ``frames``, given in metres, in these units."""
        motion = transforms[frames].copy()
        motion[..., 3] += motion[..., :3] @ self.center - self.frame_centers[frames, None]
        motion[..., 3] /= self.scale
        return motion


def lbs_statistics(
    rest: NDArray[np.floating],
    frames: NDArray[np.floating],
    indices: NDArray[np.integer],
    weights: NDArray[np.floating],
    bone_count: int,
) -> LbsStatistics:
    """Sum up rest points (N, 3), frames (F, N, 3) and sparse weights (N, K); see `LbsStatistics`."""
    from scipy.sparse import csr_matrix

    n, k = indices.shape
    center = rest.mean(axis=0, dtype=np.float64)
    scale = float(np.linalg.norm(np.ptp(rest, axis=0))) or 1.0
    homogeneous = np.concatenate([(rest - center) / scale, np.ones((n, 1))], axis=1)
    values = weights[:, :, None] * homogeneous[:, None, :]  # (N, K, 4)
    columns = indices[:, :, None] * 4 + np.arange(4)
    rows = np.broadcast_to(np.arange(n)[:, None, None], columns.shape)
    phi = csr_matrix((values.ravel(), (rows.ravel(), columns.ravel())), shape=(n, 4 * bone_count))
    gram = np.asarray((phi.T @ phi).todense())

    frame_count = len(frames)
    cross = np.empty((frame_count, 3, 4 * bone_count))
    energy = np.empty(frame_count)
    frame_centers = frames.mean(axis=1, dtype=np.float64)
    step = max(1, _BLOCK_VALUES // (3 * n))
    for start in range(0, frame_count, step):
        block = slice(start, min(start + step, frame_count))
        y = (frames[block] - frame_centers[block, None]) / scale  # (f, N, 3) float64
        energy[block] = np.einsum("fna,fna->f", y, y)
        flat = np.moveaxis(y, 1, 0).reshape(n, -1)  # (N, 3 f)
        cross[block] = (phi.T @ flat).reshape(4 * bone_count, -1, 3).transpose(1, 2, 0)
    return LbsStatistics(gram, cross, energy, n, center, frame_centers, scale)


def replay_statistics(
    rest: NDArray[np.floating],
    transforms: NDArray[np.floating],
    indices: NDArray[np.integer],
    weights: NDArray[np.floating],
) -> LbsStatistics:
    """The statistics of the frames that the bones' own transforms (F, B, 3, 4) show, without making them."""
    frames, bones = np.asarray(transforms, np.float64), transforms.shape[1]
    empty = lbs_statistics(rest, np.zeros((0, len(rest), 3)), indices, weights, bones)
    local = frames.copy()
    local[..., 3] = (frames[..., :3] @ empty.center + frames[..., 3]) / empty.scale
    flat = np.moveaxis(local, 1, 2).reshape(len(frames), 3, 4 * bones)
    means = flat @ empty.gram[:, 3::4].sum(axis=1) / empty.point_count  # (F, 3): sum_b w_b = 1
    flat[..., 3::4] -= means[..., None]
    cross = flat @ empty.gram
    energy = np.einsum("fai,fai->f", cross, flat)
    return LbsStatistics(
        empty.gram, cross, energy, empty.point_count, empty.center, means * empty.scale, empty.scale
    )
