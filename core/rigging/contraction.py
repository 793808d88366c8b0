"""Mean-curvature flow that shrinks a closed surface onto its curve skeleton."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from ..progress import Progress, no_progress
from .surface import Surface

STAGE = "Contraction"
STOP_AREA = 3e-2  # share of the first area; further on, the curve slides along itself
MAX_STEPS = 20


def contract(surface: Surface, *, progress: Progress = no_progress) -> NDArray[np.float64]:
    """Contract a surface to a thin, curve-like shape by implicit mean-curvature flow.

    Desbrun et al. 1999 (implicit fairing) with the weights of Au et al. 2008 (skeleton extraction by mesh
    contraction): each step minimises ``w_L x' L x' + sum_i w_i |x'_i - x_i|^2``, L the cotangent Laplacian of the
    current shape, w_L doubled every step, w_i growing where the surface has collapsed.

    Parameters
    ----------
    surface : closed surface
    progress : called with "Contraction" before each solve

    Returns
    -------
    (V, 3) float64, contracted vertices, metres; same order, so that the surface's faces still hold
    """
    scale = float(np.linalg.norm(np.ptp(surface.vertices, axis=0))) or 1.0
    x, faces = surface.vertices / scale, surface.faces
    first_ring = ring_areas(x, faces)
    area = first_area = first_ring.sum()
    smoothing, hold = 1.0, np.ones(len(x))
    for step in range(MAX_STEPS):
        progress(STAGE, step / MAX_STEPS)
        system = smoothing * cotangent_laplacian(x, faces) + sparse.diags(hold)
        factor = splu(system.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        moved = factor.solve(hold[:, None] * x)
        ring = ring_areas(moved, faces)
        if not np.isfinite(moved).all() or ring.sum() > 1.02 * area:
            break
        x, area = moved, ring.sum()
        if area < STOP_AREA * first_area:
            break
        smoothing *= 2
        hold = np.clip(first_ring / np.maximum(ring, 1e-12 * first_ring), 1, 1e8)
    progress(STAGE, 1.0)
    return x * scale


def cotangent_laplacian(x: NDArray[np.float64], faces: NDArray[np.int32]) -> sparse.csr_matrix:
    """Positive semi-definite Laplacian (V, V) with each cotangent clamped to 1e-3..1e3 against slivers."""
    corners = x[faces]
    rows, columns, values = [], [], []
    for k in range(3):
        u = corners[:, (k + 1) % 3] - corners[:, k]
        v = corners[:, (k + 2) % 3] - corners[:, k]
        double_area = np.maximum(np.linalg.norm(np.cross(u, v), axis=1), 1e-30)
        weight = np.clip((u * v).sum(1) / double_area, 1e-3, 1e3) / 2
        rows += [faces[:, (k + 1) % 3], faces[:, (k + 2) % 3]]
        columns += [faces[:, (k + 2) % 3], faces[:, (k + 1) % 3]]
        values += [weight, weight]
    entries = (np.concatenate(rows), np.concatenate(columns))
    links = sparse.csr_matrix((np.concatenate(values), entries), shape=(len(x), len(x)))
    return sparse.csr_matrix(sparse.diags(np.asarray(links.sum(1)).ravel()) - links)


def ring_areas(x: NDArray[np.float64], faces: NDArray[np.int32]) -> NDArray[np.float64]:
    """A third of the area of the triangles around each vertex, (V,)."""
    a, b, c = x[faces].transpose(1, 0, 2)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 6
    return np.bincount(faces.ravel(), np.repeat(area, 3), minlength=len(x))
