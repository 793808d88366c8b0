"""Meshes of the scene that hide splats behind them: their depths, and nothing else of them."""

from __future__ import annotations

from typing import Any, cast

import bpy
import gpu
import numpy as np
from mathutils import Matrix

from ...core.render.camera import Camera
from .render_visibility import rendering_names


def draw_mesh_depths(depsgraph: bpy.types.Depsgraph, camera: Camera) -> None:
    """Draw the meshes that are shown, and render, into the bound framebuffer, whose state is the caller's.

    Curves, texts and metaballs count as the meshes they become; so do instances.
    """
    shader = gpu.shader.from_builtin("UNIFORM_COLOR")
    to_clip = camera.projection @ camera.view
    rendering = rendering_names(cast(bpy.types.ViewLayer, depsgraph.view_layer))
    batches: dict[int, gpu.types.GPUBatch | None] = {}
    stack: Any = gpu.matrix
    with stack.push_pop(), stack.push_pop_projection():
        stack.load_projection_matrix(Matrix.Identity(4))
        for instance in depsgraph.object_instances:
            if not _hides(instance, rendering):
                continue
            mesh = cast(bpy.types.Mesh, instance.object.data)
            key = mesh.as_pointer()  # alive until the next evaluation
            if key not in batches:
                batches[key] = _triangles(mesh)
            batch = batches[key]
            if batch is None:
                continue
            # In double precision, so that what is far from the origin does not shake.
            stack.load_matrix(Matrix((to_clip @ np.array(instance.matrix_world, np.float64)).tolist()))
            shader.bind()
            shader.uniform_float("color", (0.0, 0.0, 0.0, 0.0))
            batch.draw(shader)


def _hides(instance: bpy.types.DepsgraphObjectInstance, rendering: set[str]) -> bool:
    object = instance.object
    owner = instance.parent if instance.is_instance else object
    return object.type == "MESH" and object.visible_camera and owner.name in rendering


def _triangles(mesh: bpy.types.Mesh) -> gpu.types.GPUBatch | None:
    mesh.calc_loop_triangles()
    if not len(mesh.loop_triangles):
        return None
    # The stubs know lists only.
    corners: Any = np.empty((len(mesh.loop_triangles), 3), np.int32)
    mesh.loop_triangles.foreach_get("vertices", corners.ravel())
    positions: Any = np.empty((len(mesh.vertices), 3), np.float32)
    mesh.vertices.foreach_get("co", positions.ravel())
    layout = gpu.types.GPUVertFormat()
    layout.attr_add(id="pos", comp_type="F32", len=3, fetch_mode="FLOAT")
    vertices = gpu.types.GPUVertBuf(layout, len(positions))
    vertices.attr_fill("pos", positions)
    triangles = gpu.types.GPUIndexBuf(type="TRIS", seq=corners)
    return gpu.types.GPUBatch(type="TRIS", buf=vertices, elem=triangles)
