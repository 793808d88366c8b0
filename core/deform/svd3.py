"""Singular values, polar factors and covariances of many 3x3 matrices at once, numpy only.

``numpy.linalg.svd`` calls LAPACK matrix by matrix; here one-sided Jacobi rotations (Hestenes 1958) run over
all matrices together. Beyond speed they keep the *relative* accuracy of every singular value when columns
differ by many orders of magnitude (Demmel & Veselic 1992), which flat and needle-like splats need in
float32; an eigen-decomposition of the covariance loses all digits there.
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
MAX_SWEEPS = 10

# The 24 rotations of the cube: every way to rename and reverse axes without mirroring.
CUBE_ROTATIONS = np.array(
    [
        matrix
        for order in permutations(range(3))
        for signs in product((1.0, -1.0), repeat=3)
        if np.linalg.det(matrix := np.eye(3)[list(order)] * np.array(signs)) > 0
    ]
)


def _dot(x: Floats, y: Floats) -> Floats:
    return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]


def _cross(x: Floats, y: Floats) -> Floats:
    return np.stack([x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]])


def _jacobi(columns: list[Floats], right: list[Floats] | None) -> None:
    """Rotate the three columns (3, N) in place of the list until they are mutually orthogonal."""
    eps = np.finfo(columns[0].dtype).eps
    for _ in range(MAX_SWEEPS):
        converged = True
        for a, b in ((0, 1), (0, 2), (1, 2)):
            x, y = columns[a], columns[b]
            alpha, beta, gamma = _dot(x, x), _dot(y, y), _dot(x, y)
            apart = np.abs(gamma) > 2 * eps * np.sqrt(alpha) * np.sqrt(beta)
            if not apart.any():
                continue
            converged = False
            zeta = (beta - alpha) / (2 * np.where(apart, gamma, 1))
            tangent = np.where(apart, np.copysign(1, zeta) / (np.abs(zeta) + np.sqrt(1 + zeta * zeta)), 0)
            cosine = 1 / np.sqrt(1 + tangent * tangent)
            sine = cosine * tangent
            columns[a], columns[b] = cosine * x - sine * y, sine * x + cosine * y
            if right is not None:
                x, y = right[a], right[b]
                right[a], right[b] = cosine * x - sine * y, sine * x + cosine * y
        if converged:
            return


def _orthonormal(columns: Floats, sigma: Floats) -> Floats:
    """Return unit, orthogonal, right-handed columns from orthogonal ones of descending length sigma.

    Columns of no length (flat splats, projections) are replaced by directions orthogonal to the others.
    """
    tiny = np.finfo(sigma.dtype).tiny
    x_axis = np.array([1, 0, 0], dtype=sigma.dtype)[:, None]
    first = np.where(sigma[0] > tiny, columns[0] / np.maximum(sigma[0], tiny), x_axis)
    second = columns[1] / np.maximum(sigma[1], tiny)
    # The cardinal direction least parallel to the first column stands in for a missing second one.
    least = np.argmin(np.abs(first), axis=0)
    stand_in = (np.arange(3)[:, None] == least).astype(sigma.dtype)
    second = np.where(sigma[1] > tiny, second, stand_in)
    second = second - _dot(first, second) * first
    second = second / np.sqrt(_dot(second, second))
    return np.stack([first, second, _cross(first, second)])


def svd3(matrices: Floats, with_right: bool = True) -> tuple[Floats, Floats, Floats | None]:
    """Decompose A = U diag(s) V^T with U a *rotation*.

    Parameters
    ----------
    matrices : (N, 3, 3) finite float32 or float64
    with_right : also compute V

    Returns
    -------
    U : (N, 3, 3) rotations
    s : (N, 3) singular values >= 0, descending
    V : (N, 3, 3) orthogonal, or None. ``U diag(s) V^T`` is A but for the sign of the last column of U where
        det(U) had to be made +1: then A = U diag(s1, s2, -s3) V^T, and det(V) stays +1. V is a rotation
        always, so U diag(1, 1, 1) V^T is the rotation nearest to A whatever the sign of det A (Kabsch
        1976).
    """
    matrices = np.asarray(matrices)
    size = np.abs(matrices).max(axis=(1, 2), initial=0)
    size = np.where(size > 0, size, 1).astype(matrices.dtype)
    scaled = np.ascontiguousarray((matrices / size[:, None, None]).transpose(2, 1, 0))
    columns = list(scaled)
    identity = np.eye(3, dtype=matrices.dtype)[:, :, None]
    right = [np.broadcast_to(axis, scaled.shape[1:]) for axis in identity] if with_right else None
    with np.errstate(over="ignore", under="ignore"):
        _jacobi(columns, right)
        sigma = np.stack([np.sqrt(_dot(column, column)) for column in columns])
        order = np.argsort(-sigma, axis=0)
        sigma = np.take_along_axis(sigma, order, axis=0)
        left = _orthonormal(np.take_along_axis(np.stack(columns), order[:, None], axis=0), sigma)
    if right is not None:
        turned = np.take_along_axis(np.stack(right), order[:, None], axis=0)
        # An odd reordering mirrors V; the mirror goes into its last column, as it does in U.
        right_matrix = np.stack([turned[0], turned[1], _cross(turned[0], turned[1])]).transpose(2, 1, 0)
    else:
        right_matrix = None
    return left.transpose(2, 1, 0), (sigma * size).T, right_matrix


def polar_rotation(matrices: Floats) -> Floats:
    """Return the rotations (N, 3, 3) nearest to ``matrices`` (N, 3, 3), also where det <= 0 (Kabsch 1976)."""
    left, _, right = svd3(matrices)
    assert right is not None
    return left @ np.swapaxes(right, -1, -2)


def covariance_axes(shapes: Floats, reference: Floats) -> tuple[Floats, Floats]:
    """Factor covariances L L^T = U diag(s^2) U^T, naming the axes as in a reference frame.

    Axes of a covariance have no order and no sign. Among the 24 rotations P of the cube the one is taken that
    brings U P nearest to ``reference``, so that splats keep the order of their scales and never pop.

    Parameters
    ----------
    shapes : (N, 3, 3) L = R Q diag(s)
    reference : (N, 3, 3) rotations

    Returns
    -------
    axes : (N, 3, 3) rotations
    scales : (N, 3) >= 0
    """
    axes, scales, _ = svd3(shapes, with_right=False)
    overlap = (np.swapaxes(axes, -1, -2) @ reference).reshape(
        -1, 9
    )  # U^T ref; trace(ref^T U P) = <U^T ref, P>
    cube = CUBE_ROTATIONS.astype(shapes.dtype)
    best = cube[np.argmax(overlap @ cube.reshape(24, 9).T, axis=1)]
    return axes @ best, np.abs(np.einsum("nab,na->nb", best, scales))
