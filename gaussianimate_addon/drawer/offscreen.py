"""Draw a view to arrays, without any window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import gpu
import numpy as np
from numpy.typing import NDArray

from ...core.render.camera import Camera
from .atlas import Atlas
from .draw import (
    Frame,
    Item,
    Shading,
    bone_moves,
    draw_frame,
    upload_bones,
    upload_camera,
    upload_items,
    upload_order,
)
from .order import order_key, sort

F32 = NDArray[np.float32]
PLAIN = Shading()


@dataclass(frozen=True)
class Picture:
    """What was drawn; row 0 is the bottom one.

    rgba : (H, W, 4) float32, premultiplied
    """

    rgba: F32


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


def draw_picture(atlas: Atlas, items: Sequence[Item], camera: Camera, shading: Shading = PLAIN) -> Picture:
    """Draw one view over nothing."""
    frame = prepare(atlas, items, camera, shading)
    target = gpu.types.GPUOffScreen(camera.width, camera.height, format="RGBA32F")
    try:
        with target.bind():
            buffer = gpu.state.active_framebuffer_get()
            buffer.clear(color=(0.0, 0.0, 0.0, 0.0), depth=1.0)
            draw_frame(atlas, frame, shading)
            values = buffer.read_color(0, 0, camera.width, camera.height, 4, 0, "FLOAT")
    finally:
        target.free()
    values.dimensions = camera.width * camera.height * 4
    return Picture(np.array(values, np.float32).reshape(camera.height, camera.width, 4))
