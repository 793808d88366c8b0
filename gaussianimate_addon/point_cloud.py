"""Bridge between :class:`GaussianCloud` and Blender's native Gaussian splats (a PointCloud).

The attribute names are Blender 5.3's own: ``position``, ``scale`` (linear), ``rotation`` (wxyz),
``radiance:base`` (f_dc rgb and activated opacity) and ``radiance:sh_0`` .. ``radiance:sh_14``, one rgb
vector a coefficient. Blender 5.2 has the same PointCloud without the splat type; there a ``radius`` and
a material make the splats visible as coloured points.
"""

from __future__ import annotations

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.cloud import GaussianCloud
from ..core.errors import RigError
from .attributes import has_attribute, read_attribute, remove_attribute, write_attribute
from .point_material import point_material

NATIVE_SPLATS = bpy.app.version >= (5, 3, 0)
BASE = "radiance:base"
SEEN = "drawn:base"  # what BASE was, in evaluated splats that Blender must not draw in viewports
SH_BANDS = {0: 0, 3: 1, 8: 2, 15: 3}


def sh_name(index: int) -> str:
    """Name of the attribute that holds SH coefficient ``index + 1`` (0-based after f_dc)."""
    return f"radiance:sh_{index}"


def is_splat_data(data: bpy.types.ID | None) -> bool:
    """Return whether a data-block is a PointCloud that holds Gaussian splats."""
    return isinstance(data, bpy.types.PointCloud) and all(
        has_attribute(data, name) for name in ("position", "scale", "rotation", BASE)
    )


def new_point_cloud(name: str, count: int) -> bpy.types.PointCloud:
    """Return a new PointCloud of ``count`` points, of the splat type where Blender has it."""
    data = bpy.data.pointclouds.new(name)
    data.resize(count)
    if NATIVE_SPLATS:
        data.type = "GAUSSIAN_SPLAT"
    return data


def cloud_to_point_cloud(cloud: GaussianCloud, name: str) -> bpy.types.PointCloud:
    """Store a cloud in a new PointCloud data-block of that name."""
    data = new_point_cloud(name, len(cloud))
    write_cloud(data, cloud)
    if not NATIVE_SPLATS:
        data.materials.append(point_material())
    return data


def write_cloud(data: bpy.types.PointCloud, cloud: GaussianCloud) -> None:
    """Overwrite the splats of a PointCloud that has ``len(cloud)`` points."""
    write_attribute(data, "position", "FLOAT_VECTOR", cloud.positions)
    write_attribute(data, "scale", "FLOAT_VECTOR", cloud.scales)
    write_attribute(data, "rotation", "QUATERNION", cloud.rotations)
    write_attribute(data, BASE, "FLOAT4", np.column_stack([cloud.sh[:, 0], cloud.opacities]))
    for i in range(15):
        if i + 1 < cloud.sh.shape[1]:
            write_attribute(data, sh_name(i), "FLOAT_VECTOR", cloud.sh[:, i + 1])
        else:
            remove_attribute(data, sh_name(i))
    if not NATIVE_SPLATS:
        write_attribute(data, "radius", "FLOAT", _radius(cloud.scales))
    data.update_tag()


def _radius(scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """Radius of a sphere that stands for a splat: the middle of its three standard deviations."""
    return np.median(scales, axis=1).astype(np.float32)


def cloud_sh_degree(data: bpy.types.PointCloud) -> int:
    """Return the degree of the spherical harmonics, 0-3; coefficients of an incomplete band do not count."""
    count = next(i for i in range(16) if i == 15 or not has_attribute(data, sh_name(i)))
    return max(degree for size, degree in SH_BANDS.items() if size <= count)


def point_cloud_to_cloud(data: bpy.types.PointCloud) -> GaussianCloud:
    """Read the splats of a PointCloud, whoever made it (this add-on or Blender's own importer).

    Raises
    ------
    RigError : it holds no splats.
    """
    if not is_splat_data(data):
        raise RigError(f"'{data.name}' holds no Gaussian splats; import a splat file or a capture first")
    base = read_attribute(data, SEEN if has_attribute(data, SEEN) else BASE)
    count = (cloud_sh_degree(data) + 1) ** 2 - 1
    sh = np.empty((len(base), count + 1, 3), np.float32)
    sh[:, 0] = base[:, :3]
    for i in range(count):
        sh[:, i + 1] = read_attribute(data, sh_name(i))
    return GaussianCloud(
        positions=read_attribute(data, "position"),
        rotations=read_attribute(data, "rotation"),
        scales=read_attribute(data, "scale"),
        opacities=np.ascontiguousarray(base[:, 3]),
        sh=sh,
    )
