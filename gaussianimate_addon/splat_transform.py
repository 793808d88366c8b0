"""Let everything else of a splat follow a map of its position: shape, colours, skin, captured frames."""

from __future__ import annotations

from dataclasses import replace

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.deform.transforms import transform_cloud
from .attributes import splats
from .capture_frames import transform_frames
from .point_cloud import point_cloud_to_cloud, write_cloud
from .resampling.whole import transform_whole
from .skin_attributes import BASE, SKIN, influence_count, read_skin, write_skin
from .weights.layers import transform_layers


def transform_shapes(
    object: bpy.types.Object, matrix: NDArray[np.float64], positions: NDArray[np.float32] | None = None
) -> None:
    """Transform the splats of an object by ``matrix`` (4, 4), with weight gradients and captured frames.

    Parameters
    ----------
    positions : (N, 3) where the centres are already, None to move them by the matrix too
    """
    data = splats(object)
    rest = point_cloud_to_cloud(data)
    cloud = transform_cloud(rest, matrix)
    write_cloud(data, cloud if positions is None else replace(cloud, positions=positions))
    inverse = np.linalg.inv(matrix[:3, :3]).astype(np.float32)
    for kind in (SKIN, BASE):
        if influence_count(data, kind):
            skin = read_skin(data, kind)
            turned = replace(skin, gradients=skin.gradients @ inverse)  # a gradient is a row vector
            write_skin(data, turned, kind)
    transform_layers(object, matrix)
    transform_frames(object, transform_whole(object, matrix) or rest, matrix)
