"""Bones that are shown in front stay in front of the splats.

Blender draws them into the overlay, which `screen.composite` dims where splats are; whatever lies at the very
front of the depth buffer it spares. So the bones are drawn there once more, their depth only.
"""

from __future__ import annotations

from collections import deque
from typing import Any
from weakref import WeakKeyDictionary

import bpy
import gpu
import numpy as np
from numpy.typing import NDArray

from ...gpu_shaders import source
from .atlas import upload
from .bone_silhouettes import bone_silhouettes
from .bone_templates import F32, Template
from .gpu_objects import kept, released_by
from .shaders import compile_shader

F64 = NDArray[np.floating]
ROW = 1023  # texels of a row of places, whole matrices


def mask_bones_in_front(context: bpy.types.Context, depsgraph: bpy.types.Depsgraph) -> bool:
    """Set the depth of the bound framebuffer to 0 where bones of armatures shown in front are visible.

    Returns whether there are any.
    """
    found = bone_silhouettes(context, depsgraph)
    if found:
        region, view = context.region, context.region_data
        camera = np.array(view.view_matrix), np.array(view.window_matrix)
        draw_masks(found, *camera, region.width, region.height)
    return bool(found)


def draw_masks(
    found: list[tuple[Template, F32]], view: F64, projection: F64, width: int, height: int
) -> None:
    """Draw templates where they stand, (n, 4, 4) to world space, at depth 0 and without colour.

    Parameters
    ----------
    view, projection : (4, 4), world to view and to OpenGL clip space
    width, height : of the framebuffer, px
    """
    shader = _shader()
    gpu.state.depth_test_set("ALWAYS")
    gpu.state.depth_mask_set(True)
    gpu.state.color_mask_set(False, False, False, False)
    try:
        shader.bind()
        shader.uniform_float("to_clip", (projection @ view).T.ravel().tolist())
        shader.uniform_float("pixel", (2 / width, 2 / height))
        for template, places in found:
            side = 2 * template.spread + 1 if template.wire else 2  # lines are thin, faces are not
            shader.uniform_int("side", side)
            shader.uniform_float("spread", template.spread)
            texture = _places(facing(places, view) if template.faces_eye else places)
            _alive.append(texture)
            shader.uniform_sampler("places", texture)
            _batch(template).draw_instanced(shader, instance_count=len(places) * side * side)
    finally:
        gpu.state.color_mask_set(True, True, True, True)
        gpu.state.depth_mask_set(False)
        gpu.state.depth_test_set("NONE")


def facing(places: F32, view: F64) -> F32:
    """Return places (n, 4, 4) turned towards the eye, as large as along their first axis."""
    turned = places.copy()
    sizes = np.linalg.norm(places[:, :3, 0], axis=1)
    turned[:, :3, :3] = sizes[:, None, None] * view[:3, :3].T
    return turned


def _places(matrices: F32) -> gpu.types.GPUTexture:
    """Upload the upper three rows of matrices (n, 4, 4)."""
    rows = matrices[:, :3].reshape(-1, 4)
    width = min(ROW, len(rows))
    height = -(-len(rows) // width)
    texels = np.zeros((height * width, 4), np.float32)
    texels[: len(rows)] = rows
    return upload(texels.reshape(height, width, 4), "RGBA32F")


# Vulkan draws later than it is told to, and does not keep textures for that.
_alive: deque[gpu.types.GPUTexture] = deque(maxlen=256)
_batches: WeakKeyDictionary[Template, gpu.types.GPUBatch] = WeakKeyDictionary()
released_by(_alive.clear)
released_by(_batches.clear)


def _batch(template: Template) -> gpu.types.GPUBatch:
    batch = _batches.get(template)
    if batch is None:
        layout = gpu.types.GPUVertFormat()
        layout.attr_add(id="position", comp_type="F32", len=3, fetch_mode="FLOAT")
        vertices: Any = gpu.types.GPUVertBuf(layout, len(template.points))
        vertices.attr_fill("position", template.points)
        batch = gpu.types.GPUBatch(type="LINES" if template.wire else "TRIS", buf=vertices)
        _batches[template] = batch
    return batch


@kept
def _shader() -> gpu.types.GPUShader:
    info = gpu.types.GPUShaderCreateInfo()
    info.vertex_in(0, "VEC3", "position")
    info.push_constant("MAT4", "to_clip")
    info.push_constant("VEC2", "pixel")
    info.push_constant("FLOAT", "spread")
    info.push_constant("INT", "side")
    info.sampler(0, "FLOAT_2D", "places")
    info.fragment_out(0, "VEC4", "result")
    info.vertex_source(source("mask_vert"))
    info.fragment_source(source("mask_frag"))
    return compile_shader(info)
