"""Draw a view to arrays, without any window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import gpu
import numpy as np
from numpy.typing import NDArray

from ...core.render.camera import Camera
from ...core.render.depth_order import back_to_front, posed_view_depths
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
    moves = bone_moves(atlas, items)
    depths = [item_depths(atlas, item, move, camera) for item, move in zip(items, moves, strict=True)]
    near, far = camera.depth_range
    order = back_to_front(np.concatenate(depths), near, far)
    return Frame(
        camera=upload_camera(camera, shading, len(items)),
        items=upload_items(atlas, items, moves, camera),
        order=upload_order(order),
        count=len(order),
        bones=upload_bones(moves, items) if shading.deform else None,
    )


def item_depths(atlas: Atlas, item: Item, moves: F32, camera: Camera) -> F32:
    """Return the view depths of an item's posed splats, (N,)."""
    span = atlas.spans[item.span]
    to_view = camera.view @ item.matrix
    row = -to_view[2]
    row[3] += row[:3] @ span.centre
    skin = span.skin
    if skin is None or not len(moves):
        return span.local @ row[:3].astype(np.float32) + np.float32(row[3])
    static = np.zeros((1, 3, 4), np.float32)
    return posed_view_depths(span.local, skin.indices, skin.weights, np.concatenate([moves, static]), row)


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
