"""Files to clouds and captures, and clouds back to files.

The names below are imported when first used, so that the package itself needs numpy at most.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .captures import read_capture
    from .clouds import read_cloud
    from .mesh_splats import mesh_to_splats
    from .mesh_texture import MeshTexture, read_texture
    from .ply_writer import write_cloud, write_sequence

_MODULES = {
    "read_capture": "captures",
    "read_cloud": "clouds",
    "mesh_to_splats": "mesh_splats",
    "MeshTexture": "mesh_texture",
    "read_texture": "mesh_texture",
    "write_cloud": "ply_writer",
    "write_sequence": "ply_writer",
}

__all__ = [
    "MeshTexture",
    "mesh_to_splats",
    "read_capture",
    "read_cloud",
    "read_texture",
    "write_cloud",
    "write_sequence",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
