"""What is seen of a gesture while it is drawn: the mask on the splats, and the outline."""

from __future__ import annotations

from typing import Any

import bpy
import gpu
import numpy as np
from numpy.typing import NDArray

from ...core.selection.depth import FrontSurface
from ...core.selection.depth_picture import DepthPicture
from ...core.selection.layer import SelectionLayer
from ...core.selection.preview import Preview
from ...core.selection.shapes import Ellipse, Lasso, Rectangle, Shape, Stroke
from ...core.selection.viewpoint import Viewpoint
from ..attributes import read_attribute, splats
from ..drawer.mask import Mask
from ..drawer.viewport import DRAWER
from .gestures import depth_picture, surface_under
from .pixel_map import SAME, PixelMap

ROUND = 64  # corners of an ellipse's outline


class GestureView:
    """The preview of one modal gesture. Holds numbers only, no reference into Blender's data.

    view : whose pixels layers are drawn in; pixels : from those of the region to them
    uid : session number of the object; borrowed : whether our drawer shows it for the gesture only
    """

    borrowed = False

    def __init__(self, object: bpy.types.Object, view: Viewpoint, pixels: PixelMap = SAME) -> None:
        self.uid, self.viewpoint, self.pixels = object.session_uid, view, pixels
        self.preview = Preview(view, read_attribute(splats(object), "position"))
        self.outlines: list[NDArray[np.float32]] = []
        self._depths: DepthPicture | None = None
        self._region = 0
        self._handle: Any = None

    def start(self, region: bpy.types.Region) -> None:
        """Draw the outline over a region, until `stop`."""
        self._region = region.as_pointer()
        self._handle = bpy.types.SpaceView3D.draw_handler_add(self._draw, (), "WINDOW", "POST_PIXEL")

    def region_now(self) -> tuple[int, int, int, int] | None:
        """Return where the region of `start` lies in its window now, None where it is gone."""
        for window in bpy.context.window_manager.windows:
            for area in window.screen.areas:
                for region in area.regions if area.type == "VIEW_3D" else ():
                    if region.as_pointer() == self._region:
                        return region_box(region)
        return None

    def stop(self) -> None:
        """Show the splats as they are again."""
        DRAWER.mask = None
        if self._handle is not None:
            bpy.types.SpaceView3D.draw_handler_remove(self._handle, "WINDOW")
            self._handle = None

    def front(self, object: bpy.types.Object, layer: SelectionLayer) -> FrontSurface | None:
        """Return the surface under the gesture; depths are taken once, splats stay where they are."""
        if self._depths is None:
            self._depths = depth_picture(object, self.preview)
        return surface_under(self._depths, layer.shape, layer.feather)

    def show(self, layer: SelectionLayer) -> None:
        """Show what a layer selects."""
        self.outlines = [self.pixels.to_region(line) for line in outlines_of(layer.shape)]
        DRAWER.mask = Mask(self.uid, self.preview.mask(layer))

    def _draw(self) -> None:
        region = bpy.context.region
        if region is None or region.as_pointer() != self._region:
            return
        for line in self.outlines:
            if len(line) > 1:
                _draw_line(region, line)


def region_box(region: bpy.types.Region) -> tuple[int, int, int, int]:
    """Return x, y, width and height of a region in its window, pixels."""
    return region.x, region.y, region.width, region.height


def _draw_line(region: bpy.types.Region, line: NDArray[np.float32]) -> None:
    """Draw a line (P, 2) over a region, white on black."""
    shader = gpu.shader.from_builtin("POLYLINE_UNIFORM_COLOR")
    layout = shader.format_calc()
    vertices: Any = gpu.types.GPUVertBuf(layout, len(line))
    vertices.attr_fill("pos", np.pad(line, ((0, 0), (0, 1))).tolist())
    batch = gpu.types.GPUBatch(type="LINE_STRIP", buf=vertices)
    gpu.state.blend_set("ALPHA")
    shader.bind()
    shader.uniform_float("viewportSize", (region.width, region.height))
    for width, colour in ((3.0, (0.0, 0.0, 0.0, 0.6)), (1.5, (1.0, 1.0, 1.0, 1.0))):
        shader.uniform_float("lineWidth", width)
        shader.uniform_float("color", colour)
        batch.draw(shader)
    gpu.state.blend_set("NONE")


def outlines_of(shape: Shape) -> list[NDArray[np.float32]]:
    """Return the lines (P, 2) that are drawn for a shape, pixels, closed but for the path of a stroke.

    A stroke has a circle at the pen as well, as large as the brush.
    """
    if isinstance(shape, Stroke):
        path = np.array(shape.points, np.float32).reshape(-1, 2)
        return [path, *(path[-1] + radius * _circle() for radius in shape.radii[-1:])]
    if isinstance(shape, Lasso):
        return [np.array([*ring, ring[0]], np.float32) for ring in shape.outlines]
    assert isinstance(shape, (Rectangle, Ellipse))
    if isinstance(shape, Rectangle):
        local = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)]) * shape.half
    else:
        local = _circle() * shape.radii
    c, s = np.cos(shape.angle), np.sin(shape.angle)
    return [(local @ np.array([[c, s], [-s, c]]) + shape.centre).astype(np.float32)]


def _circle() -> NDArray[np.float32]:
    turn = np.linspace(0, 2 * np.pi, ROUND + 1)
    return np.stack([np.cos(turn), np.sin(turn)], axis=1).astype(np.float32)
