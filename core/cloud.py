"""A cloud of 3D Gaussian splats."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]


@dataclass(frozen=True)
class GaussianCloud:
    """N anisotropic Gaussians with spherical-harmonic colour, values *activated* (no logs, no logits).

    positions : (N, 3) float32, centres, metres
    rotations : (N, 4) float32, unit quaternions wxyz; the columns of the matrix are the axes
    scales : (N, 3) float32, standard deviations along the axes, metres, >= 0
    opacities : (N,) float32 in 0..1
    sh : (N, (degree + 1)^2, 3) float32, coefficients in the 3DGS real-SH convention; ``sh[:, 0]`` is f_dc
    """

    positions: F32
    rotations: F32
    scales: F32
    opacities: F32
    sh: F32

    def __post_init__(self) -> None:
        n = len(self.positions)
        expected = {"positions": (n, 3), "rotations": (n, 4), "scales": (n, 3), "opacities": (n,)}
        for name, shape in expected.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, expected {shape}")
        if self.sh.shape not in [(n, (d + 1) ** 2, 3) for d in range(4)]:
            raise ValueError(f"sh has shape {self.sh.shape}, expected ({n}, 1 | 4 | 9 | 16, 3)")

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def sh_degree(self) -> int:
        """Degree of the spherical harmonics, 0-3."""
        return round(self.sh.shape[1] ** 0.5) - 1

    def take(self, rows: NDArray[np.bool_] | NDArray[np.integer]) -> GaussianCloud:
        """Return the cloud of the given rows (mask (N,) or indices (M,))."""
        return replace(self, **{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})
