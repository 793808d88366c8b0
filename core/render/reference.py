"""The picture of splats composited exactly: slow, plain, and what every other drawing is measured by.

Every pixel sees all splats of all objects in one order, back to front by the depth of their centres, in
double precision: no tiles, no early end, no limit to alpha. `projection.py` says what each splat contributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ..cloud import GaussianCloud
from .camera import Camera
from .projection import ALPHA_CUT, ScreenSplats, project, srgb_to_linear

F64 = NDArray[np.float64]
Floats = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class RasterImage:
    """A picture; row 0 is the bottom row.

    rgba : (H, W, 4) float64, colour premultiplied by alpha
    depth : (H, W) float64, metres along the view axis, mean of the splats' depths weighted with what each
        contributes to alpha; nan where alpha is 0
    """

    rgba: F64
    depth: F64


def rasterise(
    items: Sequence[tuple[GaussianCloud, F64 | None]], camera: Camera, *, linear: bool = False
) -> RasterImage:
    """Draw objects that may interleave, over nothing.

    Parameters
    ----------
    items : posed clouds in object space, each with its matrix (4, 4) object -> world (None: identity)
    camera : the camera
    linear : convert each splat's colour from sRGB to scene-linear before blending
    """
    if not items:
        shape = (camera.height, camera.width)
        return RasterImage(np.zeros((*shape, 4)), np.full(shape, np.nan))
    splats = _joined([project(cloud, camera, matrix) for cloud, matrix in items])
    canvas = np.zeros((5, camera.height, camera.width))  # red, green, blue, alpha, depth
    colour = srgb_to_linear(splats.colour) if linear else splats.colour
    values = np.column_stack([colour, np.ones(len(splats)), splats.depth])[:, :, None, None]
    boxes = _boxes(splats, camera)
    across, up = np.arange(camera.width) + 0.5, np.arange(camera.height)[:, None] + 0.5
    for k in np.argsort(-splats.depth, kind="stable"):
        x0, x1, y0, y1 = boxes[k]
        if x0 < x1 and y0 < y1:
            alpha = _alpha(splats, k, across[x0:x1], up[y0:y1])
            tile = canvas[:, y0:y1, x0:x1]
            tile += alpha * (values[k] - tile)
    with np.errstate(invalid="ignore"):
        depth = canvas[4] / canvas[3]
    return RasterImage(np.ascontiguousarray(np.moveaxis(canvas[:4], 0, -1)), depth)


def _joined(parts: Sequence[ScreenSplats]) -> ScreenSplats:
    """Return the splats of all objects; ``index`` stays that of each object's cloud."""
    names = [field.name for field in fields(ScreenSplats)]
    return ScreenSplats(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _boxes(splats: ScreenSplats, camera: Camera) -> list[list[int]]:
    """Return first and end pixel of the box around each quad, x0 x1 y0 y1, within the picture."""
    reach = np.abs(splats.e1) * splats.half_extent[:, :1] + np.abs(splats.e2) * splats.half_extent[:, 1:]
    size = np.array([camera.width, camera.height])
    first = np.clip(np.ceil(splats.centre - reach - 0.5), 0, size)
    end = np.clip(np.floor(splats.centre + reach - 0.5) + 1, 0, size)
    return np.stack([first[:, 0], end[:, 0], first[:, 1], end[:, 1]], axis=1).astype(int).tolist()


def _alpha(splats: ScreenSplats, k: int, x: Floats, y: Floats) -> Floats:
    """Return alpha (h, w) of splat ``k`` at pixel centres ``x`` (w,), ``y`` (h, 1)."""
    (ex, ey), (cx, cy) = splats.e1[k], splats.centre[k]
    u = ex * (x - cx) + ey * (y - cy)
    v = ex * (y - cy) - ey * (x - cx)
    s1, s2 = splats.sigma[k]
    alpha = splats.opacity[k] * np.exp(-0.5 * ((u / s1) ** 2 + (v / s2) ** 2))
    r1, r2 = splats.half_extent[k]
    return np.where((alpha >= ALPHA_CUT) & (np.abs(u) <= r1) & (np.abs(v) <= r2), alpha, 0)


def psnr(a: Floats, b: Floats, peak: float = 1.0) -> float:
    """Return the peak signal-to-noise ratio of two pictures of one shape, dB; inf where they are equal."""
    error = np.mean((np.asarray(a, dtype=np.float64) - b) ** 2)
    return float("inf") if error == 0 else float(10 * np.log10(peak**2 / error))
