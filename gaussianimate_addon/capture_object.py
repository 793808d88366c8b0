"""A capture as native Blender data: it plays, renders and reloads without this add-on.

The object's own PointCloud holds the canonical frame; a geometry-nodes modifier replaces it by the stored
frame that the scene's time calls for. Capture frame i is shown around scene frame ``start + i * scene fps /
capture fps``, the nearest frame at any time. The source's axes are kept in the data; the object's matrix
turns them upright and a custom property records how, so that an export can undo it.
"""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np
from mathutils import Matrix
from numpy.typing import NDArray

from ..core.capture import Capture
from ..core.cloud import GaussianCloud
from ..core.errors import CaptureError
from ..core.formats.mesh_splats import mesh_samples
from ..core.joined_capture import UPRIGHT
from .action import scene_fps
from .attributes import splats
from .bind import remember_points
from .capture_frames import (
    FRAMES,
    CaptureFrames,
    collect_frames,
    frame_cloud,
    frames_object,
    load_frames,
    store_frames,
)
from .modifiers import PLAYBACK, add_modifier, find_modifier, get_input, set_input
from .playback_nodes import build_playback_group
from .point_cloud import cloud_to_point_cloud, point_cloud_to_cloud, write_cloud
from .skeleton_store import load_clips, load_skeleton, store_clips, store_samples, store_skeleton

AXIS = "gaussianimate_up"  # custom property of the object: up axis of the source
INFO = "gaussianimate_capture"  # custom property of the frames: name, fps, notes, faces


def create_capture_object(
    context: bpy.types.Context,
    capture: Capture,
    cloud: GaussianCloud,
    axis: str,
    frames: CaptureFrames | None = None,
) -> bpy.types.Object:
    """Add the capture to the scene as a PointCloud object that plays from ``scene.frame_start`` on.

    Parameters
    ----------
    cloud : the canonical frame's splats, N rows like the capture
    axis : up axis of the source, "y", "z" or "-y"; turned to Blender's +Z by the object's matrix
    frames : result of `collect_frames`, where it was called before (loading files takes its time)
    """
    if axis not in UPRIGHT:
        raise CaptureError(f"'{axis}' is no up axis; choose y, z or -y")
    frames = frames or collect_frames(capture, cloud)
    object = bpy.data.objects.new(capture.name, cloud_to_point_cloud(cloud, capture.name))
    context.scene.collection.objects.link(object)
    object.matrix_world = Matrix(UPRIGHT[axis].tolist())
    object[AXIS] = axis
    remember_points(object)
    _add_playback(object, frames, context.scene, capture)
    context.view_layer.update()
    return object


def _add_playback(
    object: bpy.types.Object, frames: CaptureFrames, scene: bpy.types.Scene, capture: Capture
) -> None:
    holder = store_frames(frames, capture.name)
    holder[INFO] = {
        "name": capture.name,
        "fps": capture.fps or scene_fps(scene),
        "up": capture.up or "",
        "notes": list(capture.notes),
    }
    if capture.faces is not None:
        holder[INFO]["faces"] = capture.faces.ravel().tolist()
    store_clips(holder, capture)
    store_samples(holder, mesh_samples(capture))
    if capture.skeleton is not None:
        store_skeleton(holder, capture.skeleton)
    object[FRAMES] = holder
    group = build_playback_group(
        f"{object.name} playback", frames.varying, with_gaps=not frames.frame_valid.all()
    )
    modifier = add_modifier(object, PLAYBACK, group)
    set_input(modifier, "Frames", holder)
    set_input(modifier, "Start Frame", float(scene.frame_start))
    set_input(modifier, "Frame Step", scene_fps(scene) / holder[INFO]["fps"])


def is_capture_object(object: bpy.types.Object | None) -> bool:
    """Return whether the object carries captured frames."""
    return object is not None and object.type == "POINTCLOUD" and frames_object(object) is not None


def capture_from_point_cloud(object: bpy.types.Object) -> Capture:
    """Read the capture back; the result holds copies and may be used off the main thread.

    Raises
    ------
    CaptureError : the object carries no capture.
    """
    frames, rest = load_frames(object), point_cloud_to_cloud(splats(object))
    holder: Any = frames_object(object)
    info = holder[INFO].to_dict()
    positions = frames.positions
    if not frames.frame_valid.all():
        positions = positions.copy()
        positions[~frames.frame_valid] = np.nan
    faces = info.get("faces")
    clips, clip_names = load_clips(holder)
    return Capture(
        name=info["name"],
        positions=positions,
        frame_valid=frames.frame_valid,
        load_cloud=lambda frame: frame_cloud(frames, rest, frame),
        faces=None if faces is None else np.array(faces, np.int32).reshape(-1, 3),
        fps=info["fps"],
        up=info["up"] or object.get(AXIS),
        notes=tuple(info["notes"]),
        clips=clips,
        clip_names=clip_names,
        skeleton=load_skeleton(holder),
    )


def show_frame(object: bpy.types.Object, frame: int, frames: CaptureFrames | None = None) -> None:
    """Make capture frame ``frame`` (0-based) the object's rest state (its stored splats).

    Parameters
    ----------
    frames : result of `load_frames`, where it was called before

    Raises
    ------
    CaptureError : the frame does not exist or is empty.
    """
    frames = frames or load_frames(object)
    check_frame(object, frame, frames)
    write_cloud(splats(object), frame_cloud(frames, point_cloud_to_cloud(splats(object)), frame))
    remember_points(object)


def check_frame(object: bpy.types.Object, frame: int, frames: CaptureFrames) -> None:
    """Raise CaptureError unless there are splats in that frame."""
    if not 0 <= frame < len(frames.positions) or not frames.frame_valid[frame]:
        raise CaptureError(f"frame {frame} of '{object.name}' is empty or does not exist; choose another")


def scene_frame(object: bpy.types.Object, frame: float) -> float:
    """Return the scene frame at which capture frame ``frame`` (0-based) is shown."""
    modifier = find_modifier(object, PLAYBACK)
    if modifier is None:
        return frame
    return get_input(modifier, "Start Frame") + frame * get_input(modifier, "Frame Step")


def source_matrix(object: bpy.types.Object) -> NDArray[np.float64]:
    """Return the recorded matrix (4, 4) that turned the source upright; the identity where none was."""
    return UPRIGHT.get(object.get(AXIS, "z"), UPRIGHT["z"]).copy()
