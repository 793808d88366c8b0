"""The error of a splat's linear map at points drawn from the splat itself."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .blended_motion import Bones
from .quantiles import CONFIDENCE, estimate, spread
from .surroundings import LinearMaps, Surroundings

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
    quantiles, maps = np.empty(len(around.rows)), around.linear_maps(bones)
    chunk = max(POINTS // samples, 1)
    for start in range(0, len(quantiles), chunk):
        part = slice(start, start + chunk)
        size = len(around.rows[part])
        normals = even_normals(samples) if rng is None else rng.standard_normal((size, samples, 3))
        quantiles[part] = _quantile(_squared(around.residuals(maps.take(part), normals)))
    return quantiles


def outer_quantiles(around: Surroundings, maps: LinearMaps) -> F64:
    """Return the 95 % quantile of the error at 128 even points of each splat that the maps are of, (R,).

    Only the half that lies further out is looked at: the seven largest errors, the last of which is the
    quantile, are hardly ever elsewhere. What is found is never above the quantile of all.
    """
    quantiles, chunk, normals = np.empty(len(maps.own)), POINTS // 64, outer_normals()
    for start in range(0, len(quantiles), chunk):
        part = slice(start, start + chunk)
        errors = around.residuals(maps.take(part), normals)
        quantiles[part] = _quantile(_squared(errors), left_out=64)
    return quantiles


@lru_cache(maxsize=1)
def outer_normals() -> F64:
    """Return those 64 of 128 even points that are furthest from the centre, (64, 3)."""
    normals = even_normals(128)
    return normals[np.argsort((normals**2).sum(axis=1))[64:]]


def _squared(errors: F64) -> F64:
    """Return the squares (R, S) of the lengths of errors (3, R, S)."""
    x, y, z = errors
    return x * x + y * y + z * z


def _quantile(squares: F64, left_out: int = 0) -> F64:
    """Return the 95 % quantile of the roots of squares (C, S), (C,): an order statistic.

    left_out : so many more than the S, all of them smaller
    """
    rank = int(np.ceil(CONFIDENCE * (squares.shape[1] + left_out))) - 1 - left_out
    return np.sqrt(np.partition(squares, rank, axis=1)[:, rank])


def probed_quantiles(around: Surroundings, bones: Bones, threshold: float) -> F64:
    """Return the 95 % quantile of the error over each splat, (C,), metres, with few evaluations of the field.

    Errors at 14 probes, the mean of each two that are opposite, give the quadratic forms of the second-order
    error. Where these explain all probes, or where nothing there comes near the threshold, the closed form
    stands; elsewhere, at the hard or narrow borders of selections, points are drawn.
    """
    quantiles = np.zeros(len(around.rows))
    maps = around.linear_maps(bones, around.bent_by(bones, len(PROBES)))
    errors = around.residuals(maps, PROBES)
    entries = 0.5 * (errors[..., :7] + errors[..., 7:]) @ _FIT.T  # (3, R, 6)
    forms = entries[..., _SQUARE].reshape(3, -1, 3, 3).transpose(1, 2, 0, 3)
    fitted = entries @ _PRODUCTS.T
    errors[..., :7] -= fitted
    errors[..., 7:] -= fitted
    off = np.sqrt(_squared(errors).max(axis=1))
    found = np.asarray(estimate(*spread(forms)), np.float64)
    doubtful = np.flatnonzero((found + off > threshold) & (off > TRUST * found))
    found[doubtful] = outer_quantiles(around, maps.take(doubtful))
    quantiles[maps.own] = found
    return quantiles
