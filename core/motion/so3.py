"""The group of rotations as unit quaternions wxyz: logarithm, exponential, distance, interpolation.

All functions broadcast over leading axes; `q` and `-q` are the same rotation everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..rotations import quaternion_multiply

Floats = NDArray[np.floating]


def quaternion_conjugate(q: Floats) -> Floats:
    """Inverses (..., 4) of unit quaternions (..., 4)."""
    return np.concatenate([q[..., :1], -q[..., 1:]], axis=-1)


def quaternion_log(q: Floats) -> Floats:
    """Rotation vectors (..., 3), radians, length 0..pi, of unit quaternions (..., 4)."""
    real, vector = q[..., 0], q[..., 1:]
    sine = np.sqrt(np.einsum("...a,...a->...", vector, vector))
    half = np.arctan2(sine, np.abs(real))
    factor = np.copysign(np.where(sine < 1e-12, 2.0, 2 * half / np.maximum(sine, 1e-12)), real)
    return factor[..., None] * vector


def quaternion_exp(vectors: Floats) -> Floats:
    """Unit quaternions (..., 4) of rotation vectors (..., 3), radians."""
    half = 0.5 * np.linalg.norm(vectors, axis=-1, keepdims=True)
    # sin(half) / (2 half), by numpy's sinc(x) = sin(pi x) / (pi x)
    return np.concatenate([np.cos(half), 0.5 * np.sinc(half / np.pi) * vectors], axis=-1)


def geodesic_distance(a: Floats, b: Floats) -> Floats:
    """Angle (...,) in radians, 0..pi, of the rotation between unit quaternions (..., 4).

    ``2 atan2(|vec(a^-1 b)|, |w(a^-1 b)|)``; the arc cosine of the trace would lose half the digits of small
    angles.
    """
    between = quaternion_multiply(quaternion_conjugate(a), b)
    return 2 * np.arctan2(np.linalg.norm(between[..., 1:], axis=-1), np.abs(between[..., 0]))


def geodesic_step(a: Floats, b: Floats, share: Floats | float) -> Floats:
    """Quaternions (..., 4) a `share` (...,) of the way from `a` to `b`, the shorter arc (Shoemake 1985)."""
    turn = quaternion_log(quaternion_multiply(quaternion_conjugate(a), b))
    return quaternion_multiply(a, quaternion_exp(np.asarray(share)[..., None] * turn))
