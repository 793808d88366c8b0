"""Mean-curvature flow that shrinks a closed surface onto its curve skeleton."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from ...progress import Progress, no_progress
from .medial import medial_balls
from .remesh import collapse_short_edges
from .surface import Surface

STAGE = "Contraction"
SHORTEST_EDGE = 3e-3  # of the diagonal; shorter edges of the shrinking mesh collapse
STOP_AREA = 1e-3  # share of the first area
MAX_STEPS = 20
GROWTH = 1.5  # of the smoothing weight, every step
MEDIAL = 0.5  # pull to the inscribed balls, relative to staying in place
FROZEN = 1e9  # weight that keeps a vertex in place


def contract(surface: Surface, *, progress: Progress = no_progress) -> NDArray[np.float64]:
    """Contract a surface to a thin, curve-like shape by implicit mean-curvature flow.

    Mean Curvature Skeletons (Tagliasacchi et al. 2012): each step minimises
    ``w_L x' L x' + sum_i m_i (|x'_i - x_i|^2 + w_M |x'_i - c_i|^2)``, L the cotangent Laplacian of the
    current shape, m_i the first area a vertex stands for and c_i the centre of its inscribed ball. Edges
    that became short collapse, which keeps the triangles sound, and vertices where the tube cannot get
    any thinner stay put, so that finished limbs do not creep along themselves while the trunk still
    shrinks.

    Parameters
    ----------
    surface : closed surface
    progress : called with "Contraction" before each solve

    Returns
    -------
    (V, 3) float64, contracted vertices, metres; same order, so that the surface's faces still hold.
    Vertices that merged share one position.
    """
    scale = float(np.linalg.norm(np.ptp(surface.vertices, axis=0))) or 1.0
    x, faces = surface.vertices / scale, surface.faces
    centres, radii = medial_balls(surface)
    centres /= scale
    mass = ring_areas(x, faces)
    first_area = mass.sum()
    mass *= len(x) / first_area
    image = np.arange(len(x))
    frozen = np.zeros(len(x), bool)
    smoothing = 1.0
    for step in range(MAX_STEPS):
        progress(STAGE, step / MAX_STEPS)
        pull = MEDIAL * mass
        hold = np.where(frozen, FROZEN, mass)
        system = smoothing * cotangent_laplacian(x, faces) + sparse.diags(hold + pull)
        factor = splu(system.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        moved = factor.solve(hold[:, None] * x + pull[:, None] * centres)
        if not np.isfinite(moved).all():
            break
        mesh = collapse_short_edges(moved, faces, SHORTEST_EDGE)
        x, faces = mesh.vertices, mesh.faces
        image = mesh.image[image]
        centres = merged_means(mesh.image, mass * radii, centres)
        radii = merged_means(mesh.image, mass, radii[:, None])[:, 0]
        mass = np.bincount(mesh.image, mass)
        frozen = np.bincount(mesh.image, frozen) > 0
        frozen |= mesh.stuck
        if frozen.all() or len(x) <= 4 or ring_areas(x, faces).sum() < STOP_AREA * first_area:
            break
        smoothing *= GROWTH
    progress(STAGE, 1.0)
    return x[image] * scale


def merged_means(
    image: NDArray[np.int64], weights: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weighted mean (W, D) of the values (V, D) that went to each image."""
    sums = np.stack([np.bincount(image, weights * column) for column in values.T], 1)
    return sums / np.maximum(np.bincount(image, weights), 1e-300)[:, None]


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
