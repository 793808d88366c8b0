"""The frames of a capture as native data: one PointCloud of F * N points that no collection holds.

Row ``f * N + i`` is splat i in frame f. Only what changes over time is stored: ``position`` always,
``rotation``, ``scale``, ``radiance:base`` and ``radiance:sh_i`` where they differ between frames, ``shown``
(BOOLEAN) where a frame is empty. Spherical harmonics that would take more than `SH_BUDGET` stay those of the
canonical frame. The frames live in the .blend with their user, so that saving, moving, appending and
rendering need neither source files nor this add-on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.capture import Capture
from ..core.cloud import GaussianCloud
from ..core.deform.transforms import transform_cloud
from ..core.errors import CaptureError
from ..core.progress import Progress, no_progress
from .attributes import has_attribute, read_attribute, splats, write_attribute
from .modifiers import PLAYBACK, find_modifier, set_input
from .point_cloud import BASE, sh_name
from .resampling.whole import whole_of
from .skeleton_store import move_skeleton

F32 = NDArray[np.float32]
FRAMES = "gaussianimate_frames"  # custom property of the capture object: the object that holds its frames
COUNT = "gaussianimate_count"  # custom property of the capture object and its frames: splats a frame
SHOWN = "shown"
# attribute -> type, and the field(s) of a cloud it holds
VARYING = {"rotation": "QUATERNION", "scale": "FLOAT_VECTOR", BASE: "FLOAT4"}
VARYING |= {sh_name(i): "FLOAT_VECTOR" for i in range(15)}
SH_BUDGET = 2**30  # bytes


@dataclass(frozen=True)
class CaptureFrames:
    """What a capture's frames look like, ready to be stored.

    positions : (F, N, 3) float32, finite (0 in invalid frames)
    frame_valid : (F,) bool
    varying : attribute name -> (F, N, 3 | 4) float32, for those of `VARYING` that change over time
    notes : one sentence each on what was left out
    """

    positions: F32
    frame_valid: NDArray[np.bool_]
    varying: dict[str, F32]
    notes: tuple[str, ...] = ()


def collect_frames(capture: Capture, cloud: GaussianCloud, progress: Progress = no_progress) -> CaptureFrames:
    """Load every frame of a capture; touches no Blender data and may run off the main thread.

    Parameters
    ----------
    cloud : the canonical frame's splats, what does not vary is taken from there
    """
    count = capture.frame_count
    positions = np.where(capture.frame_valid[:, None, None], capture.positions, np.float32(0))
    if capture.load_cloud is None:
        return CaptureFrames(positions, capture.frame_valid, {})
    fields, notes = cloud_fields(cloud), ()
    if cloud.sh[:, 1:].nbytes * count > SH_BUDGET:
        fields = {name: value for name, value in fields.items() if not name.startswith("radiance:sh")}
        notes = (
            "playback shows the view-dependent colours of the rest frame; those of all frames are too large",
        )
    stored = {name: np.empty((count, *value.shape), np.float32) for name, value in fields.items()}
    first: dict[str, F32] = {}
    varies: set[str] = set()
    for f in range(count):
        progress("Loading frames", f / count)
        fields = cloud_fields(capture.load_cloud(f) if capture.frame_valid[f] else cloud)
        for name in stored:
            stored[name][f] = fields[name]
            if capture.frame_valid[f] and not np.array_equal(
                fields[name], first.setdefault(name, fields[name])
            ):
                varies.add(name)
    return CaptureFrames(positions, capture.frame_valid, {name: stored[name] for name in varies}, notes)


def cloud_fields(cloud: GaussianCloud) -> dict[str, F32]:
    """Return what of a cloud may vary over time, by attribute name."""
    base = np.column_stack([cloud.sh[:, 0], cloud.opacities])
    bands = {sh_name(i): cloud.sh[:, i + 1] for i in range(cloud.sh.shape[1] - 1)}
    return {"rotation": cloud.rotations, "scale": cloud.scales, BASE: base} | bands


def store_frames(frames: CaptureFrames, name: str) -> bpy.types.Object:
    """Return a new object, in no collection, that holds the frames."""
    count, points = frames.positions.shape[:2]
    if count * points > np.iinfo(np.int32).max // 4:
        raise CaptureError(
            f"{name}: {count} frames of {points} splats are more than a .blend holds; import fewer frames"
        )
    data = bpy.data.pointclouds.new(f"{name}.frames")
    data.resize(count * points)
    write_attribute(data, "position", "FLOAT_VECTOR", frames.positions)
    for attribute, values in frames.varying.items():
        write_attribute(data, attribute, VARYING[attribute], values)
    if not frames.frame_valid.all():
        write_attribute(data, SHOWN, "BOOLEAN", np.repeat(frames.frame_valid, points))
    object = bpy.data.objects.new(data.name, data)
    object[COUNT] = points
    object.hide_render = object.hide_viewport = True
    object.display_type = "BOUNDS"  # appending shows every object that no collection holds
    return object


def frames_object(object: bpy.types.Object) -> bpy.types.Object | None:
    """Return the object that holds the frames of a capture object, None where there are none."""
    found = object.get(FRAMES)
    return found if isinstance(found, bpy.types.Object) else None


def load_frames(object: bpy.types.Object) -> CaptureFrames:
    """Read the frames of a capture object back (copies).

    Raises
    ------
    CaptureError : it has none, or splats were added or removed since.
    """
    holder, own = frames_object(object), splats(object)
    if holder is None:
        raise CaptureError(f"'{object.name}' carries no captured frames; import a capture first")
    if len(own.points) != holder[COUNT]:
        if whole_of(own) is not None:
            raise CaptureError(f"'{object.name}' was resampled; restore its whole splats first")
        raise CaptureError(f"splats of '{object.name}' were added or removed; import the capture again")
    return _read_frames(holder)


def _read_frames(holder: bpy.types.Object) -> CaptureFrames:
    data, points = splats(holder), holder[COUNT]
    positions = read_attribute(data, "position").reshape(-1, points, 3)
    shown = read_attribute(data, SHOWN) if has_attribute(data, SHOWN) else np.ones(len(data.points), bool)
    varying = {
        name: read_attribute(data, name).reshape(len(positions), points, -1)
        for name in VARYING
        if has_attribute(data, name)
    }
    return CaptureFrames(positions, shown.reshape(-1, points)[:, 0], varying)


def frame_cloud(frames: CaptureFrames, rest: GaussianCloud, frame: int) -> GaussianCloud:
    """Return the splats of one frame; what does not vary comes from ``rest``."""
    base = frames.varying.get(BASE)
    sh = rest.sh.copy()
    if base is not None:
        sh[:, 0] = base[frame, :, :3]
    for i in range(sh.shape[1] - 1):
        if sh_name(i) in frames.varying:
            sh[:, i + 1] = frames.varying[sh_name(i)][frame]
    return GaussianCloud(
        positions=frames.positions[frame].copy(),
        rotations=frames.varying["rotation"][frame] if "rotation" in frames.varying else rest.rotations,
        scales=frames.varying["scale"][frame] if "scale" in frames.varying else rest.scales,
        opacities=rest.opacities if base is None else np.ascontiguousarray(base[frame, :, 3]),
        sh=sh,
    )


def transform_frames(object: bpy.types.Object, rest: GaussianCloud, matrix: NDArray[np.float64]) -> None:
    """Move the stored frames of a capture object by ``matrix`` (4, 4).

    Parameters
    ----------
    rest : the object's splats before they were moved, whole ones where they were resampled
    """
    if frames_object(object) is None:
        return
    holder = _own_frames(object)
    frames = _read_frames(holder)
    if len(rest) != holder[COUNT]:
        raise CaptureError(f"splats of '{object.name}' were added or removed; import the capture again")
    for f in range(len(frames.positions)):
        moved = transform_cloud(frame_cloud(frames, rest, f), matrix)
        frames.positions[f] = moved.positions
        for name, value in cloud_fields(moved).items():
            if name in frames.varying:
                frames.varying[name][f] = value
    write_attribute(splats(holder), "position", "FLOAT_VECTOR", frames.positions)
    for name, values in frames.varying.items():
        write_attribute(splats(holder), name, VARYING[name], values)
    move_skeleton(holder, matrix)
    splats(holder).update_tag()


def _own_frames(object: bpy.types.Object) -> bpy.types.Object:
    """Return the object that holds the frames, copied first where copies of the object use it too."""
    holder: Any = object[FRAMES]
    if not any(other != object and other.get(FRAMES) == holder for other in bpy.data.objects):
        return holder
    own = holder.copy()
    own.data = holder.data.copy()
    object[FRAMES] = own
    playback = find_modifier(object, PLAYBACK)
    if playback is not None:
        set_input(playback, "Frames", own)
    return own
