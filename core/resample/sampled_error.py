"""The error of a splat's linear map at points drawn from the splat itself."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .blended_motion import Bones, LocalMotion, moved
from .quantiles import CONFIDENCE
from .weight_fields import WeightField

F64 = NDArray[np.float64]
Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

POINTS = 1 << 16  # evaluated at once
# Where a field is looked at before it is sampled: on the sphere of radius 2.4 standard deviations, at which
# 85 to 88 % of the mass of one to three dimensions lies within, towards the faces and corners of a cube.
_CUBE = np.array([(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)], float)
_CUBE = _CUBE[np.isin(np.abs(_CUBE).sum(axis=1), (1, 3))]
PROBES = 2.4 * _CUBE / np.linalg.norm(_CUBE, axis=1, keepdims=True)


@lru_cache(maxsize=4)
def even_normals(count: int) -> F64:
    """Return points (count, 3) that fill the normal distribution evenly, the same on every call.

    The additive recurrence of the powers of the plastic number's kin (Roberts 2018), through the inverse of
    the normal distribution.
    """
    from scipy.special import ndtri

    ratio = 1.2207440846057596  # the root of x^4 = x + 1
    steps = ratio ** -np.arange(1.0, 4.0)
    return ndtri((0.5 + np.arange(1, count + 1)[:, None] * steps) % 1)


def residuals(
    bones: Bones, positions: Floats, axes: Floats, rows: Ints, field: WeightField, normals: Floats
) -> F64:
    """Return |F(y) - F(p) - J (y - p)| at y = p + Q diag(s) z, (C, S), metres.

    Parameters
    ----------
    positions : (C, 3) p, axes : (C, 3, 3) Q diag(s), rows : (C,) of the splats in the field
    normals : z, (S, 3) the same for all, or (C, S, 3)
    """
    indices, weights, gradients = field(positions, rows)
    motion = LocalMotion.at(bones, positions, indices, weights)
    steps = normals @ np.swapaxes(axes, 1, 2)  # (C, S, 3)
    count, samples = steps.shape[:2]
    points = (positions[:, None] + steps).reshape(-1, 3)
    indices, weights_there, _ = field(points, np.repeat(rows, samples))
    there = moved(bones, points, indices, weights_there).reshape(count, samples, 3)
    linear = steps @ np.swapaxes(motion.jacobians(weights, gradients), 1, 2)
    return np.linalg.norm(there - motion.displacement[:, None] - linear, axis=2)


def sampled_quantiles(
    bones: Bones,
    positions: Floats,
    axes: Floats,
    rows: Ints,
    field: WeightField,
    samples: int = 128,
    seed: int | None = None,
) -> F64:
    """Return the 95 % quantile of the error over each splat, (C,), metres.

    seed : of normal samples of each splat's own; None takes the same even ones for all
    """
    rng = None if seed is None else np.random.default_rng(seed)
    quantiles = np.empty(len(positions))
    rank = int(np.ceil(CONFIDENCE * samples)) - 1
    chunk = max(POINTS // samples, 1)
    for start in range(0, len(positions), chunk):
        part = slice(start, start + chunk)
        size = len(positions[part])
        normals = even_normals(samples) if rng is None else rng.standard_normal((size, samples, 3))
        errors = residuals(bones, positions[part], axes[part], rows[part], field, normals)
        quantiles[part] = np.partition(errors, rank, axis=1)[:, rank]
    return quantiles
