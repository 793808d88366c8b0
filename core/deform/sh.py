"""Real spherical harmonics in the 3DGS convention (Kerbl et al. 2023) and their rotation."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]

SH_C0 = 0.28209479177387814
SH_C1 = 0.4886025119029199
SH_C2 = (1.0925484305920792, 0.31539156525252005, 0.5462742152960396)
SH_C3 = (0.5900435899266435, 2.890611442640554, 0.4570457994644658, 0.3731763325901154, 1.445305721320277)


def sh_basis(directions: Floats, degree: int) -> Floats:
    """Evaluate the (degree + 1)^2 basis functions at unit ``directions`` (..., 3), degree 0-3.

    A splat's colour seen along d (from the camera to the splat) is ``0.5 + sh_basis(d, degree) @ sh``. The
    basis is the orthonormal real one times (-1)^m.
    """
    directions = np.asarray(directions)
    bands = [evaluate_band(degree_, *np.moveaxis(directions, -1, 0)) for degree_ in range(degree + 1)]
    return np.stack([value for band in bands for value in band], axis=-1)


def evaluate_band(degree: int, x: Floats, y: Floats, z: Floats) -> list[Floats]:
    """Return the 2 degree + 1 basis functions of one band, each shaped like x."""
    if degree == 0:
        return [np.full_like(x, SH_C0)]
    if degree == 1:
        return [-SH_C1 * y, SH_C1 * z, -SH_C1 * x]
    xx, yy, zz, xy = x * x, y * y, z * z, x * y
    if degree == 2:
        a, b, c = SH_C2
        return [a * xy, -a * y * z, b * (2 * zz - xx - yy), -a * x * z, c * (xx - yy)]
    a, b, c, d, e = SH_C3
    return [
        -a * y * (3 * xx - yy),
        b * xy * z,
        -c * y * (4 * zz - xx - yy),
        d * z * (2 * zz - 3 * xx - 3 * yy),
        -c * x * (4 * zz - xx - yy),
        e * z * (xx - yy),
        -a * x * (xx - 3 * yy),
    ]


@cache
def band_samples(degree: int) -> tuple[Floats, Floats]:
    """Return 2 degree + 1 directions (D, 3) at which band ``degree`` is well determined, and the inverse
    (D, D).

    Greedy choice of the most independent rows (pivoted Gram-Schmidt) among directions spread over the sphere.
    """
    k = np.arange(400) + 0.5
    z, turn = 1 - 2 * k / 400, np.pi * (1 + 5**0.5) * k
    sphere = np.stack([np.sqrt(1 - z * z) * np.cos(turn), np.sqrt(1 - z * z) * np.sin(turn), z], axis=-1)
    rows = np.stack(evaluate_band(degree, *sphere.T), axis=-1)
    rest, chosen = rows.copy(), []
    for _ in range(2 * degree + 1):
        chosen.append(int(np.argmax((rest**2).sum(axis=1))))
        axis = rest[chosen[-1]] / np.linalg.norm(rest[chosen[-1]])
        rest = rest - np.outer(rest @ axis, axis)
    return sphere[chosen], np.linalg.inv(rows[chosen])


def rotate_sh(sh: Floats, rotations: Floats) -> Floats:
    """Rotate the colours of splats with the splats: Y(d) . sh' = Y(Q^T d) . sh for every direction d.

    Every band maps to itself. Its coefficients are read off 2 l + 1 fixed directions, which is exact
    because the band spans just as many functions.

    Parameters
    ----------
    sh : (N, (degree + 1)^2, 3), degree 0-3
    rotations : (N, 3, 3) one rotation a splat, or (3, 3) one for all

    Returns
    -------
    (N, (degree + 1)^2, 3) in the dtype of ``sh``
    """
    sh = np.asarray(sh)
    rotated = sh.copy()
    for degree in range(1, round(sh.shape[1] ** 0.5)):
        band = slice(degree**2, (degree + 1) ** 2)
        directions, inverse = band_samples(degree)
        turned = directions.astype(sh.dtype) @ np.asarray(rotations, dtype=sh.dtype)  # row k is Q^T d_k
        values = (
            np.stack(evaluate_band(degree, *np.moveaxis(turned, -1, 0)), axis=-1) @ sh[:, band]
        )  # (N, D, 3) colours
        rotated[:, band] = inverse.astype(sh.dtype) @ values
    return rotated
