"""What a linear map does to a splat: its covariance as a rotation and scales, and its colours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..rotations import matrix_to_quaternion, normalize_quaternions, quaternion_multiply, quaternion_to_matrix
from .sh import rotate_sh
from .svd3 import covariance_axes, polar_rotation

Floats = NDArray[np.floating]


def deform_shapes(
    rotations: Floats,
    scales: Floats,
    sh: Floats | None,
    jacobians: Floats,
    scale_floor: float = 0.0,
) -> tuple[Floats, Floats, Floats | None, NDArray[np.bool_]]:
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
    jacobians : (N, 3, 3), or (1, 3, 3) for all
    scale_floor : no scale is made smaller than this by a deformation (those below it already stay)

    Returns
    -------
    rotations, scales, sh : new arrays. New quaternions lie in the hemisphere of the old ones
    degenerate : (N,) bool; where R is not finite or too large, and the splat keeps its shape and colours
    """
    rotations, scales, sh = rotations.copy(), scales.copy(), None if sh is None else sh.copy()
    size = np.abs(jacobians).max(axis=(1, 2), initial=0)
    usable = size < np.sqrt(np.finfo(rotations.dtype).max)  # False for NaN too
    kind = _kinds(np.where(usable[:, None, None], jacobians, 0))
    kind[~usable] = STILL
    degenerate = np.broadcast_to(~usable, len(rotations)).copy()
    if len(kind) == 1:
        kind, jacobians = (
            np.broadcast_to(kind, len(rotations)),
            np.broadcast_to(jacobians, (len(rotations), 3, 3)),
        )
    for which, update in ((TURNED, _turn), (BENT, _bend)):
        rows = np.flatnonzero(kind == which)
        if len(rows):
            r, s, c, bad = update(
                rotations[rows], scales[rows], None if sh is None else sh[rows], jacobians[rows]
            )
            s = np.maximum(s, np.minimum(scales[rows], scale_floor))
            good, kept = rows[~bad], ~bad
            rotations[good], scales[good] = r[kept], s[kept]
            if sh is not None and c is not None:
                sh[good] = c[kept]
            degenerate[rows[bad]] = True
    return rotations, scales, sh, degenerate


STILL, TURNED, BENT = 0, 1, 2


def _kinds(jacobians: Floats) -> NDArray[np.int8]:
    """Say of each R (N, 3, 3) whether it is the identity, another rotation, or neither."""
    tolerance = 16 * np.finfo(jacobians.dtype).eps
    eye = np.eye(3, dtype=jacobians.dtype)
    still = np.abs(jacobians - eye).max(axis=(1, 2), initial=0) <= tolerance
    with np.errstate(over="ignore"):
        gram = np.swapaxes(jacobians, -1, -2) @ jacobians
        turned = (np.abs(gram - eye).max(axis=(1, 2), initial=0) <= tolerance) & (
            np.linalg.det(jacobians) > 0
        )
    return np.where(still, STILL, np.where(turned, TURNED, BENT)).astype(np.int8)


def _same_hemisphere(quaternions: Floats, reference: Floats) -> Floats:
    flip = np.einsum("ni,ni->n", quaternions, reference) < 0
    return np.where(flip[:, None], -quaternions, quaternions)


Shapes = tuple[Floats, Floats, Floats | None, NDArray[np.bool_]]


def _turn(rotations: Floats, scales: Floats, sh: Floats | None, turns: Floats) -> Shapes:
    turned = normalize_quaternions(quaternion_multiply(matrix_to_quaternion(turns), rotations))
    turned = _same_hemisphere(turned, rotations)
    return turned, scales, None if sh is None else rotate_sh(sh, turns), np.zeros(len(rotations), bool)


def _bend(rotations: Floats, scales: Floats, sh: Floats | None, jacobians: Floats) -> Shapes:
    frames = quaternion_to_matrix(rotations)
    turns = polar_rotation(jacobians)
    axes, new_scales = covariance_axes(jacobians @ frames * scales[:, None, :], turns @ frames)
    quaternions = _same_hemisphere(matrix_to_quaternion(axes), rotations)
    bad = ~(np.isfinite(new_scales).all(axis=1) & np.isfinite(quaternions).all(axis=1))
    return quaternions, new_scales, None if sh is None else rotate_sh(sh, turns), bad
