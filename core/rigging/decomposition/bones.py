"""Rigid bones, given the blend weights (Le & Deng 2012, section 4.2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..kabsch import F64, kabsch
from .motion_matrix import MotionMatrix, rigid_bone


class BoneSolver:
    """Sums over all points that the best bones depend on; sweeps over the bones then cost the same for any N.

    weights : (N, B) float64
    """

    def __init__(self, motion: MotionMatrix, weights: F64) -> None:
        count = weights.shape[1]
        spread = (weights[:, :, None] * motion.homogeneous[:, None, :]).reshape(len(motion), 4 * count)
        self.second = (spread.T @ spread).reshape(count, 4, count, 4)  # sum w_j w_k [p, 1]^T [p, 1]
        self.moments = (spread.T @ motion.displacements).reshape(count, 4, -1)  # sum w_j [p, 1]^T d
        self.energy = float(motion.energy.sum())
        self.alive = np.diagonal(self.second[:, 3, :, 3]) > 1e-9

    def error(self, bones: F64) -> float:
        """Return the squared error over all points and frames under bones (B, 4, 3F)."""
        flat = bones.reshape(-1, bones.shape[-1])
        moments = self.moments.reshape(flat.shape)
        second = self.second.reshape(len(flat), len(flat))
        return max(float(np.vdot(flat, second @ flat - 2 * moments)) + self.energy, 0.0)

    def sweep(self, bones: F64, tick: Callable[[], None] = lambda: None) -> F64:
        """Return bones (B, 4, 3F), each in turn replaced by the best while the others rest (Gauss-Seidel)."""
        bones = bones.copy()
        flat = bones.reshape(-1, bones.shape[-1])  # a view
        for j in np.flatnonzero(self.alive):
            tick()
            second = self.second[j, :, j]
            others = self.second[j].reshape(4, -1) @ flat - second @ bones[j]
            bones[j] = rigid_bone(self.moments[j] - others, second)
        return bones


def nearest_rigid(bones: F64) -> F64:
    """Return bones (B, 4, 3F) with the upper part of every frame replaced by the nearest rotation."""
    out = bones.reshape(len(bones), 4, -1, 3).copy()
    linear = np.swapaxes(out[:, :3], 1, 2) + np.eye(3)  # (B, F, 3, 3), transposed R
    out[:, :3] = np.swapaxes(np.swapaxes(kabsch(linear), -1, -2) - np.eye(3), 1, 2)
    return out.reshape(bones.shape)
