"""Whether points lie inside a closed surface."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .surface import Surface


def winding_numbers(surface: Surface, points: NDArray[np.floating]) -> NDArray[np.float64]:
    """How often the surface winds around each point, (N,): 1 inside, 0 outside (van Oosterom & Strackee
    1983).

    Parameters
    ----------
    surface : closed surface of T triangles
    points : (N, 3) metres; the cost is N * T, meant for the nodes of a skeleton
    """
    corners = surface.vertices[surface.faces]  # (T, 3, 3)
    result = np.empty(len(points))
    for k, point in enumerate(np.asarray(points, np.float64)):
        a, b, c = (corners - point).transpose(1, 0, 2)
        la, lb, lc = (np.sqrt(np.einsum("ij,ij->i", v, v)) for v in (a, b, c))
        triple = np.einsum("ij,ij->i", a, np.cross(b, c))
        dots = [np.einsum("ij,ij->i", u, v) for u, v in ((a, b), (b, c), (c, a))]
        result[k] = np.arctan2(triple, la * lb * lc + dots[0] * lc + dots[1] * la + dots[2] * lb).sum() / (
            2 * np.pi
        )
    return result


def inside(surface: Surface, points: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Mask (N,) of the points that lie inside a closed surface."""
    return winding_numbers(surface, points) > 0.5
