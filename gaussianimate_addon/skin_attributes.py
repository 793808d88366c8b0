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
from numpy.typing import NDArray

from ..core.errors import RigError
from ..core.skinning.skin import Skin
from .attributes import LAYOUT, has_attribute, read_attribute, remove_attribute, write_attribute

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
    return Skin(*read_influences(data, kind), _read(data, kind, "gradient"))


def read_influences(data: bpy.types.PointCloud, kind: str = SKIN) -> tuple[NDArray, NDArray]:
    """Read bones and weights (N, K) without their gradients; raises as `read_skin`."""
    return _read(data, kind, "index"), _read(data, kind, "weight")


def has_gradients(data: bpy.types.PointCloud, kind: str = SKIN) -> bool:
    """Return whether the weights there are have their gradients, all of them."""
    slots = range(influence_count(data, kind))
    return all(_problem(data, f"{kind}:gradient_{k}", "gradient") is None for k in slots)


def _read(data: bpy.types.PointCloud, kind: str, part: str) -> NDArray:
    """Return indices or weights (N, K), or gradients (N, K, 3)."""
    names = [f"{kind}:{part}_{k}" for k in range(influence_count(data, kind))]
    if not names:
        raise RigError(f"'{data.name}' carries no skin weights; build a rig for it first")
    for name in names:
        if (problem := _problem(data, name, part)) is not None:
            again = (
                "estimate the gradients in the Weights panel"
                if part == "gradient"
                else "build the rig again, or bind it again"
            )
            raise RigError(f"{problem}; {again}")
    return np.stack([read_attribute(data, name) for name in names], axis=1)


def _problem(data: bpy.types.PointCloud, name: str, part: str) -> str | None:
    attribute = data.attributes.get(name)
    if attribute is None:
        return f"'{data.name}' has lost its attribute '{name}'"
    if attribute.data_type != TYPES[part]:
        return f"The attribute '{name}' of '{data.name}' is of type {attribute.data_type}, not {TYPES[part]}"
    return None


def keep_skins(data: bpy.types.PointCloud) -> dict[str, tuple[str, NDArray]]:
    """Return the attributes of both sets as they are, whole or not: type and values by name."""
    names = [f"{kind}:{part}_{k}" for kind, part, k in product((SKIN, BASE), TYPES, range(MAX_INFLUENCES))]
    return {
        name: (data.attributes[name].data_type, read_attribute(data, name))
        for name in names
        if has_attribute(data, name) and data.attributes[name].data_type in LAYOUT
    }


def put_back_skins(data: bpy.types.PointCloud, kept: dict[str, tuple[str, NDArray]]) -> None:
    """Undo what happened to both sets since `keep_skins`."""
    for kind in (SKIN, BASE):
        remove_skin(data, kind)
    for name, (data_type, values) in kept.items():
        write_attribute(data, name, data_type, values)
