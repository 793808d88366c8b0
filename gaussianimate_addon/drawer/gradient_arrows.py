"""Arrows along which the weight of the active bone grows, over the splats they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import gpu
import numpy as np
from numpy.typing import NDArray

from ...core.render.camera import Camera
from ...gpu_shaders import SplatVariant
from .atlas import Atlas, Span
from .draw import Frame, Item, Shading, bind_frame, draw_frame, upload_camera, upload_order
from .gpu_objects import kept
from .shaders import arrow_shader

LIMIT = 5000  # arrows
SPACING = 0.035  # between arrows, of the cloud's radius; half of the longest arrow
FLAT = 0.5  # change of weight over the cloud's radius that is not worth an arrow


def arrow_rows(atlas: Atlas, items: Sequence[Item]) -> NDArray[np.int64]:
    """Return which splats get an arrow, as places in the drawing order of all items.

    Of the splats about which the marked bones' weight changes it is one for each cell of a grid, so that the
    arrows are spread evenly; at most `LIMIT`.
    """
    rows, first = [np.zeros(0, np.int64)], 0
    for item in items:
        span = atlas.spans[item.span]
        if item.marks is not None and item.transforms is not None and item.marks.any():
            steep = np.flatnonzero(_steepness(span, item.marks) > FLAT)
            rows.append(first + steep[_spread(span.local[steep], SPACING * span.radius)])
        first += len(span)
    found = np.concatenate(rows)
    if len(found) <= LIMIT:
        return found
    return found[np.linspace(0, len(found) - 1, LIMIT).astype(np.int64)]


def _steepness(span: Span, marks: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return (N,) lengths of the gradients of the marked bones' weight, times the cloud's radius."""
    if span.skin is None:
        return np.zeros(len(span), np.float32)
    marked = np.append(marks, np.float32(0))[span.skin.indices]  # -1, the static bone, is never marked
    gradient = np.einsum("nk,nki->ni", marked, span.skin.gradients)
    return np.linalg.norm(gradient, axis=1) * span.radius


def _spread(points: NDArray[np.float32], spacing: float) -> NDArray[np.intp]:
    """Return one row for each cell of a grid that holds points (N, 3)."""
    usable = np.flatnonzero(np.isfinite(points).all(axis=1))
    cells = np.floor(points[usable] / spacing).astype(np.int64)
    _, rows = np.unique(cells @ np.array([1, 1 << 20, 1 << 40]), return_index=True)
    return usable[rows]


class GradientArrows:
    """Draws the arrows; which splats have one is kept until the active bone or the splats change."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._rows: gpu.types.GPUTexture | None = None
        self._count = 0

    def draw(
        self, atlas: Atlas, items: Sequence[Item], frame: Frame, camera: Camera, shading: Shading
    ) -> None:
        """Draw into the bound framebuffer, hidden by what is in front, splats with it.

        The depths of splats that are at least half opaque are left in the framebuffer.
        """
        self._choose(atlas, items)
        if not self._count or atlas.layout is None or frame.bones is None or not shading.deform:
            return
        variant = SplatVariant(atlas.layout, atlas.influences, frame.bones.capacity, colours=False)
        shader = arrow_shader(variant)
        self._draw_depths(atlas, items, frame, camera, shading)
        gpu.state.depth_test_set("LESS_EQUAL")
        bind_frame(shader, variant, atlas, replace(frame, order=self._rows))
        _arrow().draw_instanced(shader, instance_count=self._count)
        gpu.state.depth_test_set("NONE")

    def _choose(self, atlas: Atlas, items: Sequence[Item]) -> None:
        marks = tuple(b"" if item.marks is None else item.marks.tobytes() for item in items)
        posed = tuple(item.transforms is not None for item in items)
        key = (atlas.version, tuple(item.span for item in items), marks, posed)
        if key != self._key:
            rows = arrow_rows(atlas, items)
            self._key, self._count = key, len(rows)
            self._rows = upload_order(rows) if len(rows) else None

    @staticmethod
    def _draw_depths(
        atlas: Atlas, items: Sequence[Item], frame: Frame, camera: Camera, shading: Shading
    ) -> None:
        solid = replace(shading, solid=True, outlines=False)
        gpu.state.depth_test_set("LESS_EQUAL")
        gpu.state.depth_mask_set(True)
        gpu.state.color_mask_set(False, False, False, False)
        try:
            draw_frame(atlas, replace(frame, camera=upload_camera(camera, solid, len(items))), solid)
        finally:
            gpu.state.color_mask_set(True, True, True, True)
            gpu.state.depth_mask_set(False)
            gpu.state.depth_test_set("NONE")


@kept
def _arrow() -> gpu.types.GPUBatch:
    """A dark arrow and a light one within it: shaft and head, see ``arrow_vert.glsl``."""
    shaft = [(0, -1), (1, -1), (1, 1), (0, -1), (1, 1), (0, 1)]
    head = [(1, -4), (2, 0), (1, 4)]
    corners = [(*corner, shade) for shade in (0.0, 1.0) for corner in shaft + head]
    layout = gpu.types.GPUVertFormat()
    layout.attr_add(id="part", comp_type="F32", len=3, fetch_mode="FLOAT")
    vertices = gpu.types.GPUVertBuf(layout, len(corners))
    vertices.attr_fill("part", corners)
    return gpu.types.GPUBatch(type="TRIS", buf=vertices)
