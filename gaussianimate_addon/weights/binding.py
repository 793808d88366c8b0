"""Bind splats to an armature that the user built."""

from __future__ import annotations

from typing import cast

import bpy

from ...core.skinning.skin import Skin
from ..armature import SKIN_BONE, indexed_bones
from ..attributes import splats
from ..capture_object import is_capture_object
from ..deformer import add_deformer
from ..modifiers import DISPLAY, remove_modifier
from ..rig_object import own_splats, show_playback
from ..skin_attributes import SKIN, write_skin
from .layers import padded, restart_layers


def bind_splats(
    context: bpy.types.Context, object: bpy.types.Object, armature: bpy.types.Object, skin: Skin
) -> tuple[str, ...]:
    """Let an armature whose deform bones have numbers carry the splats, where both stand now.

    Layers that the splats have stay and act on the new weights; those of bones the armature has not go. An
    object without parent becomes the armature's child. A rig the object had keeps its armature.

    Returns
    -------
    notes : one sentence each on what was cut, for a report
    """
    own_splats(object)
    data, names = splats(object), [bone.name for bone in indexed_bones(armature, SKIN_BONE)]
    write_skin(data, padded(skin), SKIN)
    notes = restart_layers(object, names)
    if is_capture_object(object):
        show_playback(object, False)
    remove_modifier(object, DISPLAY)  # thins out what plays; it comes again for what is deformed
    add_deformer(object, armature)
    _parent(context, object, armature)
    context.view_layer.update()
    return (*skin.notes, *notes)


def _parent(context: bpy.types.Context, object: bpy.types.Object, armature: bpy.types.Object) -> None:
    """Let splats that belong to nothing move with the armature, as Blender's own Armature Deform does."""
    if object.parent is not None or object.animation_data is not None or len(object.constraints):
        return
    above: bpy.types.Object | None = armature
    while above is not None:
        if above == object:
            return
        above = cast("bpy.types.Object | None", above.parent)
    world = object.matrix_world.copy()
    object.parent = armature
    object.matrix_parent_inverse = armature.matrix_world.inverted_safe()
    object.matrix_world = world
    context.view_layer.update()
