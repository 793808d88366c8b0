"""Apply an object's transform to its splats: positions, scales, rotations and spherical harmonics."""

from __future__ import annotations

import bpy
import numpy as np
from mathutils import Matrix

from ..core.errors import RigError
from .bind import applied_reason, follow_transform
from .point_cloud import is_splat_data
from .splat_transform import transform_shapes


def apply_transform(object: bpy.types.Object) -> None:
    """Bake the object's own matrix into its splats, captured frames and bind, and reset it.

    What Blender's Apply does for positions only. Parents are left alone.

    Raises
    ------
    RigError : no splats, data shared by several objects, a scale of 0, or splats that a native Apply left to
        be repaired
    """
    if not is_splat_data(object.data):
        raise RigError(f"'{object.name}' holds no Gaussian splats")
    if object.data.users > 1:
        raise RigError(
            f"the splats of '{object.name}' are shared with other objects; make them single-user first"
        )
    if (reason := applied_reason(object)) is not None:
        raise RigError(reason)
    matrix = np.array(object.matrix_basis, np.float64)
    if abs(np.linalg.det(matrix[:3, :3])) < 1e-12:
        raise RigError(f"'{object.name}' is scaled to nothing; give it a scale other than 0")
    transform_shapes(object, matrix)
    follow_transform(object, matrix)
    object.matrix_basis = Matrix.Identity(4)
