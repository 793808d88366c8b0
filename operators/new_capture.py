"""From a capture that was read or sampled to an object in the scene."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ..core.capture import Capture
from ..core.cloud import GaussianCloud
from ..core.errors import CaptureError
from ..core.progress import Progress
from ..gaussianimate_addon.capture_frames import CaptureFrames, collect_frames
from ..gaussianimate_addon.capture_object import create_capture_object
from ..gaussianimate_addon.properties import object_notes
from .place import frame_in_views, select_only, set_frame_range, set_frame_rate

if TYPE_CHECKING:
    from ..core.formats import MeshTexture


@dataclass(frozen=True)
class NewCapture:
    """A capture of splats, its first valid frame, and all frames as they will be stored."""

    capture: Capture
    cloud: GaussianCloud
    frames: CaptureFrames

    @property
    def summary(self) -> str:
        """One line on what it holds."""
        capture = self.capture
        frames = f"{capture.frame_count} frame{'s' if capture.frame_count > 1 else ''}"
        return f"{capture.point_count:,} splats, {frames}, SH degree {self.cloud.sh_degree}"


def make_splats(
    capture: Capture, splat_count: int, progress: Progress, texture: MeshTexture | None = None
) -> NewCapture:
    """Turn a mesh or trajectory into splats where needed and load all frames (no bpy)."""
    if capture.load_cloud is None:
        if capture.faces is not None and len(capture.faces):
            from ..core.formats import mesh_to_splats

            capture = mesh_to_splats(capture, splat_count, texture=texture, progress=progress)
        else:
            from ..core.formats.point_splats import points_to_splats

            capture = points_to_splats(capture)
    valid = np.flatnonzero(capture.frame_valid)
    if capture.load_cloud is None or not len(valid):
        raise CaptureError(f"'{capture.name}' has no frame with splats; choose other files")
    cloud = capture.load_cloud(int(valid[0]))
    return NewCapture(capture, cloud, collect_frames(capture, cloud, progress))


def add_capture(context: bpy.types.Context, new: NewCapture, axis: str, set_scene: bool) -> bpy.types.Object:
    """Add the capture's object, selected and framed in the views, and return it."""
    if set_scene:
        set_frame_rate(context.scene, new.capture)
    object = create_capture_object(context, new.capture, new.cloud, axis, new.frames)
    object_notes(object).import_notes = "\n".join(new.capture.notes)
    if set_scene:
        set_frame_range(context.scene, object, new.capture.frame_count)
    select_only(context, object)
    frame_in_views(context)
    return object
