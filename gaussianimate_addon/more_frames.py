"""More frames for a capture object: the stored ones and new ones in a new store, which takes its place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.capture import Capture
from ..core.cloud import GaussianCloud
from ..core.errors import CaptureError
from ..core.given_skeleton import GivenSkeleton
from ..core.progress import Progress, no_progress
from .attributes import has_attribute, read_attribute, splats, write_attribute
from .capture_frames import (
    COUNT,
    FRAMES,
    SH_BUDGET,
    SHOWN,
    VARYING,
    CaptureFrames,
    cloud_fields,
    collect_frames,
    frames_object,
)
from .capture_object import INFO
from .modifiers import PLAYBACK, find_modifier, get_input, set_input
from .playback_nodes import build_playback_group
from .point_cloud import point_cloud_to_cloud
from .skeleton_store import CLIPS, SKELETON, store_clips, store_skeleton

SAME = 1e-5  # difference of a splat's field that is rounding


@dataclass(frozen=True)
class MoreFrames:
    """What is stored for a capture that was joined to another.

    frames : the new ones, in the axes of the object
    capture : all of them, for clips, names and notes (its positions are not used)
    skeleton : given joints in all frames
    """

    frames: CaptureFrames
    capture: Capture
    skeleton: GivenSkeleton | None


def collect_more(capture: Capture, rest: GaussianCloud, progress: Progress = no_progress) -> CaptureFrames:
    """Load the frames of a further capture; touches no Blender data.

    Parameters
    ----------
    capture : the new frames only; rest : the splats of the object they are for
    """
    notes: list[str] = []
    if (load := capture.load_cloud) is not None:
        capture = replace(capture, load_cloud=lambda frame: _with_bands(load(frame), rest, notes))
    frames = collect_frames(capture, rest, progress)
    if capture.load_cloud is None:
        return frames
    count, known = capture.frame_count, cloud_fields(rest)
    own = cloud_fields(capture.load_cloud(int(np.flatnonzero(capture.frame_valid)[0])))
    constant = {
        name: np.broadcast_to(values, (count, *values.shape))
        for name, values in own.items()
        if name in known and name not in frames.varying and not np.allclose(values, known[name], atol=SAME)
    }
    varying = {name: values for name, values in frames.varying.items() if name in known}
    return CaptureFrames(
        frames.positions, frames.frame_valid, varying | constant, (*frames.notes, *dict.fromkeys(notes))
    )


def _with_bands(cloud: GaussianCloud, rest: GaussianCloud, notes: list[str]) -> GaussianCloud:
    """Spherical harmonics of as many bands as the splats at rest have: higher are cut, missing ones 0."""
    wanted, given = rest.sh.shape[1], cloud.sh.shape[1]
    if given == wanted:
        return cloud
    if given > wanted:
        notes.append(
            "view-dependent colours of the new capture are finer than those of the rig, and were cut"
        )
    sh = np.zeros((len(cloud.sh), wanted, 3), np.float32)
    sh[:, : min(wanted, given)] = cloud.sh[:, :wanted]
    return replace(cloud, sh=sh)


def store_joined(object: bpy.types.Object, more: MoreFrames) -> tuple[bpy.types.Object, tuple[str, ...]]:
    """Return a new object that holds the frames there are and more, and notes; nothing uses it yet.

    One attribute at a time is in memory beside what is stored.
    """
    holder: Any = frames_object(object)
    data, points = splats(holder), int(holder[COUNT])
    new = more.frames
    before, after = len(data.points) // points, len(new.positions)
    if (before + after) * points > np.iinfo(np.int32).max // 4:
        raise CaptureError(
            f"{object.name}: {before + after} frames of {points} splats exceed what a .blend holds; add fewer"
        )
    names, notes = _varying(data, new, (before + after) * points)
    rest = cloud_fields(point_cloud_to_cloud(splats(object)))
    joined = bpy.data.pointclouds.new(data.name)
    joined.resize((before + after) * points)
    _write(joined, "position", "FLOAT_VECTOR", read_attribute(data, "position"), new.positions)
    for name in names:
        old = read_attribute(data, name) if has_attribute(data, name) else np.tile(rest[name], (before, 1))
        more_values = new.varying.get(name)
        if more_values is None:
            more_values = np.broadcast_to(rest[name], (after, *rest[name].shape))
        _write(joined, name, VARYING[name], old, more_values)
    if has_attribute(data, SHOWN) or not new.frame_valid.all():
        shown = read_attribute(data, SHOWN) if has_attribute(data, SHOWN) else np.ones(before * points, bool)
        write_attribute(joined, SHOWN, "BOOLEAN", np.append(shown, np.repeat(new.frame_valid, points)))
    store = bpy.data.objects.new(data.name, joined)
    for key, value in holder.items():
        if key not in (CLIPS, SKELETON):
            store[key] = value.to_dict() if hasattr(value, "to_dict") else value
    store[INFO]["notes"] = list(more.capture.notes)
    store_clips(store, more.capture)
    if more.skeleton is not None:
        store_skeleton(store, more.skeleton)
    store.hide_render = store.hide_viewport = True
    store.display_type = "BOUNDS"
    return store, tuple(dict.fromkeys((*new.notes, *notes)))


def _write(
    data: bpy.types.PointCloud, name: str, kind: str, old: NDArray[np.float32], new: NDArray[np.float32]
) -> None:
    values = np.concatenate([old, new.reshape(-1, old.shape[-1])])
    write_attribute(data, name, kind, values)


def _varying(data: bpy.types.PointCloud, new: CaptureFrames, rows: int) -> tuple[list[str], tuple[str, ...]]:
    """The attributes that vary in either, without spherical harmonics where those are too large."""
    names = [name for name in VARYING if has_attribute(data, name) or name in new.varying]
    harmonics = [name for name in names if name.startswith("radiance:sh")]
    if 12 * rows * len(harmonics) <= SH_BUDGET:
        return names, ()
    kept = [name for name in names if name not in harmonics]
    return kept, (
        "playback shows the view-dependent colours of the rest frame; those of all frames are too large",
    )


def use_frames(object: bpy.types.Object, store: bpy.types.Object) -> None:
    """Let a capture object play the frames of a new store; the old one goes where nobody else uses it."""
    before: Any = frames_object(object)
    modifier = find_modifier(object, PLAYBACK)
    if modifier is not None:
        start, step = (get_input(modifier, name) for name in ("Start Frame", "Frame Step"))
        if _kinds(before) != _kinds(store):
            names = [name for name in VARYING if has_attribute(splats(store), name)]
            group: Any = modifier.node_group
            new = build_playback_group(f"{object.name} playback", names, has_attribute(splats(store), SHOWN))
            for key, value in group.items():
                new[key] = value
            modifier.node_group = new
            if group.users == 0:
                bpy.data.node_groups.remove(group)
        for name, value in (("Frames", store), ("Start Frame", start), ("Frame Step", step)):
            set_input(modifier, name, value)
    object[FRAMES] = store
    if before is not None and not any(other.get(FRAMES) == before for other in bpy.data.objects):
        data, name = before.data, before.name
        bpy.data.objects.remove(before)
        if data.users == 0:
            bpy.data.pointclouds.remove(data)
        store.name = store.data.name = name  # pyright: ignore[reportOptionalMemberAccess]


def _kinds(store: bpy.types.Object) -> list[str]:
    return [name for name in (*VARYING, SHOWN) if has_attribute(splats(store), name)]
