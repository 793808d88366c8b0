"""Changes of the list of layers."""

from __future__ import annotations

from dataclasses import replace

import bpy
import numpy as np

from ...core.errors import SelectionError
from ...core.selection.mirror import REFLECT_X, mirror_layer
from ..deform_nodes import get_bind
from ..deformer import deformer
from .gestures import layer_bone
from .layer_list import layer_list
from .layers import read_layers, write_layers


def move_layer(object: bpy.types.Object, index: int, step: int) -> tuple[str, ...]:
    """Let a layer act before the one above it (-1) or after the one below it (+1) of the same bone.

    This and the other edits return what `write_layers` does, notes for a report.
    """
    stack = read_layers(object)
    bone = stack.layers[index].bone
    same = [i for i, layer in enumerate(stack.layers) if layer.bone == bone]
    place = same.index(index) + step
    if not 0 <= place < len(same):
        return ()
    notes = write_layers(object, stack.moved(index, same[place]))
    layer_list(object).active = same[place]
    return notes


def duplicate_layer(object: bpy.types.Object, index: int) -> tuple[str, ...]:
    """Add a copy of a layer right after it."""
    stack = read_layers(object)
    notes = write_layers(object, stack.added(stack.layers[index], index + 1))
    layer_list(object).active = index + 1
    return notes


def delete_layer(object: bpy.types.Object, index: int) -> tuple[str, ...]:
    """Delete a layer; the one before it of the same bone becomes active, else the next."""
    stack = read_layers(object)
    bone = stack.layers[index].bone
    after = stack.without(index)
    notes = write_layers(object, after)
    same = [i for i, layer in enumerate(after.layers) if layer.bone == bone]
    layer_list(object).active = max((i for i in same if i < index), default=min(same, default=-1))
    return notes


def copy_bone_layers(
    object: bpy.types.Object, bone: str, to: str = "", index: int | None = None, mirror: bool = True
) -> tuple[int, str, tuple[str, ...]]:
    """Copy layers to another bone.

    Parameters
    ----------
    to : the other bone; empty: that of the opposite side, or the bone itself where it has none
    index : copy this layer only, after those the other bone has; None: all of the bone's, in place of them.
        A bone in the middle takes the mirrored layer itself, right after the one it was made of
    mirror : across the armature's X as bound; False selects the same splats

    Returns
    -------
    how many layers, to which bone, and notes

    Raises
    ------
    SelectionError : there is no such bone, or no opposite side for all of a bone's layers
    """
    to = to or bpy.utils.flip_name(bone)
    if to == bone:
        return 1, bone, _mirror_in_place(object, bone, index if mirror else None)
    to, stack = layer_bone(object, to), read_layers(object)
    copied = stack.of_bone(bone) if index is None else (stack.layers[index],)
    reflection = armature_reflection(object)
    made = [mirror_layer(layer, to, reflection) if mirror else replace(layer, bone=to) for layer in copied]
    kept = stack.layers if index is not None else tuple(la for la in stack.layers if la.bone != to)
    return len(made), to, write_layers(object, replace(stack, layers=(*kept, *made)))


def _mirror_in_place(object: bpy.types.Object, bone: str, index: int | None) -> tuple[str, ...]:
    """Add a layer's mirror image to its own bone: what a body gives to one arm it gives to the other."""
    if index is None:
        raise SelectionError(
            f"The bone '{bone}' has no other side; name bones with .L and .R, or mirror one layer"
        )
    stack = read_layers(object)
    made = mirror_layer(stack.layers[index], bone, armature_reflection(object))
    notes = write_layers(object, stack.added(made, index + 1))
    layer_list(object).active = index + 1
    return notes


def armature_reflection(object: bpy.types.Object) -> np.ndarray:
    """Return the reflection (4, 4) across the armature's YZ plane, in the object's space."""
    modifier = deformer(object)
    assert modifier is not None
    bind = get_bind(modifier.node_group)
    return np.linalg.inv(bind) @ REFLECT_X @ bind
