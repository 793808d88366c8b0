"""Layers of the opposite side of a body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ..errors import SelectionError
from .layer import SelectionLayer

REFLECT_X = np.diag([-1.0, 1.0, 1.0, 1.0])  # across the YZ plane of the object


def mirror_layer(layer: SelectionLayer, bone: str, reflection: ArrayLike = REFLECT_X) -> SelectionLayer:
    """Return the layer whose weights are those of ``layer`` at mirrored points: ``w'(p) = w(reflection p)``.

    The view is mirrored with the points, and the shape flipped from left to right in it, so that the new view
    is one a camera can take, in which the layer can be edited again.

    Parameters
    ----------
    bone : the bone the new layer is of
    reflection : (4, 4) reflection in object space. For the X of an armature:
        ``inverse(M) @ REFLECT_X @ M`` with ``M = inverse(armature.matrix_world) @ object.matrix_world``

    Raises
    ------
    SelectionError : the matrix is no reflection
    """
    matrix = np.asarray(reflection, dtype=np.float64)
    if matrix.shape != (4, 4) or not np.allclose(matrix @ matrix, np.eye(4), atol=1e-6):
        raise SelectionError("Selections can be mirrored only by a reflection")
    if np.linalg.det(matrix[:3, :3]) > 0:
        raise SelectionError("Selections can be mirrored only by a reflection, not by a rotation")
    window = layer.viewpoint.window
    middle = window[0] + window[2] / 2
    return replace(
        layer,
        bone=bone,
        viewpoint=layer.viewpoint.mirrored(matrix),
        shape=layer.shape.mirrored(middle),
        front=None if layer.front is None else layer.front.mirrored(middle),
    )
