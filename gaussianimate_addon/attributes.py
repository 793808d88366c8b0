"""Fast access to point attributes by name, as numpy arrays."""

from __future__ import annotations

from typing import Any, cast

import bpy
import numpy as np
from numpy.typing import NDArray

# Attribute type -> (name of the value in `attribute.data[i]`, components, dtype), for any but texts.
LAYOUT: dict[str, tuple[str, int, type[np.generic]]] = {
    "FLOAT": ("value", 1, np.float32),
    "INT": ("value", 1, np.int32),
    "INT8": ("value", 1, np.int8),
    "BOOLEAN": ("value", 1, np.bool_),
    "FLOAT2": ("vector", 2, np.float32),
    "FLOAT_VECTOR": ("vector", 3, np.float32),
    "FLOAT4": ("vector", 4, np.float32),
    "FLOAT_COLOR": ("color", 4, np.float32),
    "BYTE_COLOR": ("color_srgb", 4, np.float32),  # as stored; linear values would be rounded anew
    "QUATERNION": ("value", 4, np.float32),
    "FLOAT4X4": ("value", 16, np.float32),
    "INT16_2D": ("value", 2, np.int32),
    "INT32_2D": ("value", 2, np.int32),
}


def splats(object: bpy.types.Object) -> bpy.types.PointCloud:
    """Return the point cloud of an object known to have one."""
    return cast(bpy.types.PointCloud, object.data)


def has_attribute(data: bpy.types.PointCloud, name: str) -> bool:
    """Return whether the point cloud has an attribute of that name."""
    return data.attributes.get(name) is not None


def read_attribute(data: bpy.types.PointCloud, name: str) -> NDArray:
    """Return a copy of a point attribute.

    Returns
    -------
    (N,) or (N, components) array of the attribute's own type.

    Raises
    ------
    KeyError : there is no such attribute.
    """
    attribute: Any = data.attributes[name]
    key, width, dtype = LAYOUT[attribute.data_type]
    values = np.empty(len(attribute.data) * width, dtype)
    attribute.data.foreach_get(key, values)
    return values.reshape(-1, width) if width > 1 else values


def write_attribute(data: bpy.types.PointCloud, name: str, kind: Any, values: NDArray) -> None:
    """Store an array (N,) or (N, components) as a point attribute, replacing one of another type.

    Parameters
    ----------
    kind : ``data_type`` of the attribute ("FLOAT_VECTOR", "QUATERNION", ...)
    """
    attribute: Any = data.attributes.get(name)
    if attribute is not None and (attribute.data_type != kind or attribute.domain != "POINT"):
        data.attributes.remove(attribute)
        attribute = None
    if attribute is None:
        attribute = data.attributes.new(name, kind, "POINT")
    key, _, dtype = LAYOUT[kind]
    attribute.data.foreach_set(key, np.ascontiguousarray(values, dtype).ravel())


def remove_attribute(data: bpy.types.PointCloud, name: str) -> None:
    """Remove an attribute if it is there."""
    attribute = data.attributes.get(name)
    if attribute is not None:
        data.attributes.remove(attribute)
