"""How much of the elastic term a splat bears before it turns inside out or is drawn out too far."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..cloud import GaussianCloud
from ..rotations import quaternion_to_matrix
from ..skinning.skin import Skin
from .deform import CHUNK, jacobian_terms
from .svd3 import svd3

Floats = NDArray[np.floating]
BISECTIONS = 20


def elastic_limits(
    cloud: GaussianCloud,
    skin: Skin,
    transforms: Floats,
    elastic: float = 1.0,
    stretch_cap: float | None = 4.0,
    inversion_margin: float | None = 0.9,
    chunk: int = CHUNK,
) -> Floats:
    """Return the largest eta <= ``elastic`` of each splat that a pose allows, (N,); pass it to
    `deform_cloud`.

    Parameters
    ----------
    cloud, skin, transforms : as for `deform_cloud` (linear blending)
    elastic : eta wished for
    stretch_cap : the longest axis may at most be this many times what it is with eta = 0; None: any
    inversion_margin : stay below this part of the eta at which det R first vanishes; None: may invert
    """
    rigid, extra = jacobian_terms(cloud.positions, skin, transforms, chunk)
    rigid, extra = rigid.astype(np.float64), extra.astype(np.float64)
    eta = np.full(len(cloud), float(elastic))
    eta[~(np.isfinite(rigid) & np.isfinite(extra)).all(axis=(1, 2))] = 0
    able = eta > 0
    if inversion_margin is not None:
        eta[able] = np.minimum(eta[able], inversion_margin * inversion_limit(rigid[able], extra[able]))
    if stretch_cap is not None:
        shape = quaternion_to_matrix(cloud.rotations) * cloud.scales[:, None, :].astype(np.float64)
        eta[able] = stretch_limit(
            rigid[able] @ shape[able], extra[able] @ shape[able], eta[able], stretch_cap
        )
    return eta.astype(cloud.positions.dtype)


def inversion_limit(rigid: Floats, elastic: Floats) -> Floats:
    """Return the smallest eta > 0 at which det(R_rigid + eta R_elastic) = 0, (N,); inf where there is none.

    det(R_r + eta R_e) = det R_r det(1 + eta M) with M = R_r^-1 R_e vanishes at eta = -1 / mu for the real
    eigenvalues mu of M. With two influences M has rank one and the determinant is linear in eta. Where det
    R_r <= 0 already, the limit is 0.
    """
    limit = np.full(len(rigid), np.inf)
    inside_out = np.linalg.det(rigid) <= 1e-12
    limit[inside_out] = 0
    rows = np.flatnonzero(~inside_out & (elastic != 0).any(axis=(1, 2)))
    if not len(rows):
        return limit
    mu = np.linalg.eigvals(np.linalg.solve(rigid[rows], elastic[rows]))
    real = np.abs(np.imag(mu)) <= 1e-7 * np.abs(mu)
    lowest = np.where(real, np.real(mu), 0).min(axis=1)
    limit[rows] = np.where(lowest < -1e-12, -1 / np.minimum(lowest, -1e-12), np.inf)
    return limit


def stretch_limit(rigid: Floats, elastic: Floats, eta: Floats, cap: float) -> Floats:
    """Return the largest value up to eta with sigma_max(A + value B) <= cap sigma_max(A), (N,).

    Parameters
    ----------
    rigid, elastic : (N, 3, 3) A = R_rigid Q diag(s), B = R_elastic Q diag(s)
    eta : (N,) upper ends
    cap : >= 1

    Notes
    -----
    sigma_max is convex in eta, so that what is allowed is an interval from 0 and bisection finds its end.
    """
    result = eta.copy()
    allowed = cap * _largest(rigid)
    rows = np.flatnonzero(_largest(rigid + eta[:, None, None] * elastic) > allowed)
    low, high = np.zeros(len(rows)), eta[rows]
    for _ in range(BISECTIONS if len(rows) else 0):
        middle = 0.5 * (low + high)
        fits = _largest(rigid[rows] + middle[:, None, None] * elastic[rows]) <= allowed[rows]
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    result[rows] = low
    return result


def _largest(matrices: Floats) -> Floats:
    return svd3(matrices, with_right=False)[1][:, 0]
