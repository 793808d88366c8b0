"""Dual-quaternion blending (Kavan et al. 2008) with its derivative, so that the elastic term exists for it
too.

Bone j is a unit quaternion q_j and a dual part e_j = (0, t_j) q_j / 2. With r = sum_j w_j q_j, d = sum_j
w_j e_j, n = r . r, and quaternions split into scalar and vector, r = (a, v), d = (b, u):

    p'      = p + (2 v (v . p) - 2 (v . v) p + 2 a v x p + 2 (a u - b v + v x u)) / n
    R_rigid = rotation of r / |r|
    dp'/dw_j = (dN_j - 2 (r . q_j) p') / n,      dN_j the derivative of n p' along (q_j, e_j)
    R_elastic = sum_j dp'/dw_j G_j^T

p' does not change when all weights are scaled, so gradients of weights and of normalised weights give the
same R_elastic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..rotations import matrix_to_quaternion, quaternion_multiply, quaternion_to_matrix
from .svd3 import polar_rotation

if TYPE_CHECKING:
    from .blend import Blend

Floats = NDArray[np.floating]
RIGID_TOLERANCE = 1e-3
DEGENERATE = 1e-8


@dataclass(frozen=True)
class DualQuaternions:
    """Bones as dual quaternions, the static bone last."""

    real: Floats  # (B + 1, 4)
    dual: Floats  # (B + 1, 4)
    rigid: NDArray[np.bool_]  # (B + 1,)


@dataclass(frozen=True)
class DualQuaternionBlend:
    """The blended motion of C splats; see `blend.Blend`."""

    displacement: Floats
    lost: NDArray[np.bool_]
    rigid: Floats
    elastic: Floats


def bones(moves: Floats, parents: NDArray[np.integer] | None, dtype: np.dtype) -> DualQuaternions:
    """Convert bones (B + 1, 3, 4), given as [A - 1 | t], the static one last.

    q and -q are one rotation but blend differently. Every bone takes the sign nearest to its parent, roots
    that nearest to the static bone, so that signs are the same for every splat; a sign chosen splat by
    splat tears the surface where three bones meet.
    """
    linear = moves[:, :, :3] + np.eye(3)
    finite = np.isfinite(moves).all(axis=(1, 2))
    linear = np.where(finite[:, None, None], linear, np.eye(3))
    turns = polar_rotation(linear)
    rigid = finite & (np.abs(linear - turns).max(axis=(1, 2)) <= RIGID_TOLERANCE)
    real = matrix_to_quaternion(turns)
    parents = np.full(len(moves) - 1, -1) if parents is None else parents
    for bone, parent in enumerate(parents):
        if real[bone] @ real[parent] < 0:
            real[bone] *= -1
    offsets = np.where(finite[:, None], moves[:, :, 3], 0)
    dual = 0.5 * quaternion_multiply(np.concatenate([np.zeros((len(moves), 1)), offsets], axis=1), real)
    return DualQuaternions(real.astype(dtype), dual.astype(dtype), rigid)


def blend(
    local: Floats,
    indices: NDArray[np.int32],
    weights: Floats,
    gradients: Floats,
    bones: DualQuaternions,
    linear: Blend,
) -> DualQuaternionBlend:
    """Blend bones at ``local`` (C, 3); splats with a bone that is not rigid keep the ``linear`` blend."""
    real, dual = bones.real[indices], bones.dual[indices]  # (C, K, 4)
    r, d = np.einsum("ck,cki->ci", weights, real), np.einsum("ck,cki->ci", weights, dual)
    n = np.einsum("ci,ci->c", r, r)
    opposed = n < DEGENERATE  # turns that cancel: the strongest influence alone
    if opposed.any():
        r, d, n = (
            np.where(opposed[:, None], real[:, 0], r),
            np.where(opposed[:, None], dual[:, 0], d),
            np.where(opposed, 1, n),
        )
        gradients = np.where(opposed[:, None, None], 0, gradients)
    displacement = _displacement(local, r, d) / n[:, None]
    slopes = _slopes(local, displacement, r, d, n, real, dual)
    elastic = np.swapaxes(slopes, 1, 2) @ gradients
    rigid = quaternion_to_matrix(r)
    bent = (~bones.rigid[indices] & ((weights > 0) | (gradients != 0).any(axis=-1))).any(axis=1)
    return DualQuaternionBlend(
        np.where(bent[:, None], linear.displacement, displacement),
        linear.lost & bent,
        np.where(bent[:, None, None], linear.rigid, rigid),
        np.where(bent[:, None, None], linear.elastic, elastic),
    )


def _displacement(p: Floats, r: Floats, d: Floats) -> Floats:
    """Return n (p' - p), (C, 3)."""
    a, v, b, u = r[:, :1], r[:, 1:], d[:, :1], d[:, 1:]
    turn = _dot(v, p) * v - _dot(v, v) * p + a * np.cross(v, p)
    return 2 * (turn + a * u - b * v + np.cross(v, u))


def _slopes(
    p: Floats, displacement: Floats, r: Floats, d: Floats, n: Floats, real: Floats, dual: Floats
) -> Floats:
    """Return dp'/dw_j, (C, K, 3)."""
    moved = (p + displacement)[:, None]
    p, r, d = p[:, None], r[:, None], d[:, None]
    a, v, b, u = r[..., :1], r[..., 1:], d[..., :1], d[..., 1:]
    aj, vj, bj, uj = real[..., :1], real[..., 1:], dual[..., :1], dual[..., 1:]
    slope = (a * aj - _dot(v, vj)) * p + _dot(vj, p) * v + _dot(v, p) * vj
    slope = slope + aj * np.cross(v, p) + a * np.cross(vj, p)
    slope = slope + aj * u + a * uj - bj * v - b * vj + np.cross(vj, u) + np.cross(v, uj)
    return 2 * (slope - _dot(r, real) * moved) / n[:, None, None]


def _dot(x: Floats, y: Floats) -> Floats:
    return (x * y).sum(axis=-1, keepdims=True)
