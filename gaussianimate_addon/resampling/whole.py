"""Splats that were resampled, and the whole ones they come from.

A resampled PointCloud holds the whole one in a custom property, so that Blender saves, copies and appends it
along, and frees it with its last user. Two attributes say which whole splat each splat comes from and how
often that was split.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import bpy
import numpy as np
from numpy.typing import NDArray

from ...core.cloud import GaussianCloud
from ...core.deform.transforms import transform_cloud
from ..attributes import has_attribute, read_attribute, splats
from ..modifiers import DEFORM, PLAYBACK, find_modifier
from ..point_cloud import point_cloud_to_cloud, write_cloud
from ..skin_attributes import BASE, SKIN, influence_count, read_skin, write_skin

WHOLE = "gaussianimate_whole"  # custom property of resampled splats: the whole ones
NOTES = "gaussianimate_resample_notes"  # custom property: what was done, one sentence a line
ORIGIN, DEPTH = "resampled:origin", "resampled:depth"


def whole_of(data: bpy.types.PointCloud) -> bpy.types.PointCloud | None:
    """Return the whole splats of resampled ones, None where they are whole themselves."""
    found: Any = data.get(WHOLE)
    return found if isinstance(found, bpy.types.PointCloud) and has_attribute(data, ORIGIN) else None


def copy_of(data: bpy.types.PointCloud) -> bpy.types.PointCloud:
    """Return a copy in the file."""
    return cast(bpy.types.PointCloud, data.copy())


def origins(data: bpy.types.PointCloud) -> NDArray[np.int32]:
    """Return the whole splat (M,) that each splat comes from; its own number where nothing was resampled.

    Splats that another tool added or wrote over come from none, -1.
    """
    whole = whole_of(data)
    if whole is None:
        return np.arange(len(data.points), dtype=np.int32)
    if data.attributes[ORIGIN].data_type != "INT":
        return np.full(len(data.points), -1, np.int32)
    rows = read_attribute(data, ORIGIN)
    return np.where((rows >= 0) & (rows < len(whole.points)), rows, -1)


def nearest_rows(data: bpy.types.PointCloud) -> NDArray[np.intp]:
    """Return for each whole splat the row of the splat nearest to its centre, -1 where all were deleted."""
    whole = whole_of(data)
    if whole is None:
        return np.arange(len(data.points))
    rows, count = origins(data), len(whole.points)
    known = np.flatnonzero(rows >= 0)
    with np.errstate(all="ignore"):  # splats may be anywhere, and nowhere
        away = read_attribute(data, "position")[known] - read_attribute(whole, "position")[rows[known]]
        farthest_first = np.argsort(-(away**2).sum(axis=1), kind="stable")
    found = np.full(count, -1, np.intp)
    found[rows[known][farthest_first]] = known[farthest_first]  # the last one written stays
    return found


def followers(data: bpy.types.PointCloud) -> list[bpy.types.Object]:
    """Return the objects of this file that show these splats, but for captures that play their frames."""
    return [
        object
        for object in bpy.data.objects
        if object.type == "POINTCLOUD"
        and object.data == data
        and object.library is None
        and not (find_modifier(object, PLAYBACK) is not None and find_modifier(object, DEFORM) is None)
    ]


def edited_reason(data: bpy.types.PointCloud) -> str | None:
    """Return one sentence where an object that shows these splats is in Edit Mode: it gets no others then."""
    edited = next((object for object in followers(data) if object.mode == "EDIT"), None)
    return None if edited is None else f"'{edited.name}' is being edited; leave Edit Mode first"


def transform_whole(object: bpy.types.Object, matrix: NDArray[np.float64]) -> GaussianCloud | None:
    """After resampled splats were moved by ``matrix`` (4, 4): let the whole ones follow.

    Returns
    -------
    the whole splats before, None where none were resampled
    """
    data = splats(object)
    whole = whole_of(data)
    if whole is None:
        return None
    if whole.users > 1 + whole.use_fake_user:
        whole = data[WHOLE] = copy_of(whole)
    before = point_cloud_to_cloud(whole)
    write_cloud(whole, transform_cloud(before, matrix))
    inverse = np.linalg.inv(matrix[:3, :3]).astype(np.float32)
    for kind in (SKIN, BASE):
        if influence_count(whole, kind):
            skin = read_skin(whole, kind)
            write_skin(whole, replace(skin, gradients=skin.gradients @ inverse), kind)
    return before
