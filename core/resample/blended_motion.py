"""Blended bones as a map of space: its value, first and second derivatives at splats, and anywhere.

    F(y) = sum_j w_j(y) T_j y,  T_j = [A_j | t_j], normalised weights w_j

At a splat's centre p, with the gradients G_j and Hessians H_j of its weights,

    J      = sum_j w_j A_j + sum_j (T_j p - F(p)) G_j^T
    d2 F_k = sum_j G_j a_jk^T + a_jk G_j^T + (T_j p - F(p))_k H_j,  a_jk the k-th row of A_j.

As the gradients sum to 0, and the Hessians too, only differences between the bones count. They are formed
from that of the strongest bone, so that where all bones move alike second derivatives vanish exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..thin_product import thin_product

BLOCK = 4096  # points at once: more leave the cache, fewer let threads wait for each other
F64 = NDArray[np.float64]
Floats = NDArray[np.floating]
Ints = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class Bones:
    """Bone transforms as displacements about a centre c: [A - 1 | A c + t - c]; the last one never moves.

    linear : (B + 1, 3, 3), offset : (B + 1, 3), centre : (3,)
    """

    linear: F64
    offset: F64
    centre: F64

    @classmethod
    def of(cls, transforms: Floats, centre: Floats) -> Bones:
        """Return the bones of transforms (B, 3, 4), rest -> pose; -1 becomes the static bone."""
        centre = np.asarray(centre, np.float64)
        moves = np.zeros((len(transforms) + 1, 3, 4))
        moves[:-1] = np.asarray(transforms, np.float64) - np.eye(3, 4)
        offset = moves[:, :, :3] @ centre + moves[:, :, 3]
        return cls(np.ascontiguousarray(moves[:, :, :3]), offset, centre)

    @cached_property
    def kinds(self) -> Ints:
        """Numbers (B + 1,), the same for bones that move exactly alike."""
        return np.unique(_table(self), axis=0, return_inverse=True)[1].ravel()


@dataclass(frozen=True, eq=False)
class LocalMotion:
    """The motion around C splats, relative to their strongest bone.

    linear : (C, K, 3, 3) A_j - A_0
    apart : (C, K, 3) T_j p - F(p), displacements
    displacement : (C, 3) F(p) - p
    strongest : (C, 3, 3) A_0 - 1
    """

    linear: F64
    apart: F64
    displacement: F64
    strongest: F64

    @classmethod
    def at(cls, bones: Bones, positions: Floats, indices: Ints, weights: Floats) -> LocalMotion:
        """Blend at positions (C, 3) with bones (C, K), the strongest first, and normalised weights (C, K)."""
        local = positions - bones.centre
        strongest = bones.linear[indices[:, 0]]
        linear = bones.linear[indices] - strongest[:, None]
        first = (strongest @ local[:, :, None])[..., 0] + bones.offset[indices[:, 0]]
        offset = bones.offset[indices] - bones.offset[indices[:, :1]]
        apart = (linear @ local[:, None, :, None])[..., 0] + offset
        mean = np.einsum("ck,cki->ci", weights, apart)
        return cls(linear, apart - mean[:, None], first + mean, strongest)

    def jacobians(self, weights: Floats, gradients: Floats) -> F64:
        """Return J - 1, (C, 3, 3)."""
        mean = np.einsum("ck,ckij->cij", weights, self.linear)
        return self.strongest + mean + np.swapaxes(self.apart, 1, 2) @ gradients


def quadratic_forms(
    motion: LocalMotion, axes: Floats, gradients: Floats, hessians: Floats | None = None
) -> F64:
    """Return M_k = L^T (d2 F_k) L, (C, 3, 3, 3) with ``[:, a, k, b]`` the entry (a, b) of M_k.

    Parameters
    ----------
    axes : (C, 3, 3) L = Q diag(s)
    gradients : (C, K, 3) summing to 0 over K
    hessians : (C, K, 3, 3) of the normalised weights; None leaves their term out
    """
    count, slots = gradients.shape[:2]
    along = gradients @ axes  # (C, K, 3)
    turned = motion.linear.reshape(count, slots * 3, 3) @ axes
    forms = np.swapaxes(along, 1, 2) @ turned.reshape(count, slots, 9)
    forms = forms.reshape(count, 3, 3, 3)
    forms = forms + np.swapaxes(forms, 1, 3)
    if hessians is not None:
        bent = hessians.reshape(count, slots * 3, 3) @ axes
        bent = np.swapaxes(axes, 1, 2)[:, None] @ bent.reshape(count, slots, 3, 3)  # (C, K, a, b)
        product = np.swapaxes(motion.apart, 1, 2) @ bent.reshape(count, slots, 9)  # (C, k, ab)
        forms += np.swapaxes(product.reshape(count, 3, 3, 3), 1, 2)
    return forms


def moved(bones: Bones, points: Floats, chosen: Ints, weights: Floats) -> F64:
    """Return F(y) - y, (3, P), of points (P, 3) with normalised weights (B, P) of the chosen bones (B,)."""
    table = _table(bones)[chosen].T.copy()
    found = np.empty((3, len(points)))
    for start in range(0, len(points), BLOCK):
        part = slice(start, start + BLOCK)
        blend = thin_product(table, weights[:, part])  # (12, P)
        x, y, z = (points[part] - bones.centre).T
        for i in range(3):
            found[i, part] = blend[3 * i] * x + blend[3 * i + 1] * y + blend[3 * i + 2] * z + blend[9 + i]
    return found


def _table(bones: Bones) -> F64:
    """Return linear part and offset of each bone in one row, (B + 1, 12)."""
    return np.concatenate([bones.linear.reshape(-1, 9), bones.offset], axis=1)
