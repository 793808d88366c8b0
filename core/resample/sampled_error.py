"""The error of a splat's linear map at points drawn from the splat itself."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .blended_motion import Bones
from .quantiles import CONFIDENCE, estimate, spread
from .surroundings import Surroundings

F64 = NDArray[np.float64]
Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

POINTS = 1 << 15  # evaluated at once
# Probes: towards the faces and the corners of a cube, each beside its opposite, 2.4 standard deviations out,
# where the quantile is decided (85 to 98 % of the mass of one to three dimensions lies within).
_CUBE = np.array([(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1), (1, 1, -1), (1, -1, 1), (-1, 1, 1)], float)
_CUBE = 2.4 * _CUBE / np.linalg.norm(_CUBE, axis=1, keepdims=True)
PROBES = np.concatenate([_CUBE, -_CUBE])
_PRODUCTS = _CUBE[:, [0, 1, 2, 0, 0, 1]] * _CUBE[:, [0, 1, 2, 1, 2, 2]] * [0.5, 0.5, 0.5, 1, 1, 1]
_FIT = np.linalg.pinv(_PRODUCTS)  # (6, 7), errors to xx, yy, zz, xy, xz, yz
_SQUARE = np.array([0, 3, 4, 3, 1, 5, 4, 5, 2])  # those six as a symmetric matrix
# Where probes show that second-order terms are the error to within this part, no more points are drawn.
TRUST = 0.15


@lru_cache(maxsize=4)
def even_normals(count: int) -> F64:
    """Return points (count, 3) that fill the normal distribution evenly, the same on every call.

    Scrambled Sobol points of the cube through the inverse of the normal distribution; ``count`` is best a
    power of two.
    """
    from scipy.special import ndtri
    from scipy.stats import qmc

    sobol = qmc.Sobol(3, scramble=True, seed=1)  # pyright: ignore[reportCallIssue]  ("rng" since SciPy 1.15)
    return ndtri(np.clip(sobol.random(count), 1e-9, 1 - 1e-9))


def sampled_quantiles(
    around: Surroundings, bones: Bones, samples: int = 128, rng: np.random.Generator | None = None
) -> F64:
    """Return the 95 % quantile of the error over each splat, (C,), metres.

    rng : of normal samples of each splat's own; None takes the same even ones for all
    """
    quantiles = np.empty(len(around.rows))
    chunk = max(POINTS // samples, 1)
    for start in range(0, len(quantiles), chunk):
        part = slice(start, start + chunk)
        size = len(around.rows[part])
        normals = even_normals(samples) if rng is None else rng.standard_normal((size, samples, 3))
        quantiles[part] = _quantile(_squares(around, bones, normals, part))
    return quantiles


def _quantiles_above(around: Surroundings, bones: Bones, own: Ints, threshold: float) -> F64:
    """Return the 95 % quantiles (R,) of the error at 128 even points of splats ``own`` (R,).

    Where a quarter of these says that it is below half of the threshold, what that quarter says stands.
    """
    quantiles, chunk = np.empty(len(own)), POINTS // 32
    first, rest = even_normals(128)[:32], even_normals(128)[32:]
    for start in range(0, len(own), chunk):
        part = own[start : start + chunk]
        squares = _squares(around, bones, first, part)
        found = _quantile(squares)
        near = np.flatnonzero(found > 0.5 * threshold)
        if len(near):
            more = _squares(around, bones, rest, part[near])
            found[near] = _quantile(np.concatenate([squares[near], more], axis=1))
        quantiles[start : start + chunk] = found
    return quantiles


def _squares(around: Surroundings, bones: Bones, normals: Floats, own: slice | Ints) -> F64:
    """Return squared errors (R, S) of splats ``own``."""
    errors = around.residuals(bones, normals, own)
    return np.einsum("csi,csi->cs", errors, errors)


def _quantile(squares: F64) -> F64:
    """Return the 95 % quantile of the roots of squares (C, S), (C,): an order statistic."""
    rank = int(np.ceil(CONFIDENCE * squares.shape[1])) - 1
    return np.sqrt(np.partition(squares, rank, axis=1)[:, rank])


def probed_quantiles(around: Surroundings, bones: Bones, threshold: float) -> F64:
    """Return the 95 % quantile of the error over each splat, (C,), metres, with few evaluations of the field.

    Errors at 14 probes, the mean of each two that are opposite, give the quadratic forms of the second-order
    error. Where these explain all probes, or where nothing there comes near the threshold, the closed form
    stands; elsewhere, at the hard or narrow borders of selections, 128 points are drawn.
    """
    errors = around.residuals(bones, PROBES, slice(None))
    even = 0.5 * (errors[:, :7] + errors[:, 7:])  # (C, 7, 3)
    entries = _FIT @ even  # (C, 6, 3)
    forms = np.swapaxes(entries[:, _SQUARE].reshape(-1, 3, 3, 3), 2, 3)
    fitted = _PRODUCTS @ entries
    errors -= np.concatenate([fitted, fitted], axis=1)
    off = np.sqrt(np.einsum("csi,csi->cs", errors, errors).max(axis=1))
    quantiles = np.asarray(estimate(*spread(forms)), np.float64)
    doubtful = np.flatnonzero((quantiles + off > threshold) & (off > TRUST * quantiles))
    quantiles[doubtful] = _quantiles_above(around, bones, doubtful, threshold)
    return quantiles
