"""Values of outer bones in a space where distance is point error, and back to rigid motions.

Outer bone b moves its points by the residual ``D_b`` before its joint moves them on: a rotation R about the
pivot and an offset u. With mass m and covariance C of its points (weights w_ib, pivot their mean),

    sum_i w_ib |D x_i - D' x_i|^2 = |(R - R') C^1/2|^2 + m |u - u'|^2,

so ``e_b = (R C^1/2, m^1/2 u)``, 12 numbers, makes the Euclidean distance of values the error seen on the
points. Any linear blend of values goes back to a rigid motion by the bone's own weighted Procrustes problem
(Kabsch 1976), the nearest one in that distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..rigging.kabsch import kabsch
from ..rotations import matrix_to_quaternion, quaternion_to_matrix
from .database import MotionDatabase, Residuals

F64 = NDArray[np.float64]
F32 = NDArray[np.float32]
THIN = (
    1e-4  # least variance of a bone's points, of the mean over bones: keeps rotations of thin bones defined
)


@dataclass(frozen=True)
class ValueSpace:
    """The maps between residuals and values.

    roots : (B, 3, 3) float64, symmetric square roots C^1/2; masses : (B,) float64, root of the mass m^1/2
    """

    roots: F64
    masses: F64

    @staticmethod
    def of(database: MotionDatabase) -> ValueSpace:
        """The space of a database's outer bones."""
        mass = np.maximum(database.masses, 1e-9)
        spreads = np.asarray(database.spreads, np.float64)
        common = np.trace(spreads, axis1=-2, axis2=-1).sum() / (3 * mass.sum()) or 1.0
        variances, axes = np.linalg.eigh(spreads / mass[:, None, None])
        roots = np.sqrt(np.maximum(variances, THIN * common) * mass[:, None])
        return ValueSpace((axes * roots[:, None, :]) @ np.swapaxes(axes, -1, -2), np.sqrt(mass))

    @property
    def bone_count(self) -> int:
        """Number of outer bones B."""
        return len(self.masses)

    def embed(self, residuals: Residuals) -> F32:
        """Values (Q, 12 B) of the residuals of Q frames."""
        turned = quaternion_to_matrix(np.asarray(residuals.rotations, np.float64)) @ self.roots
        moved = np.asarray(residuals.offsets, np.float64)[..., None] * self.masses[:, None, None]
        return np.concatenate([turned, moved], axis=-1).reshape(len(turned), -1).astype(np.float32)

    def project(self, values: NDArray[np.floating]) -> Residuals:
        """The residuals nearest to values (Q, 12 B), float64."""
        parts = np.asarray(values, np.float64).reshape(len(values), self.bone_count, 3, 4)
        turns = kabsch(self.roots @ np.swapaxes(parts[..., :3], -1, -2))
        return Residuals(matrix_to_quaternion(turns), parts[..., 3] / self.masses[:, None])
