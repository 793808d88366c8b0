"""The gradient rig: splats under blended bones, as points and as Gaussians. Numpy only.

The equations, for splat i with rest centre p, rest covariance Sigma = Q diag(s^2) Q^T, influences j with
normalised weights w_j (sum 1) and gradients G_j = grad w_j (sum 0), bone transforms T_j = [A_j | t_j], and
elastic strength eta:

    p'        = sum_j w_j (A_j p + t_j)                                 linear blend skinning
    R_rigid   = sum_j w_j A_j
    R_elastic = sum_j (T_j p - p') G_j^T                                centred form
    R         = R_rigid + eta R_elastic
    Sigma'    = R Sigma R^T

With eta = 1, R is the exact first derivative of p -> p', which takes into account that the weights vary
across the splat. Since the gradients sum to 0, centring changes nothing in exact arithmetic, but without it
single precision fails away from the origin. R is in general no rotation: it stretches and shears. Sigma' is
factored in `covariance.py`: the singular vectors U and values s' of R Q diag(s) are the new axes and
scales, V is dropped. Colours turn by the rotation nearest to R (the only choice under which every band of
spherical harmonics maps to itself, so that it can be baked).

What is computed are displacements, in coordinates about the centre c of the cloud: T_j p - p = (A_j - 1)(p
- c) + (A_j c + t_j - c), the bracket in double precision. So identity transforms move nothing, bit by bit,
and precision does not depend on where in the world the cloud stands. Influence -1 is the static bone (T =
identity).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..cloud import GaussianCloud
from ..errors import RigError
from ..skinning.skin import STATIC, Skin
from .covariance import deform_shapes

Floats = NDArray[np.floating]
CHUNK = 2048  # splats; temporaries of about 1 MB stay in the cache of a core
Blend = Literal["linear", "dual_quaternion"]


@dataclass(frozen=True)
class DeformReport:
    """What a deformation met.

    degenerate : (N,) bool; the map was not finite there, the splat kept its shape (or its place)
    inverted : (N,) bool; det R <= 0, the splat is turned inside out (its covariance is right all the same)
    """

    degenerate: NDArray[np.bool_]
    inverted: NDArray[np.bool_]


def deform_points(positions: Floats, skin: Skin, transforms: Floats, chunk: int = CHUNK) -> Floats:
    """Return posed positions (N, 3) by linear blend skinning.

    Parameters
    ----------
    positions : (N, 3) rest positions, metres
    skin : N rows
    transforms : (B, 3, 4) rest -> pose, in the space of the positions

    Raises
    ------
    RigError : skin and positions, or skin and transforms, do not fit
    """
    moved = np.empty_like(positions)
    for rows, blend in _chunks(positions, skin, transforms, chunk):
        moved[rows] = positions[rows] + blend.displacement
    return moved


def jacobians(
    positions: Floats, skin: Skin, transforms: Floats, elastic: float | Floats = 1.0, chunk: int = CHUNK
) -> Floats:
    """Return R = R_rigid + elastic R_elastic (N, 3, 3) of linear blend skinning; see the module's equations.

    Parameters
    ----------
    elastic : eta, scalar or (N,); 1 is the derivative of `deform_points`, 0 ignores the weights' gradients
    """
    result = np.empty((len(positions), 3, 3), dtype=positions.dtype)
    for rows, blend in _chunks(positions, skin, transforms, chunk):
        result[rows] = blend.jacobian(_per_row(elastic, rows, len(positions)))
    return result


def jacobian_terms(
    positions: Floats, skin: Skin, transforms: Floats, chunk: int = CHUNK
) -> tuple[Floats, Floats]:
    """Return R_rigid and R_elastic, each (N, 3, 3)."""
    rigid = jacobians(positions, skin, transforms, 0.0, chunk)
    elastic = np.empty_like(rigid)
    for rows, blend in _chunks(positions, skin, transforms, chunk):
        elastic[rows] = blend.elastic()
    return rigid, elastic


def deform_cloud(
    cloud: GaussianCloud,
    skin: Skin,
    transforms: Floats,
    elastic: float | Floats = 1.0,
    rotate_sh: bool = True,
    chunk: int = CHUNK,
    scale_floor: float | None = None,
) -> GaussianCloud:
    """Return the posed cloud, ready to be written: positions, rotations, scales and colours.

    Opacities never change. A splat under identity transforms comes back bit by bit.

    Parameters
    ----------
    cloud : N splats at rest
    skin : N rows
    transforms : (B, 3, 4) rest -> pose, in the space of the cloud
    elastic : eta, scalar or (N,) (`elastic_limits` says how much a pose bears)
    rotate_sh : turn colours with the splats
    scale_floor : smallest scale a deformation may leave, metres; None: 1e-7 of the cloud's diagonal

    Raises
    ------
    RigError : skin and cloud, or skin and transforms, do not fit
    """
    return deform_with_report(cloud, skin, transforms, elastic, rotate_sh, chunk, scale_floor)[0]


def deform_with_report(
    cloud: GaussianCloud,
    skin: Skin,
    transforms: Floats,
    elastic: float | Floats = 1.0,
    rotate_sh: bool = True,
    chunk: int = CHUNK,
    scale_floor: float | None = None,
) -> tuple[GaussianCloud, DeformReport]:
    """Do what `deform_cloud` does and say where it met degenerate or inverted splats."""
    n = len(cloud)
    floor = 1e-7 * diagonal(cloud.positions) if scale_floor is None else scale_floor
    positions, rotations, scales = np.empty_like(cloud.positions), cloud.rotations.copy(), cloud.scales.copy()
    sh = cloud.sh.copy()
    degenerate, inverted = np.zeros(n, bool), np.zeros(n, bool)
    for rows, blend in _chunks(cloud.positions, skin, transforms, chunk):
        moved = cloud.positions[rows] + blend.displacement
        lost = ~np.isfinite(moved).all(axis=1)
        positions[rows] = np.where(lost[:, None], cloud.positions[rows], moved)
        r = blend.jacobian(_per_row(elastic, rows, n))
        colours = cloud.sh[rows] if rotate_sh and cloud.sh_degree else None
        rotations[rows], scales[rows], turned, bad = deform_shapes(
            cloud.rotations[rows], cloud.scales[rows], colours, r, floor
        )
        if turned is not None:
            sh[rows] = turned
        degenerate[rows] = bad | lost
        with np.errstate(invalid="ignore", over="ignore"):
            inverted[rows] = np.linalg.det(r) <= 0
    posed = GaussianCloud(positions, rotations, scales, cloud.opacities.copy(), sh)
    return posed, DeformReport(degenerate, inverted)


def diagonal(positions: Floats) -> float:
    """Return the length of the box diagonal of finite positions (N, 3); 0 for none."""
    finite = positions[np.isfinite(positions).all(axis=1)]
    return float(np.linalg.norm(np.ptp(finite, axis=0))) if len(finite) else 0.0


@dataclass(frozen=True)
class _Blend:
    """Blended bones at C splats: displacements u_j of each influence, their mean, and the mean of A_j - 1."""

    influences: Floats  # (C, K, 3) T_j p - p
    displacement: Floats  # (C, 3) p' - p
    linear: Floats  # (C, 3, 3) R_rigid - 1
    gradients: Floats  # (C, K, 3)

    def elastic(self) -> Floats:
        """Return R_elastic (C, 3, 3)."""
        relative = self.influences - self.displacement[:, None]
        return np.swapaxes(relative, 1, 2) @ self.gradients

    def jacobian(self, eta: float | Floats) -> Floats:
        """Return R (C, 3, 3) for eta, scalar or (C,)."""
        r = self.linear + np.eye(3, dtype=self.linear.dtype)
        if np.ndim(eta) == 0 and eta == 0:
            return r
        eta = np.asarray(eta, dtype=r.dtype)
        return r + eta[..., None, None] * self.elastic()


def _per_row(value: float | Floats, rows: slice, count: int) -> float | Floats:
    if np.ndim(value) == 0:
        return value
    value = np.asarray(value)
    if value.shape != (count,):
        raise RigError(f"The elastic strength has shape {value.shape}, but the cloud has {count} splats")
    return value[rows]


def _chunks(positions: Floats, skin: Skin, transforms: Floats, chunk: int) -> Iterator[tuple[slice, _Blend]]:
    check_fit(len(positions), skin, len(transforms))
    dtype = positions.dtype
    finite = positions[np.isfinite(positions).all(axis=1)]
    centre = finite.mean(axis=0, dtype=np.float64) if len(finite) else np.zeros(3)
    transforms = np.asarray(transforms, dtype=np.float64).reshape(-1, 3, 4)
    # Displacement form about the centre; the last row is the static bone, which index -1 finds.
    moves = np.zeros((len(transforms) + 1, 3, 4))
    moves[:-1, :, :3] = transforms[:, :, :3] - np.eye(3)
    moves[:-1, :, 3] = moves[:-1, :, :3] @ centre + transforms[:, :, 3]
    moves = moves.astype(dtype)
    for start in range(0, len(positions), chunk):
        rows = slice(start, start + chunk)
        local = (positions[rows] - centre).astype(dtype)
        yield rows, _blend(local, skin.indices[rows], skin.weights[rows], skin.gradients[rows], moves)


def _blend(
    local: Floats, indices: NDArray[np.int32], weights: Floats, gradients: Floats, moves: Floats
) -> _Blend:
    influences = np.empty((*indices.shape, 3), dtype=local.dtype)
    total = np.zeros((len(local), 3, 4), dtype=local.dtype)
    for slot in range(indices.shape[1]):
        move = moves[indices[:, slot]]
        influences[:, slot] = (move[:, :, :3] @ local[:, :, None])[..., 0] + move[:, :, 3]
        total += weights[:, slot, None, None].astype(local.dtype) * move
    displacement = np.einsum("ck,cki->ci", weights.astype(local.dtype), influences)
    return _Blend(influences, displacement, total[:, :, :3], gradients.astype(local.dtype, copy=False))


def check_fit(count: int, skin: Skin, bone_count: int) -> None:
    """Raise `RigError` unless the skin has ``count`` rows and no index beyond ``bone_count``."""
    if len(skin) != count:
        raise RigError(
            f"The skin has {len(skin)} rows but the cloud {count} splats; build the rig for this cloud"
        )
    if skin.indices.size and (skin.indices.max() >= bone_count or skin.indices.min() < STATIC):
        worst = skin.indices.max() if skin.indices.max() >= bone_count else skin.indices.min()
        raise RigError(
            f"The skin names bone {worst}, but there are only {bone_count} bone transforms; rebuild the rig"
        )
