"""The base colour of a textured mesh, and its value at points of the surface."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError


@dataclass(frozen=True)
class MeshTexture:
    """A base-colour image laid over triangles.

    uv : (M, 3, 2) float32, texture coordinates of the corners of each triangle, v upwards, repeating
    image : (H, W, 3) uint8, display (sRGB) colours, top row first
    """

    uv: NDArray[np.float32]
    image: NDArray[np.uint8]

    def colors(self, faces: NDArray[np.integer], barycentric: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return display colours (K, 3) in 0..1 at points of the surface, bilinear between pixels.

        Parameters
        ----------
        faces : (K,) triangle of each point
        barycentric : (K, 3) weights of its corners
        """
        u, v = np.einsum("kc,kcd->dk", barycentric, self.uv[faces].astype(np.float64))
        height, width = self.image.shape[:2]
        x, y = u * width - 0.5, (1 - v) * height - 0.5
        left, top = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
        fx, fy = (x - left)[:, None], (y - top)[:, None]
        columns, rows = (left % width, (left + 1) % width), (top % height, (top + 1) % height)
        upper = self.image[rows[0], columns[0]] * (1 - fx) + self.image[rows[0], columns[1]] * fx
        lower = self.image[rows[1], columns[0]] * (1 - fx) + self.image[rows[1], columns[1]] * fx
        return ((upper * (1 - fy) + lower * fy) / 255).astype(np.float32)


def read_texture(path: str | PathLike[str]) -> MeshTexture | None:
    """Read the base-colour texture of a mesh file (.obj with its .mtl, .glb), None where it has none.

    Raises
    ------
    FormatError : the mesh cannot be read
    """
    from .mesh_sequence import load_mesh

    path = Path(path)
    mesh = load_mesh(path, materials=True)
    coordinates = getattr(mesh.visual, "uv", None)
    if mesh.visual.kind != "texture" or coordinates is None:
        return None
    material = getattr(mesh.visual, "material", None)
    image = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
    if image is None:
        return None
    try:
        pixels = np.asarray(image.convert("RGB"), np.uint8)
    except OSError as error:
        raise FormatError(path, f"its texture cannot be read ({error})") from error
    uv = np.nan_to_num(np.asarray(coordinates, np.float32), posinf=0, neginf=0)
    return MeshTexture(uv[np.asarray(mesh.faces)], pixels)
