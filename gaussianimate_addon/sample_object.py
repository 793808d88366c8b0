"""Sample an animated mesh object (modifiers, shape keys, armatures, caches) into a Capture."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.capture import Capture
from ..core.errors import CaptureError
from ..core.progress import Progress, no_progress
from .frame_range import range_problem
from .mesh_colors import vertex_colors


def sample_mesh_object(
    context: bpy.types.Context,
    object: bpy.types.Object,
    frame_start: int,
    frame_end: int,
    progress: Progress = no_progress,
    space: str = "WORLD",
) -> Capture:
    """Evaluate the object's mesh on every scene frame of ``frame_start .. frame_end`` (inclusive).

    Parameters
    ----------
    space : "WORLD" (the object's own motion included, +Z up) or "OBJECT"

    Returns
    -------
    Capture with faces (polygons fanned into triangles), colours where the mesh has a colour attribute or
    its material an image as base colour, and the scene's frame rate.

    Raises
    ------
    CaptureError : no mesh, or vertices or faces change over time (names the frame).
    Cancelled : by ``progress``. Whatever happens, the scene's frame is restored.
    """
    with closing(sample_steps(context, object, frame_start, frame_end, space)) as steps:
        while True:
            try:
                progress(*next(steps))
            except StopIteration as stop:
                return stop.value


def sample_steps(
    context: bpy.types.Context,
    object: bpy.types.Object,
    frame_start: int,
    frame_end: int,
    space: str = "WORLD",
) -> Generator[tuple[str, float], None, Capture]:
    """As `sample_mesh_object`, yielding ``(stage, fraction)`` before each frame so that windows can redraw.

    Nothing else may change the scene until it returns or is closed.
    """
    scene = context.scene
    if object.type not in {"MESH", "CURVE", "SURFACE", "META", "FONT"}:
        raise CaptureError(f"'{object.name}' has no mesh; select an animated mesh object")
    if (problem := range_problem(frame_start, frame_end)) is not None:
        raise CaptureError(problem)
    before, subframe = scene.frame_current, scene.frame_subframe
    frames = range(frame_start, frame_end + 1)
    try:
        positions, faces, colors = yield from _sample_frames(context, object, frames, space)
    finally:
        scene.frame_set(before, subframe=subframe)
    return Capture(
        name=object.name,
        positions=positions,
        frame_valid=np.ones(len(frames), bool),
        faces=faces,
        colors=colors,
        fps=scene.render.fps / scene.render.fps_base,
        up="z" if space == "WORLD" else None,
    )


def _sample_frames(
    context: bpy.types.Context, object: bpy.types.Object, frames: range, space: str
) -> Generator[
    tuple[str, float], None, tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.float32] | None]
]:
    positions: list[NDArray[np.float32]] = []
    faces, colors, loops = np.empty((0, 3), np.int32), None, np.empty(0, np.int32)
    for i, frame in enumerate(frames):
        yield "Sampling frames", i / len(frames)
        context.scene.frame_set(frame)
        evaluated = object.evaluated_get(context.evaluated_depsgraph_get())
        mesh: Any = evaluated.to_mesh()
        try:
            if i == 0:
                if mesh is None or not len(mesh.vertices):
                    raise CaptureError(
                        f"'{object.name}' has no vertices in frame {frame}; select a mesh with some"
                    )
                faces, colors, loops = _triangles(mesh), vertex_colors(mesh), _loops(mesh)
            elif len(mesh.vertices) != len(positions[0]) or not np.array_equal(_loops(mesh), loops):
                raise CaptureError(
                    f"the mesh of '{object.name}' changes its vertices or faces in frame {frame}; "
                    "only a mesh that keeps them can be rigged (remove modifiers that change them)"
                )
            positions.append(_positions(mesh, evaluated.matrix_world if space == "WORLD" else None))
        finally:
            evaluated.to_mesh_clear()
        if not np.isfinite(positions[-1]).all():
            raise CaptureError(f"'{object.name}' has vertices without a finite position in frame {frame}")
    return np.stack(positions), faces, colors


def _positions(mesh: bpy.types.Mesh, world: object | None) -> NDArray[np.float32]:
    positions = np.empty(3 * len(mesh.vertices), np.float32)
    mesh.vertices.foreach_get("co", positions)
    positions = positions.reshape(-1, 3)
    if world is None:
        return positions
    matrix = np.array(world, np.float64)
    return (positions @ matrix[:3, :3].T + matrix[:3, 3]).astype(np.float32)


def _triangles(mesh: bpy.types.Mesh) -> NDArray[np.int32]:
    mesh.calc_loop_triangles()
    triangles = np.empty(3 * len(mesh.loop_triangles), np.int32)
    mesh.loop_triangles.foreach_get("vertices", triangles)
    return triangles.reshape(-1, 3)


def _loops(mesh: bpy.types.Mesh) -> NDArray[np.int32]:
    """Return the vertices around all faces and where each face starts: equal exactly where faces are."""
    vertices, starts = np.empty(len(mesh.loops), np.int32), np.empty(len(mesh.polygons), np.int32)
    mesh.loops.foreach_get("vertex_index", vertices)
    mesh.polygons.foreach_get("loop_start", starts)
    return np.concatenate([vertices, starts])
