"""Posed splats as clouds: what is exported."""

from __future__ import annotations

from collections.abc import Iterator

import bpy

from ..core.cloud import GaussianCloud
from ..core.progress import Progress, no_progress


def posed_cloud(
    depsgraph: bpy.types.Depsgraph, object: bpy.types.Object, space: str = "WORLD"
) -> GaussianCloud:
    """Return the splats of the object as posed at the depsgraph's frame.

    A rigged object is deformed by ``core.deform`` (spherical harmonics rotated); any other shows its
    evaluated splats (a capture: the current frame; an empty frame gives an empty cloud).

    Parameters
    ----------
    space : "WORLD" applies the object's matrix, the axis conversion of the import undone; "OBJECT" does not
    """
    raise NotImplementedError


def bake_sequence(
    context: bpy.types.Context,
    object: bpy.types.Object,
    frame_start: int,
    frame_end: int,
    space: str = "WORLD",
    progress: Progress = no_progress,
) -> Iterator[tuple[int, GaussianCloud]]:
    """Yield (scene frame, cloud) for every frame of the range; the scene's frame is restored at the end."""
    raise NotImplementedError
