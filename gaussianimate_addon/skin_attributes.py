"""Weights, bone indices and weight gradients as attributes of the PointCloud.

Influence ``k`` (0 is the strongest) of a splat lies in three attributes: ``skin:index_k`` INT, the skin
bone; ``skin:weight_k`` FLOAT, rows sum to 1; ``skin:gradient_k`` FLOAT_VECTOR, gradient of that weight in
the object's rest space, 1/metre.

A second set, named ``base:...``, holds the weights that selection layers start from, where there are layers.
"""

from __future__ import annotations

from itertools import product

import bpy
import numpy as np

from ..core.errors import RigError
from ..core.skinning.skin import Skin
from .attributes import has_attribute, read_attribute, remove_attribute, write_attribute

MAX_INFLUENCES = 4
SKIN, BASE = "skin", "base"  # sets of influences
TYPES = {"index": "INT", "weight": "FLOAT", "gradient": "FLOAT_VECTOR"}


def influence_count(data: bpy.types.PointCloud, kind: str = SKIN) -> int:
    """Return how many influences a splat has, 0 where the point cloud carries no skin."""
    return sum(has_attribute(data, f"{kind}:index_{k}") for k in range(MAX_INFLUENCES))


def write_skin(data: bpy.types.PointCloud, skin: Skin, kind: str = SKIN) -> None:
    """Store a skin of N splats and at most 4 influences; unused slots of an earlier skin are removed."""
    used = skin.indices.shape[1]
    if used > MAX_INFLUENCES:
        raise RigError(f"a splat can follow at most {MAX_INFLUENCES} bones, this skin has {used}")
    if len(skin.indices) != len(data.points):
        raise RigError(
            f"the rig has {len(skin.indices)} splats and '{data.name}' has {len(data.points)};"
            " rig the capture this object was made from"
        )
    for k in range(used):
        for part, values in (("index", skin.indices), ("weight", skin.weights), ("gradient", skin.gradients)):
            write_attribute(data, f"{kind}:{part}_{k}", TYPES[part], values[:, k])
    _remove_slots(data, kind, used)


def remove_skin(data: bpy.types.PointCloud, kind: str) -> None:
    """Remove a set of influences, if it is there."""
    _remove_slots(data, kind, 0)


def _remove_slots(data: bpy.types.PointCloud, kind: str, first: int) -> None:
    for k in range(first, MAX_INFLUENCES):
        for part in TYPES:
            remove_attribute(data, f"{kind}:{part}_{k}")


def read_skin(data: bpy.types.PointCloud, kind: str = SKIN) -> Skin:
    """Read the skin back.

    Raises
    ------
    RigError : the point cloud has none, not all of them any more, or one of another type
    """
    slots = range(influence_count(data, kind))
    if not slots:
        raise RigError(f"'{data.name}' carries no skin weights; build a rig for it first")
    for part, k in product(TYPES, slots):
        name = f"{kind}:{part}_{k}"
        attribute = data.attributes.get(name)
        if attribute is None:
            raise RigError(f"'{data.name}' has lost its attribute '{name}'; build the rig again")
        if attribute.data_type != TYPES[part]:
            raise RigError(
                f"The attribute '{name}' of '{data.name}' is of type {attribute.data_type}, not "
                f"{TYPES[part]}; build the rig again"
            )

    def column(part: str) -> np.ndarray:
        return np.stack([read_attribute(data, f"{kind}:{part}_{k}") for k in slots], axis=1)

    return Skin(indices=column("index"), weights=column("weight"), gradients=column("gradient"))
