"""What follows when the numbers or names of an armature's deform bones change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bpy
import numpy as np

from ...core.skinning.skin import STATIC
from ..armature import SKIN_BONE, bone_matrices, indexed_bones
from ..attributes import read_attribute, splats, write_attribute
from ..bind import BONES, POINTS, bind_skin_rests
from ..capture_frames import COUNT
from ..deform_nodes import bone_names, get_bind, own_group, set_bone_names
from ..deformer import add_deformer, deformer
from ..modifiers import get_input, set_input
from ..skin_attributes import BASE, SKIN, influence_count
from .layers import has_layers, read_layers, write_layers

INPUTS = ("Elastic", "Rotate Colours")


def renew(
    object: bpy.types.Object,
    armature: bpy.types.Object,
    moved: dict[int, int],
    names: Sequence[str],
    weights: bool = True,
) -> None:
    """Let one object's weights, layers and deformer follow.

    Parameters
    ----------
    moved : old number -> new one; numbers that are missing are those of deleted bones
    names : all bones now, by their numbers
    weights : whether its splats have to follow too; not where objects share them and one has seen to it
    """
    modifier: Any = deformer(object)
    before = bone_names(modifier.node_group)
    same_numbers = len(before) == len(names) and all(moved.get(i) == i for i in range(len(before)))
    if not same_numbers:
        if weights:
            for kind in (SKIN, BASE):
                _renumber(splats(object), kind, len(before), moved)
        renew_deformer(object, armature, moved)
    else:
        set_bone_names(own_group(modifier), names)
    if weights and has_layers(object):
        _rename_layers(object, before, names, moved)


def _renumber(data: bpy.types.PointCloud, kind: str, count: int, moved: dict[int, int]) -> None:
    """Rewrite bone indices; weights of deleted bones go to the static bone."""
    table = np.full(count + 1, STATIC, np.int32)  # the last is the static bone
    for old, new in moved.items():
        if old < count:
            table[old] = new
    for k in range(influence_count(data, kind)):
        name = f"{kind}:index_{k}"
        write_attribute(data, name, "INT", table[read_attribute(data, name)])
    data.update_tag()


def renew_deformer(
    object: bpy.types.Object, armature: bpy.types.Object, moved: dict[int, int] | None = None
) -> None:
    """Make the deformer anew for the bones and influences there are now, bound as it was."""
    old: Any = deformer(object)
    inputs = {name: get_input(old, name) for name in INPUTS}
    rests, kept = bind_skin_rests(object), [object.get(key) for key in (POINTS, COUNT)]
    modifier = add_deformer(object, armature, get_bind(old.node_group))
    for name, value in inputs.items():
        set_input(modifier, name, value)
    for key, value in zip((POINTS, COUNT), kept, strict=True):
        if value is not None:
            object[key] = value  # a transform applied meanwhile is still to be mended
    now = bone_matrices(indexed_bones(armature, SKIN_BONE))
    for number in range(len(rests)):
        new = number if moved is None else moved.get(number, -1)
        if 0 <= new < len(now):
            now[new] = rests[number]
    object[BONES] = [float(v) for v in now.ravel()]


def _rename_layers(
    object: bpy.types.Object, before: Sequence[str], names: Sequence[str], moved: dict[int, int]
) -> None:
    """Let layers follow their bones; those of deleted bones go, and weights are evaluated anew."""
    stack = read_layers(object)
    now = {name: names[moved[old]] for old, name in enumerate(before) if old in moved}
    followed = stack.followed(names, now)
    write_layers(object, followed, evaluate=bool(stack.layers) and len(now) < len(before))
