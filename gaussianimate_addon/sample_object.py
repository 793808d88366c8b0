"""Sample an animated mesh object (modifiers, shape keys, armatures, caches) into a Capture."""

from __future__ import annotations

import bpy

from ..core.capture import Capture
from ..core.progress import Progress, no_progress


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
    space : "WORLD" (object motion included) or "OBJECT"

    Raises
    ------
    CaptureError : no mesh, or the number of vertices or faces changes (names the frame).
    Cancelled : by ``progress``; the scene's frame is restored.
    """
    raise NotImplementedError
