"""Draw a view to arrays, without any window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gpu
import numpy as np
from numpy.typing import NDArray

from ...core.errors import GaussiAnimateError
from ...core.render.camera import Camera
from .atlas import Atlas
from .draw import (
    Frame,
    Item,
    Shading,
    Show,
    bone_moves,
    draw_frame,
    upload_bones,
    upload_camera,
    upload_items,
    upload_order,
)
from .gradient_arrows import GradientArrows
from .order import order_key, sort

F32 = NDArray[np.float32]
PLAIN = Shading()


class RenderError(GaussiAnimateError):
    """Splats cannot be rendered as asked."""


@dataclass(frozen=True)
class Picture:
    """What was drawn; row 0 is the bottom one.

    rgba : (H, W, 4) float32, premultiplied
    depth : (H, W) float32, metres along the view axis, mean of the splats' depths weighted with what each
        contributes to alpha; inf where alpha is 0; None where it was not asked for
    """

    rgba: F32
    depth: F32 | None = None


def empty_picture(width: int, height: int) -> Picture:
    """Return a picture that shows nothing."""
    return Picture(np.zeros((height, width, 4), np.float32), np.full((height, width), np.inf, np.float32))


def prepare(atlas: Atlas, items: Sequence[Item], camera: Camera, shading: Shading) -> Frame:
    """Sort, and upload everything a view needs."""
    if not shading.deform:
        items = [replace(item, transforms=None) for item in items]
    moves = bone_moves(atlas, items)
    order = sort([atlas.spans[item.span] for item in items], order_key(atlas, items, moves, camera))
    return Frame(
        camera=upload_camera(camera, shading, len(items)),
        items=upload_items(atlas, items, moves, camera),
        order=upload_order(order),
        count=len(order),
        bones=upload_bones(moves, items),
    )


def draw_picture(
    atlas: Atlas,
    items: Sequence[Item],
    camera: Camera,
    shading: Shading = PLAIN,
    *,
    with_depth: bool = False,
    draw_in_front: Callable[[], None] | None = None,
    mask: gpu.types.GPUTexture | None = None,
) -> Picture:
    """Draw one view over nothing.

    Parameters
    ----------
    with_depth : draw the depths as well
    draw_in_front : draws what hides splats behind it into the depth buffer, with the depth test on
    mask : (rows of the atlas,) what a gesture selects, shown over the colours

    Raises
    ------
    RenderError : the picture is too large for the device
    """
    frame = replace(prepare(atlas, items, camera, shading), mask=mask)
    target = _target(camera)
    try:
        with target.bind():
            buffer = gpu.state.active_framebuffer_get()
            buffer.clear(color=(0.0, 0.0, 0.0, 0.0), depth=1.0)
            if draw_in_front is not None:
                _draw_depths(draw_in_front)
            depths = None
            if with_depth:
                by_depth = replace(shading, show=Show.DEPTH, outlines=False, mark_unweighted=False)
                far = replace(frame, camera=upload_camera(camera, by_depth, len(items)))
                _draw_splats(atlas, far, by_depth)
                depths = _read(buffer, camera)
                buffer.clear(color=(0.0, 0.0, 0.0, 0.0))
            _draw_splats(atlas, frame, shading)
            if shading.gradients:
                GradientArrows().draw(atlas, items, frame, camera, shading)
            rgba = _read(buffer, camera)
    finally:
        target.free()
    if depths is None:
        return Picture(rgba)
    drawn = depths[..., 3] > 0
    mean = np.divide(
        depths[..., 0], depths[..., 3], out=np.full(drawn.shape, np.inf, np.float32), where=drawn
    )
    return Picture(rgba, mean)


def _target(camera: Camera) -> Any:
    try:
        return gpu.types.GPUOffScreen(camera.width, camera.height, format="RGBA32F")
    except RuntimeError as error:
        raise RenderError(
            f"The graphics device does not hold a picture of {camera.width} x {camera.height} pixels "
            f"({error}); render a smaller one"
        ) from None


def _draw_depths(draw: Callable[[], None]) -> None:
    gpu.state.depth_test_set("LESS_EQUAL")
    gpu.state.depth_mask_set(True)
    gpu.state.color_mask_set(False, False, False, False)
    try:
        draw()
    finally:
        gpu.state.color_mask_set(True, True, True, True)
        gpu.state.depth_mask_set(False)
        gpu.state.depth_test_set("NONE")


def _draw_splats(atlas: Atlas, frame: Frame, shading: Shading) -> None:
    gpu.state.depth_test_set("LESS_EQUAL")
    try:
        draw_frame(atlas, frame, shading)
    finally:
        gpu.state.depth_test_set("NONE")


def _read(buffer: Any, camera: Camera) -> F32:
    values = buffer.read_color(0, 0, camera.width, camera.height, 4, 0, "FLOAT")
    values.dimensions = camera.width * camera.height * 4
    return np.asarray(values, np.float32).reshape(camera.height, camera.width, 4)
