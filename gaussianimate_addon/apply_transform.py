"""Apply an object's transform to its splats: positions, scales, rotations and spherical harmonics."""

from __future__ import annotations

import bpy


def apply_transform(object: bpy.types.Object) -> None:
    """Bake the object's matrix into its splats (and captured frames, and its bind) and reset it."""
    raise NotImplementedError
