"""A sequence of mesh files in one correspondence to a Capture, read by trimesh."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..capture import Capture
from ..errors import FormatError, MissingDependencyError
from ..progress import Progress
from .points import drop_rows, finite_rows

if TYPE_CHECKING:
    from trimesh import Trimesh

# glTF defines Y as up; OBJ and PLY define nothing.
UP = {".glb": "y", ".gltf": "y"}


def load_mesh(path: Path, materials: bool = False) -> Trimesh:
    """Load one mesh file as a single mesh whose vertices are those of the file, in their order.

    Raises
    ------
    FormatError : the file is damaged or has no triangles
    MissingDependencyError : trimesh is not installed
    """
    try:
        import trimesh
        from trimesh.resolvers import FilePathResolver
    except ImportError:
        raise MissingDependencyError(
            f"{path}: reading mesh files needs trimesh: `pip install trimesh`"
        ) from None
    kind = "ply" if path.open("rb").read(3) == b"ply" else path.suffix.lower()[1:]
    try:
        with path.open("rb") as stream:
            mesh: Any = trimesh.load(
                stream,
                file_type=kind,
                force="mesh",
                process=False,
                maintain_order=True,
                skip_materials=not materials,
                resolver=FilePathResolver(str(path)),
            )
        vertices, faces = np.asarray(mesh.vertices), np.asarray(mesh.faces)
    except Exception as error:  # trimesh meets damage with whatever its parsers raise
        raise FormatError(path, f"the mesh cannot be read ({type(error).__name__}: {error})") from error
    if vertices.ndim != 2 or vertices.shape[1:] != (3,) or faces.ndim != 2 or not len(faces):
        raise FormatError(path, "the mesh has no triangles")
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise FormatError(path, "the mesh has faces of vertices that are not there")
    return mesh


def read_mesh_sequence(
    paths: tuple[Path, ...], name: str, notes: tuple[str, ...], progress: Progress
) -> Capture:
    """Read one mesh a frame; all must have the vertices and faces of the first.

    Raises
    ------
    FormatError : a file is damaged, or the meshes differ in their vertices or faces
    """
    first, last = paths[0], paths[-1]
    positions = np.empty((0, 0, 3), np.float32)
    faces = np.empty((0, 3), np.int32)
    colors: NDArray[np.float32] | None = None
    for frame, path in enumerate(paths):
        progress("Reading frames", frame / len(paths))
        mesh = load_mesh(path, materials=frame == 0)
        if frame == 0:
            faces = np.asarray(mesh.faces, np.int32)
            positions = np.empty((len(paths), len(mesh.vertices), 3), np.float32)
            colors = _vertex_colors(mesh, path)
        elif len(mesh.vertices) != positions.shape[1] or not np.array_equal(mesh.faces, faces):
            raise FormatError(
                path,
                f"the mesh has {len(mesh.vertices):,} vertices and {len(mesh.faces):,} faces where "
                f"{first.name} has {positions.shape[1]:,} and {len(faces):,}, or joins them otherwise: "
                "a sequence needs one topology",
                frame,
            )
        with np.errstate(over="ignore"):
            positions[frame] = mesh.vertices
    progress("Reading frames", 1.0)
    keep, valid, row_notes = finite_rows(positions, first)
    if len(paths) > 1:
        found = f"Found {len(paths)} meshes of {len(keep):,} vertices, from {first.name} to {last.name}."
        notes += (found,)
    notes += _animation_notes(first) + row_notes
    up = UP.get(first.suffix.lower())
    return drop_rows(Capture(name, positions, valid, None, faces, colors, None, up, notes), keep)


def _vertex_colors(mesh: Trimesh, path: Path) -> NDArray[np.float32] | None:
    """Return display colours (N, 3) of the vertices, from the texture where they have none of their own."""
    visual: Any = mesh.visual
    if visual.kind is None:
        return None
    textured = visual.kind == "texture" and getattr(visual.material, "baseColorTexture", None) is not None
    try:
        if visual.kind == "texture":
            visual = visual.to_color()
        colors = np.asarray(visual.vertex_colors)[:, :3] / np.float32(255)
    except Exception:  # a material that cannot be sampled: the shape alone is worth having
        return None
    if len(colors) != len(mesh.vertices):
        return None
    # glTF textures are sRGB, its vertex colours and colour factors linear.
    linear = path.suffix.lower() in UP and not textured
    return linear_to_srgb(colors) if linear else colors.astype(np.float32)


def linear_to_srgb(colors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return display values 0..1 of linear ones (IEC 61966-2-1)."""
    colors = np.clip(colors, 0, 1)
    curve = 1.055 * np.maximum(colors, 0.0031308) ** (1 / 2.4) - 0.055
    return np.where(colors <= 0.0031308, 12.92 * colors, curve).astype(np.float32)


def _animation_notes(path: Path) -> tuple[str, ...]:
    """Tell that the animation inside a .glb is not played."""
    with path.open("rb") as stream:
        header = stream.read(20)
        if len(header) < 20 or header[:4] != b"glTF":
            return ()
        (length,) = struct.unpack_from("<I", header, 12)
        try:
            animated = bool(json.loads(stream.read(length)).get("animations"))
        except (ValueError, AttributeError):
            return ()
    if not animated:
        return ()
    return (
        f"The animation inside {path.name} was not read: import it with Blender's glTF importer "
        "and make the capture from the object.",
    )
