"""Weights, bone indices and weight gradients as attributes of the PointCloud."""

from __future__ import annotations

import bpy

from ..core.skinning import Skin


def write_skin(data: bpy.types.PointCloud, skin: Skin) -> None:
    """Store a skin as ``skin:index_k`` INT, ``skin:weight_k`` FLOAT, ``skin:gradient_k`` FLOAT_VECTOR."""
    raise NotImplementedError


def read_skin(data: bpy.types.PointCloud) -> Skin:
    """Read the skin back.

    Raises
    ------
    RigError : the point cloud has none.
    """
    raise NotImplementedError
