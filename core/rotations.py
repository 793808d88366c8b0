"""Rotations as quaternions and matrices, vectorised, numpy only.

Quaternions are wxyz, unit where they leave a function, and ``q`` and ``-q`` are the same rotation. Matrices
act on column vectors. All functions broadcast over leading axes and keep float32 or float64 of their input.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


def normalize_quaternions(quaternions: Floats) -> Floats:
    """Return unit quaternions (..., 4); zero or non-finite ones become the identity."""
    q = np.asarray(quaternions)
    norm = np.linalg.norm(q, axis=-1, keepdims=True)
    good = np.isfinite(norm) & (norm > 0)
    identity = np.array([1, 0, 0, 0], dtype=q.dtype)
    return np.where(good, q / np.where(good, norm, 1), identity).astype(q.dtype, copy=False)


def quaternion_multiply(a: Floats, b: Floats) -> Floats:
    """Return the Hamilton product a b (..., 4): first rotate by b, then by a."""
    aw, ax, ay, az = np.moveaxis(np.asarray(a), -1, 0)
    bw, bx, by, bz = np.moveaxis(np.asarray(b), -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def quaternion_to_matrix(quaternions: Floats) -> Floats:
    """Return rotation matrices (..., 3, 3) of quaternions (..., 4) of any length (zero: identity)."""
    w, x, y, z = np.moveaxis(normalize_quaternions(quaternions), -1, 0)
    matrix = np.empty((*w.shape, 3, 3), dtype=w.dtype)
    matrix[..., 0, 0] = 1 - 2 * (y * y + z * z)
    matrix[..., 0, 1] = 2 * (x * y - w * z)
    matrix[..., 0, 2] = 2 * (x * z + w * y)
    matrix[..., 1, 0] = 2 * (x * y + w * z)
    matrix[..., 1, 1] = 1 - 2 * (x * x + z * z)
    matrix[..., 1, 2] = 2 * (y * z - w * x)
    matrix[..., 2, 0] = 2 * (x * z - w * y)
    matrix[..., 2, 1] = 2 * (y * z + w * x)
    matrix[..., 2, 2] = 1 - 2 * (x * x + y * y)
    return matrix


def matrix_to_quaternion(matrices: Floats) -> Floats:
    """Return unit quaternions (..., 4), w >= 0, of rotation matrices (..., 3, 3).

    Shepperd (1978): of the four ways to read a quaternion off a matrix take the one whose divisor, the
    largest component, is at least 1/2, so that no rotation loses accuracy.
    """
    m = np.asarray(matrices)
    (a, b, c), (d, e, f), (g, h, i) = np.moveaxis(m, (-2, -1), (0, 1))
    rows = (  # row k is 4 q_k q
        (1 + a + e + i, h - f, c - g, d - b),
        (h - f, 1 + a - e - i, b + d, c + g),
        (c - g, b + d, 1 - a + e - i, f + h),
        (d - b, c + g, f + h, 1 - a - e + i),
    )
    largest = np.argmax(np.stack([rows[k][k] for k in range(4)]), axis=0)
    q = np.stack([np.choose(largest, [row[k] for row in rows]) for k in range(4)], axis=-1)
    q = np.where(q[..., :1] < 0, -q, q)
    return normalize_quaternions(q.astype(m.dtype, copy=False))


def axis_angle_to_quaternion(axis: Floats, angle: Floats | float) -> Floats:
    """Return unit quaternions (..., 4): turns by ``angle`` (...), radians, about ``axis`` (..., 3)."""
    axis = np.asarray(axis)
    unit = axis / np.maximum(np.linalg.norm(axis, axis=-1, keepdims=True), np.finfo(np.float32).tiny)
    half = 0.5 * np.asarray(angle)[..., None]
    half, unit = np.broadcast_arrays(half, unit)
    return np.concatenate([np.cos(half[..., :1]), np.sin(half) * unit], axis=-1)


def continuous_quaternions(quaternions: Floats) -> Floats:
    """Flip signs so that successive quaternions (F, ..., 4) are on one hemisphere."""
    q = np.asarray(quaternions)
    signs = np.ones((*q.shape[:-1], 1), q.dtype)
    signs[1:] = np.where((q[1:] * q[:-1]).sum(axis=-1, keepdims=True) < 0, -1, 1)
    return q * np.cumprod(signs, axis=0, dtype=q.dtype)


def slerp(a: Floats, b: Floats, part: Floats) -> Floats:
    """Interpolate unit quaternions (..., 4) of one hemisphere along the great arc, part (..., 1) of the way.

    Shoemake, "Animating rotation with quaternion curves", SIGGRAPH 1985.
    """
    angle = np.arccos(np.clip((a * b).sum(axis=-1, keepdims=True), -1, 1))
    small = angle < 1e-4
    sine = np.where(small, 1, np.sin(angle))
    turn = np.where(small, 1 - part, np.sin((1 - part) * angle) / sine) * a
    turn = turn + np.where(small, part, np.sin(part * angle) / sine) * b
    return turn / np.linalg.norm(turn, axis=-1, keepdims=True)


def affine_inverse(transforms: Floats) -> Floats:
    """Return the inverses (..., 3, 4) of affine maps (..., 3, 4) or (..., 4, 4).

    Raises
    ------
    numpy.linalg.LinAlgError : a map is singular
    """
    linear, offset = transforms[..., :3, :3], transforms[..., :3, 3:]
    inverse = np.linalg.inv(linear)
    return np.concatenate([inverse, -inverse @ offset], axis=-1)


def affine_multiply(a: Floats, b: Floats) -> Floats:
    """Return a after b, (..., 3, 4), of affine maps (..., 3, 4) or (..., 4, 4)."""
    linear = a[..., :3, :3] @ b[..., :3, :3]
    offset = a[..., :3, :3] @ b[..., :3, 3:] + a[..., :3, 3:]
    return np.concatenate([linear, offset], axis=-1)
