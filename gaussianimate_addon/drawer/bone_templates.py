"""Meshes that stand for bones, in a bone's own axes: Y along the bone, which is one unit long.

Each is made once, so that what the GPU holds of it can be kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, cast

import bpy
import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
MESHES = 256  # of custom shapes, kept from draw to draw


@dataclass(frozen=True, eq=False)
class Template:
    """A mesh that bones are drawn with.

    points : (V, 3), corners of triangles or ends of lines, one after the other
    wire : whether they are lines
    spread : px by which they are widened
    faces_eye : a ball seen as a disc, whose axes are the view's
    """

    points: F32
    wire: bool = False
    spread: int = 1
    faces_eye: bool = False


_OCTAHEDRON = np.array(
    [(0, 0, 0), (0.1, 0.1, 0.1), (0.1, 0.1, -0.1), (-0.1, 0.1, -0.1), (-0.1, 0.1, 0.1), (0, 1, 0)], np.float32
)
_RING = [(1, 2), (2, 3), (3, 4), (4, 1)]
_CUBE = np.array(list(product((-1, 1), (0, 1), (-1, 1))), np.float32)  # x, y, z; the last counts fastest


@cache
def octahedron() -> Template:
    """Return the faces of a bone, without the balls at its ends."""
    faces = [(end, *edge) for end in (0, 5) for edge in _RING]
    return Template(_OCTAHEDRON[np.ravel(faces)])


@cache
def octahedron_wire() -> Template:
    """Return the edges of `octahedron`."""
    edges = _RING + [(end, corner) for end in (0, 5) for corner in range(1, 5)]
    return Template(_OCTAHEDRON[np.ravel(edges)], wire=True)


@cache
def box() -> Template:
    """Return the faces of a box, 2 wide and deep."""
    quads = [(0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5)]
    return Template(_CUBE[[i for a, b, c, d in quads for i in (a, b, c, a, c, d)]])


@cache
def box_wire() -> Template:
    """Return the edges of `box`."""
    edges = [(a, a | bit) for bit in (1, 2, 4) for a in range(8) if not a & bit]
    return Template(_CUBE[np.ravel(edges)], wire=True)


@cache
def segment(spread: int) -> Template:
    """Return the line from head to tail, ``spread`` px to either side."""
    return Template(np.array([(0, 0, 0), (0, 1, 0)], np.float32), wire=True, spread=spread)


@cache
def ball(around: int = 12) -> Template:
    """Return a ball of radius 1, as a disc of so many triangles."""
    turn = np.linspace(0, 2 * np.pi, around + 1)
    rim = np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=1)
    corners = np.stack([np.zeros((around, 3)), rim[:-1], rim[1:]], axis=1)
    return Template(corners.reshape(-1, 3).astype(np.float32), faces_eye=True)


_meshes: dict[tuple[int, bool, int], tuple[bytes, Template]] = {}


def mesh_template(mesh: bpy.types.Mesh, wire: bool, thick: int) -> Template:
    """Return a mesh as a template, the same one until its points change."""
    points = np.empty((len(mesh.vertices), 3), np.float32)
    cast(Any, mesh.vertices).foreach_get("co", points.ravel())
    key, state = (mesh.session_uid, wire, thick), points.tobytes()
    known = _meshes.get(key)
    if known is not None and known[0] == state:
        return known[1]
    rows: Any = mesh.edges if wire else mesh.loop_triangles
    if not wire:
        mesh.calc_loop_triangles()
    corners = np.empty((len(rows), 2 if wire else 3), np.int32)
    rows.foreach_get("vertices", corners.ravel())
    template = Template(points[corners.ravel()], wire, thick)
    if len(_meshes) >= MESHES:  # of files no longer open, mostly
        _meshes.clear()
    _meshes[key] = state, template
    return template
