"""What a linear map does to a splat: its covariance as a rotation and scales, and its colours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..rotations import matrix_to_quaternion, normalize_quaternions, quaternion_multiply, quaternion_to_matrix
from .sh import rotate_sh
from .svd3 import covariance_axes, polar_rotation

Floats = NDArray[np.floating]


STILL, TURNED, BENT = 0, 1, 2


@dataclass(frozen=True)
class Shapes:
    """Splats after a linear map.

    rotations : (N, 4) in the hemisphere of the quaternions they come from
    scales : (N, 3)
    sh : (N, (degree + 1)^2, 3) or None
    degenerate : (N,) bool; R is not finite or too large, the splat keeps its shape and colours
    inverted : (N,) bool; det R <= 0
    """

    rotations: Floats
    scales: Floats
    sh: Floats | None
    degenerate: NDArray[np.bool_]
    inverted: NDArray[np.bool_]


def deform_shapes(
    rotations: Floats, scales: Floats, sh: Floats | None, jacobians: Floats, scale_floor: float = 0.0
) -> Shapes:
    """Factor R Sigma R^T into rotation and scales, and turn the colours by the rotation nearest to R.

    With ``A = R Q diag(s) = U diag(s') V^T`` the new covariance is ``U diag(s'^2) U^T``: V is discarded.
    The covariance itself is never formed, its eigenvalues would lose all digits of thin splats.

    Splats whose R is the identity to within rounding come back bit by bit, and those whose R is a rotation
    keep their scales and are turned by a quaternion.

    Parameters
    ----------
    rotations : (N, 4) unit wxyz
    scales : (N, 3) >= 0, zeros allowed
    sh : (N, (degree + 1)^2, 3), or None to leave colours out
    jacobians : (N, 3, 3) R, in the dtype of the rotations
    scale_floor : no scale is made smaller than this by a deformation (those below it already stay)
    """
    new_rotations, new_scales = rotations.copy(), scales.copy()
    new_sh = None if sh is None else sh.copy()
    usable = np.abs(jacobians).max(axis=(1, 2), initial=0) < np.finfo(jacobians.dtype).max ** 0.25
    degenerate = ~usable  # True for NaN too
    jacobians = np.where(usable[:, None, None], jacobians, np.eye(3, dtype=jacobians.dtype))
    kind, inverted = _kinds(jacobians)
    for which, update in ((TURNED, _turn), (BENT, _bend)):
        rows = np.flatnonzero(kind == which)
        if not len(rows):
            continue
        turned, stretched, turns = update(rotations[rows], scales[rows], jacobians[rows])
        bad = ~(np.isfinite(stretched).all(axis=1) & np.isfinite(turned).all(axis=1))
        degenerate[rows[bad]] = True
        rows, kept = rows[~bad], ~bad
        new_rotations[rows] = _same_hemisphere(turned[kept], rotations[rows])
        new_scales[rows] = np.maximum(stretched[kept], np.minimum(scales[rows], scale_floor))
        if new_sh is not None:
            new_sh[rows] = rotate_sh(new_sh[rows], turns[kept])
    return Shapes(new_rotations, new_scales, new_sh, degenerate, inverted)


def _kinds(jacobians: Floats) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """Say of each R (N, 3, 3) whether it is STILL, TURNED or BENT, and whether det R <= 0."""
    tolerance = 16 * np.finfo(jacobians.dtype).eps
    eye = np.eye(3, dtype=jacobians.dtype)
    still = np.abs(jacobians - eye).max(axis=(1, 2), initial=0) <= tolerance
    gram = np.swapaxes(jacobians, -1, -2) @ jacobians
    inverted = np.linalg.det(jacobians) <= 0
    turned = (np.abs(gram - eye).max(axis=(1, 2), initial=0) <= tolerance) & ~inverted
    return np.where(still, STILL, np.where(turned, TURNED, BENT)).astype(np.int8), inverted


def _same_hemisphere(quaternions: Floats, reference: Floats) -> Floats:
    flip = np.einsum("ni,ni->n", quaternions, reference) < 0
    return np.where(flip[:, None], -quaternions, quaternions)


def _turn(rotations: Floats, scales: Floats, turns: Floats) -> tuple[Floats, Floats, Floats]:
    """Return rotations, scales and turns of splats under rotations."""
    turned = quaternion_multiply(matrix_to_quaternion(turns), rotations)
    return normalize_quaternions(turned), scales, turns


def _bend(rotations: Floats, scales: Floats, jacobians: Floats) -> tuple[Floats, Floats, Floats]:
    """Return rotations, scales and turns of splats under any linear maps."""
    frames = quaternion_to_matrix(rotations)
    turns = polar_rotation(jacobians)
    axes, stretched = covariance_axes(jacobians @ frames * scales[:, None, :], turns @ frames)
    return matrix_to_quaternion(axes), stretched, turns
