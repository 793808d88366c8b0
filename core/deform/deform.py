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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..cloud import GaussianCloud
from ..errors import RigError
from ..progress import Progress, no_progress
from ..skinning.skin import Skin
from .blend import BlendMode, chunked_blends
from .covariance import deform_shapes

Floats = NDArray[np.floating]
Parents = NDArray[np.integer] | None
# Splats worked on at once: temporaries of about 1 MB stay in the cache of a core, and products are small
# enough for BLAS to leave them on one thread, whose waiting for others costs more than it gains.
CHUNK = 2048


@dataclass(frozen=True)
class DeformReport:
    """What a deformation met.

    degenerate : (N,) bool; the motion or its derivative was not finite there, and the splat kept its place
        or its shape
    inverted : (N,) bool; det R <= 0, the splat is turned inside out (its covariance is right all the same)
    """

    degenerate: NDArray[np.bool_]
    inverted: NDArray[np.bool_]

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence on each kind of trouble, for the user's report."""
        found = (
            (self.degenerate, "could not follow a transform that is not finite and kept their shape"),
            (self.inverted, "are turned inside out by this pose"),
        )
        return tuple(f"{mask.sum()} splats {what}" for mask, what in found if mask.any())


def deform_points(
    positions: Floats,
    skin: Skin,
    transforms: Floats,
    chunk: int = CHUNK,
    blend: BlendMode = "linear",
    parents: Parents = None,
) -> Floats:
    """Return posed positions (N, 3), by linear blend skinning unless told otherwise.

    Parameters
    ----------
    positions : (N, 3) rest positions, metres
    skin : N rows
    transforms : (B, 3, 4) rest -> pose, in the space of the positions
    chunk : splats worked on at once
    blend : "linear" or "dual_quaternion" (`dual_quaternion.py`)
    parents : (B,) parent bones, -1 for roots, used by dual quaternions only

    Raises
    ------
    RigError : skin and positions, or skin and transforms, do not fit
    """
    moved = np.empty_like(positions)
    for rows, part in chunked_blends(positions, skin, transforms, chunk, blend, parents):
        moved[rows] = positions[rows] + part.displacement
    return moved


def jacobian_terms(
    positions: Floats,
    skin: Skin,
    transforms: Floats,
    chunk: int = CHUNK,
    blend: BlendMode = "linear",
    parents: Parents = None,
) -> tuple[Floats, Floats]:
    """Return R_rigid and R_elastic, each (N, 3, 3); parameters as for `deform_points`."""
    rigid = np.empty((len(positions), 3, 3), dtype=positions.dtype)
    elastic = np.empty_like(rigid)
    for rows, part in chunked_blends(positions, skin, transforms, chunk, blend, parents):
        rigid[rows], elastic[rows] = part.rigid, part.elastic
    return rigid, elastic


def jacobians(
    positions: Floats,
    skin: Skin,
    transforms: Floats,
    elastic: float | Floats = 1.0,
    chunk: int = CHUNK,
    blend: BlendMode = "linear",
    parents: Parents = None,
) -> Floats:
    """Return R = R_rigid + elastic R_elastic, (N, 3, 3); parameters as for `deform_cloud`."""
    rigid, extra = jacobian_terms(positions, skin, transforms, chunk, blend, parents)
    return rigid + _strengths(elastic, len(positions), rigid.dtype)[:, None, None] * extra


def deform_cloud(
    cloud: GaussianCloud,
    skin: Skin,
    transforms: Floats,
    elastic: float | Floats = 1.0,
    rotate_sh: bool = True,
    chunk: int = CHUNK,
    scale_floor: float | None = None,
    blend: BlendMode = "linear",
    parents: Parents = None,
    progress: Progress = no_progress,
) -> GaussianCloud:
    """Return the posed cloud, ready to be written: positions, rotations, scales and colours.

    Opacities never change. A splat whose bones are at rest comes back bit by bit.

    Parameters
    ----------
    cloud : N splats at rest
    skin : N rows
    transforms : (B, 3, 4) rest -> pose, in the space of the cloud
    elastic : eta, scalar or (N,); 1 follows the blended motion to first order, 0 ignores the gradients of
        the weights (`elastic_limits` says how much a pose bears)
    rotate_sh : turn colours with the splats
    chunk : splats worked on at once
    scale_floor : smallest scale a deformation may leave, metres; None: 1e-7 of the cloud's diagonal
    blend : "linear" or "dual_quaternion"
    parents : (B,) parent bones, -1 for roots, used by dual quaternions only
    progress : told of every chunk

    Raises
    ------
    RigError : skin and cloud, or skin and transforms, do not fit
    """
    return deform_with_report(
        cloud, skin, transforms, elastic, rotate_sh, chunk, scale_floor, blend, parents, progress
    )[0]


def deform_with_report(
    cloud: GaussianCloud,
    skin: Skin,
    transforms: Floats,
    elastic: float | Floats = 1.0,
    rotate_sh: bool = True,
    chunk: int = CHUNK,
    scale_floor: float | None = None,
    blend: BlendMode = "linear",
    parents: Parents = None,
    progress: Progress = no_progress,
) -> tuple[GaussianCloud, DeformReport]:
    """Do what `deform_cloud` does and say where it met degenerate or inverted splats."""
    eta = _strengths(elastic, len(cloud), cloud.positions.dtype)
    floor = 1e-7 * diagonal(cloud.positions) if scale_floor is None else scale_floor
    posed = GaussianCloud(**{name: getattr(cloud, name).copy() for name in cloud.__dataclass_fields__})
    degenerate, inverted = np.zeros(len(cloud), bool), np.zeros(len(cloud), bool)
    for rows, part in chunked_blends(cloud.positions, skin, transforms, chunk, blend, parents):
        progress("Deform splats", rows.start / len(cloud))
        posed.positions[rows] += part.displacement
        r = part.rigid + eta[rows, None, None] * part.elastic
        colours = cloud.sh[rows] if rotate_sh else None
        shapes = deform_shapes(cloud.rotations[rows], cloud.scales[rows], colours, r, floor)
        posed.rotations[rows], posed.scales[rows] = shapes.rotations, shapes.scales
        if shapes.sh is not None:
            posed.sh[rows] = shapes.sh
        degenerate[rows], inverted[rows] = shapes.degenerate | part.lost, shapes.inverted
    return posed, DeformReport(degenerate, inverted)


def diagonal(positions: Floats) -> float:
    """Return the length of the box diagonal of finite positions (N, 3); 0 for none."""
    finite = positions[np.isfinite(positions).all(axis=1)]
    return float(np.linalg.norm(np.ptp(finite, axis=0))) if len(finite) else 0.0


def _strengths(elastic: float | Floats, count: int, dtype: np.dtype) -> Floats:
    """Return eta as (N,)."""
    eta = np.asarray(elastic, dtype=dtype)
    if eta.shape not in ((), (count,)):
        raise RigError(f"The elastic strength has shape {eta.shape}, but the cloud has {count} splats")
    return np.broadcast_to(eta, (count,))
