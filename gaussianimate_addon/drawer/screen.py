"""Draw a picture of its own over a viewport, with the depth of what the viewport shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gpu
import numpy as np
from numpy.typing import NDArray

from ...gpu_shaders import source
from .atlas import upload
from .gpu_objects import kept
from .shaders import compile_shader


class Canvas:
    """An off-screen picture of the size of a viewport, half float, premultiplied.

    Only textures are kept, which all windows share: a framebuffer must not outlive its window.
    """

    def __init__(self) -> None:
        self._color: Any = None
        self._depth: Any = None

    def texture(self) -> gpu.types.GPUTexture:
        """Return the picture."""
        return self._color

    @contextmanager
    def bind(self, width: int, height: int) -> Iterator[None]:
        """Draw to the canvas within this context."""
        if self._color is None or (self._color.width, self._color.height) != (width, height):
            self._color = gpu.types.GPUTexture((width, height), format="RGBA16F")
            self._depth = gpu.types.GPUTexture((width, height), format="DEPTH_COMPONENT32F")
        target: Any = gpu.types.GPUFrameBuffer(color_slots=(self._color,), depth_slot=self._depth)
        with target.bind():
            yield


def clear(depths: NDArray[np.float32] | None) -> None:
    """Empty the bound canvas; ``depths`` (H, W) in 0..1, or None: nothing is in front."""
    buffer: Any = gpu.state.active_framebuffer_get()
    buffer.clear(color=(0.0, 0.0, 0.0, 0.0), depth=1.0)
    if depths is None:
        return
    texture = upload(depths[:, :, None], "R32F")  # a shader does not keep what it samples
    shader = _depth_shader()
    gpu.state.depth_test_set("ALWAYS")
    gpu.state.depth_mask_set(True)
    try:
        shader.bind()
        shader.uniform_sampler("depths", texture)
        _screen().draw(shader)
    finally:
        gpu.state.depth_mask_set(False)
        gpu.state.depth_test_set("NONE")


def composite(picture: gpu.types.GPUTexture, transmit: bool = False, masked: bool = False) -> None:
    """Lay the picture over the bound framebuffer; with ``transmit`` only dim that to what the picture leaves.

    With ``masked`` nothing is drawn where the framebuffer's depth is 0 (`bones_in_front`).
    """
    shader = _composite_shader()
    gpu.state.depth_test_set("LESS_EQUAL" if masked else "NONE")
    gpu.state.blend_set("MULTIPLY" if transmit else "ALPHA_PREMULT")
    try:
        shader.bind()
        shader.uniform_bool("transmit", transmit)
        shader.uniform_sampler("picture", picture)
        _screen().draw(shader)
    finally:
        gpu.state.blend_set("NONE")
        gpu.state.depth_test_set("NONE")


def read_depths(buffer: gpu.types.GPUFrameBuffer, width: int, height: int) -> NDArray[np.float32]:
    """Return the depths (H, W) of a framebuffer, 0..1."""
    values: Any = buffer.read_depth(0, 0, width, height)
    values.dimensions = width * height
    return np.asarray(values, np.float32).reshape(height, width)


@kept
def _composite_shader() -> gpu.types.GPUShader:
    info = gpu.types.GPUShaderCreateInfo()
    info.sampler(0, "FLOAT_2D", "picture")
    info.push_constant("BOOL", "transmit")
    info.fragment_out(0, "VEC4", "result")
    return _screen_shader(info, "composite_frag")


@kept
def _depth_shader() -> gpu.types.GPUShader:
    info = gpu.types.GPUShaderCreateInfo()
    info.sampler(0, "FLOAT_2D", "depths")
    info.fragment_out(0, "VEC4", "result")
    info.depth_write("ANY")
    return _screen_shader(info, "depth_frag")


def _screen_shader(info: gpu.types.GPUShaderCreateInfo, fragment: str) -> gpu.types.GPUShader:
    info.vertex_in(0, "VEC2", "corner")
    info.vertex_source(source("screen_vert"))
    info.fragment_source(source(fragment))
    return compile_shader(info)


@kept
def _screen() -> gpu.types.GPUBatch:
    layout = gpu.types.GPUVertFormat()
    layout.attr_add(id="corner", comp_type="F32", len=2, fetch_mode="FLOAT")
    corners = gpu.types.GPUVertBuf(layout, 4)
    corners.attr_fill("corner", [(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)])
    return gpu.types.GPUBatch(type="TRI_STRIP", buf=corners)
