"""How far a quadratic form of a normal vector strays: quantiles of |e|, e_k = z^T M_k z / 2, z ~ N(0, I).

With S = (sum_k M_k^2)^(1/2) and its eigenvalues m1 >= m2 >= m3, |e| <= z^T S z / 2 for every z: for a unit
vector c the square of sum_k c_k M_k is at most sum_k M_k^2 as an operator, and the square root is monotone.
So quantiles of |e| are bounded by those of a weighted sum of three chi-squares, which depend on (m2 / m1,
m3 / m1) alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]

CONFIDENCE = 0.95
CHI2 = (3.841459, 5.991465, 7.814728)  # 95 % quantiles of chi-square with 1, 2 and 3 degrees of freedom
# 95 % quantile of z1^2 + r z2^2 + t z3^2, 0 <= t <= r <= 1, as sum_ij C_ij (r + t)^i (r^2 + t^2)^j: a
# least-squares fit to quadrature on a grid of 21 x 21, relative error below 6e-4, exact at the corners.
_QUANTILE = (
    (3.841459, 0.353467, -0.633468, 3.164067, -0.012828, -0.350266),
    (1.012362, 3.272395, -6.762565, -3.268721, 1.28886),
    (0.010116, 2.088794, 6.345438, -1.37146),
    (-1.498463, -2.233404, 1.006078),
    (0.536693, -1.331968),
    (0.534879,),
)


def chi2_quantile(second: Floats, third: Floats) -> Floats:
    """Return the 95 % quantile of z1^2 + second z2^2 + third z3^2, 0 <= third <= second <= 1."""
    x, y = second + third, second**2 + third**2
    total = np.zeros_like(x)
    for row in reversed(_QUANTILE):
        inner = np.zeros_like(y)
        for coefficient in reversed(row):
            inner = inner * y + coefficient
        total = total * x + inner
    return total


def spread(forms: Floats) -> tuple[Floats, Floats]:
    """Return the eigenvalues m1 >= m2 >= m3 of S, (N, 3), and E|e|^2, (N,).

    forms : (N, 3, 3, 3), ``forms[:, a, k, b]`` is the entry (a, b) of the symmetric M_k
    """
    flat = forms.reshape(len(forms), 3, 9)
    squared = flat @ np.swapaxes(flat, 1, 2)
    traces = np.einsum("naka->nk", forms)
    mean_square = 0.25 * (traces**2).sum(axis=1) + 0.5 * np.trace(squared, axis1=1, axis2=2)
    return np.sqrt(np.maximum(eigenvalues(squared), 0)), mean_square


def eigenvalues(matrices: Floats) -> Floats:
    """Return the eigenvalues (N, 3), descending, of symmetric matrices (N, 3, 3) (Smith 1961).

    Accurate to 1e-7 of the largest; many times faster than LAPACK matrix by matrix.
    """
    a = matrices
    mean = np.trace(a, axis1=1, axis2=2) / 3
    (xx, yy, zz) = (a[:, i, i] - mean for i in range(3))
    xy, xz, yz = a[:, 0, 1], a[:, 0, 2], a[:, 1, 2]
    size = np.sqrt((xx**2 + yy**2 + zz**2 + 2 * (xy**2 + xz**2 + yz**2)) / 6)
    determinant = xx * (yy * zz - yz**2) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
    cube = np.where(size > 0, size, 1) ** 3
    angle = np.arccos(np.clip(determinant / (2 * np.where(cube > 0, cube, 1)), -1, 1)) / 3
    largest = mean + 2 * size * np.cos(angle)
    smallest = mean + 2 * size * np.cos(angle + 2 * np.pi / 3)
    return np.stack([largest, 3 * mean - largest - smallest, smallest], axis=1)


def bound(spreads: Floats) -> Floats:
    """Return an upper bound of the 95 % quantile of |e|, (N,), of eigenvalues (N, 3).

    Of all sums of unit trace the weighted chi-square z1^2 has the heaviest tail where it is at most 0.215
    (Szekely & Bakirov 2003); and no sum exceeds m1 times the chi-square of three.
    """
    return 0.5 * np.minimum(CHI2[0] * spreads.sum(axis=1), CHI2[2] * spreads[:, 0])


def bound_quantile(spreads: Floats) -> Floats:
    """Return the 95 % quantile of z^T S z / 2, (N,): an upper bound too, above |e|'s by 8 % at the median."""
    largest = spreads[:, 0]
    safe = np.where(largest > 0, largest, 1)
    return 0.5 * largest * chi2_quantile(spreads[:, 1] / safe, spreads[:, 2] / safe)


def estimate(spreads: Floats, mean_square: Floats) -> Floats:
    """Return an estimate of the 95 % quantile of |e|, (N,): the bound's, scaled to the exact E|e|^2.

    Between 0.96 and 1.02 of the true quantile for nine forms of ten.
    """
    total = spreads.sum(axis=1)
    bounded = total**2 / 4 + (spreads**2).sum(axis=1) / 2  # E of the bound squared
    ratio = mean_square / np.where(bounded > 0, bounded, 1)
    return bound_quantile(spreads) * np.sqrt(ratio)
