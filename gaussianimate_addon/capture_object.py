"""A capture as native Blender data: it plays, renders and reloads without this add-on."""

from __future__ import annotations

import bpy

from ..core.capture import Capture
from ..core.cloud import GaussianCloud


def create_capture_object(
    context: bpy.types.Context, capture: Capture, cloud: GaussianCloud, axis: str
) -> bpy.types.Object:
    """Add the capture to the scene as a PointCloud object that plays from ``scene.frame_start`` on.

    Parameters
    ----------
    cloud : the canonical frame's splats, N rows like the capture
    axis : up axis of the source, "y", "z" or "-y"; turned to Blender's +Z by the object's matrix
    """
    raise NotImplementedError


def is_capture_object(object: bpy.types.Object | None) -> bool:
    """Return whether the object was made by :func:`create_capture_object` (its frames are at hand)."""
    raise NotImplementedError


def capture_from_point_cloud(object: bpy.types.Object) -> Capture:
    """Read the capture back; the result holds copies and may be used off the main thread.

    Raises
    ------
    CaptureError : the object carries no capture.
    """
    raise NotImplementedError


def show_frame(object: bpy.types.Object, frame: int) -> None:
    """Make capture frame ``frame`` (0-based) the object's rest state (its stored splats)."""
    raise NotImplementedError


def scene_frame(object: bpy.types.Object, frame: float) -> float:
    """Return the scene frame at which capture frame ``frame`` (0-based) is shown."""
    raise NotImplementedError
