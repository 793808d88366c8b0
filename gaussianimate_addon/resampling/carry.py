"""Attributes of every type, taken along by splats that were split."""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ..attributes import LAYOUT


def read_values(attribute: Any) -> NDArray:
    """Return the values (N, ...) of an attribute of any type; objects of texts."""
    if attribute.data_type == "STRING":
        return np.array([item.value for item in attribute.data] + [None], object)[:-1]
    key, width, dtype = LAYOUT[attribute.data_type]
    values = np.empty(len(attribute.data) * width, dtype)
    attribute.data.foreach_get(key, values)
    return values.reshape(-1, width)


def write_values(attribute: Any, values: NDArray) -> None:
    """Store what `read_values` returned."""
    if attribute.data_type == "STRING":
        for item, value in zip(attribute.data, values, strict=True):
            item.value = value
        return
    attribute.data.foreach_set(LAYOUT[attribute.data_type][0], np.ascontiguousarray(values).ravel())


def carry_attributes(
    new: bpy.types.PointCloud,
    now: bpy.types.PointCloud,
    whole: bpy.types.PointCloud,
    origins: NDArray[np.integer],
    nearest: NDArray[np.integer],
) -> None:
    """Give a copy of splats as many as ``origins`` has, with the attributes of the splats they come from.

    Parameters
    ----------
    new : a copy of ``now``
    now, whole : the splats as they are and the whole ones, which may be the same
    origins : (M,) row in ``whole`` of each splat
    nearest : (N,) row in ``now`` of each whole splat, -1 for none; for attributes that only ``now`` has
    """
    new.resize(len(origins))
    here = np.maximum(nearest, 0)[origins]
    for attribute in new.attributes:
        first = whole.attributes.get(attribute.name)
        if first is not None and first.data_type == attribute.data_type:
            values = read_values(first)[origins]
        else:
            values = read_values(now.attributes[attribute.name])[here]
        write_values(attribute, values)
