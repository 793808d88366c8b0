"""The colour of a mesh's vertices: from its colour attribute or its material's base colour."""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]


def vertex_colors(mesh: bpy.types.Mesh) -> F32 | None:
    """Return display (sRGB) colours (V, 3) in 0..1, None where the mesh says nothing about its colour.

    The active colour attribute comes first, then each face's Principled base colour (image or plain).
    """
    attribute = mesh.color_attributes.active_color
    if attribute is not None:
        return _from_attribute(mesh, attribute)
    if not any(_principled(material) for material in mesh.materials):
        return None
    return _from_materials(mesh)


def _from_attribute(mesh: bpy.types.Mesh, attribute: Any) -> F32:
    colors = np.empty(4 * len(attribute.data), np.float32)
    attribute.data.foreach_get("color_srgb", colors)
    colors = np.clip(colors.reshape(-1, 4)[:, :3], 0, 1)
    return colors if attribute.domain == "POINT" else _corners_to_vertices(mesh, colors)


def _from_materials(mesh: bpy.types.Mesh) -> F32:
    """Return the materials' base colours at the corners, averaged over each vertex."""
    colors = np.full((len(mesh.loops), 3), 0.8, np.float32)
    slots = np.empty(len(mesh.polygons), np.int32)
    sizes = np.empty(len(mesh.polygons), np.int32)
    mesh.polygons.foreach_get("material_index", slots)
    mesh.polygons.foreach_get("loop_total", sizes)
    slots = np.repeat(slots, sizes)
    for slot, material in enumerate(mesh.materials):
        socket = _principled(material)
        if socket is None:
            continue
        rows = slots == slot
        image = _image(socket)
        if image is None or mesh.uv_layers.active is None:
            colors[rows] = _to_srgb(np.array(socket.default_value[:3], np.float32))
        else:
            uv = np.empty(2 * len(mesh.loops), np.float32)
            mesh.uv_layers.active.uv.foreach_get("vector", uv)
            colors[rows] = _sample(image, uv.reshape(-1, 2)[rows])
    return _corners_to_vertices(mesh, colors)


def _principled(material: bpy.types.Material | None) -> Any:
    """Return the Base Color input of a material's Principled shader."""
    tree = material.node_tree if material is not None else None
    for node in tree.nodes if tree is not None else ():
        if node.type == "BSDF_PRINCIPLED":
            return node.inputs["Base Color"]
    return None


def _image(socket: Any) -> bpy.types.Image | None:
    """Return the image that feeds a socket, also through nodes in between (the first one found)."""
    waiting: list[Any] = [link.from_node for link in socket.links]
    seen: set[str] = set()
    while waiting:
        node = waiting.pop(0)
        if node.name in seen:
            continue
        seen.add(node.name)
        if node.type == "TEX_IMAGE" and node.image is not None and node.image.size[0]:
            return node.image
        waiting += [link.from_node for input_ in node.inputs for link in input_.links]
    return None


def _sample(image: Any, uv: F32) -> F32:
    """Return the image's stored (sRGB) colours (M, 3) at UVs (M, 2), nearest pixel, repeating."""
    width, height = image.size[0], image.size[1]
    pixels = np.empty(width * height * image.channels, np.float32)
    image.pixels.foreach_get(pixels)
    pixels = pixels.reshape(height, width, image.channels)
    part = np.where((uv % 1 == 0) & (uv > 0), 1, uv % 1)  # the far edge is the last pixel
    x = np.minimum(part[:, 0] * width, width - 1).astype(int)
    y = np.minimum(part[:, 1] * height, height - 1).astype(int)
    colors = pixels[y, x, :3] if image.channels >= 3 else np.repeat(pixels[y, x, :1], 3, axis=1)
    return np.clip(_to_srgb(colors) if image.is_float else colors, 0, 1)


def _to_srgb(linear: F32) -> F32:
    """Return display colours of scene-linear ones (IEC 61966-2-1)."""
    linear = np.clip(linear, 0, 1)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055).astype(
        np.float32
    )


def _corners_to_vertices(mesh: bpy.types.Mesh, colors: F32) -> F32:
    vertices = np.empty(len(mesh.loops), np.int32)
    mesh.loops.foreach_get("vertex_index", vertices)
    count = len(mesh.vertices)
    corners = np.maximum(np.bincount(vertices, minlength=count), 1)
    sums = [np.bincount(vertices, colors[:, c], count) for c in range(3)]
    return (np.stack(sums, axis=1) / corners[:, None]).astype(np.float32)
