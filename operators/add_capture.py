"""From a capture that was read or sampled to an object in the scene."""

from __future__ import annotations

from dataclasses import dataclass

import bpy
import numpy as np

from ..core.capture import Capture
from ..core.cloud import GaussianCloud
from ..core.errors import CaptureError
from ..core.progress import Progress
from ..gaussianimate_addon.capture_object import create_capture_object
from ..gaussianimate_addon.properties import object_notes
from .place import frame_in_views, select_only, set_frame_range, set_frame_rate


@dataclass(frozen=True)
class NewCapture:
    """A capture of splats and its first valid frame."""

    capture: Capture
    cloud: GaussianCloud

    @property
    def summary(self) -> str:
        """One line on what it holds."""
        capture = self.capture
        frames = f"{capture.frame_count} frame{'s' if capture.frame_count > 1 else ''}"
        return f"{capture.point_count:,} splats, {frames}, SH degree {self.cloud.sh_degree}"


def make_splats(capture: Capture, splat_count: int, progress: Progress) -> NewCapture:
    """Turn a mesh or trajectory into splats where needed and load the first valid frame (no bpy)."""
    if capture.load_cloud is None:
        from ..core.formats import mesh_to_splats

        progress("Covering the mesh with splats", 0.0)
        capture = mesh_to_splats(capture, splat_count)
    valid = np.flatnonzero(capture.frame_valid)
    if capture.load_cloud is None or not len(valid):
        raise CaptureError(f"'{capture.name}' has no frame with splats; choose other files")
    return NewCapture(capture, capture.load_cloud(int(valid[0])))


def add_capture(context: bpy.types.Context, new: NewCapture, axis: str, set_scene: bool) -> bpy.types.Object:
    """Add the capture's object, selected and framed in the views, and return it."""
    if set_scene:
        set_frame_rate(context.scene, new.capture)
    object = create_capture_object(context, new.capture, new.cloud, axis)
    object_notes(object).import_notes = "\n".join(new.capture.notes)
    if set_scene:
        set_frame_range(context.scene, object, new.capture.frame_count)
    select_only(context, object)
    frame_in_views(context)
    return object
