"""Bind splats to an armature that the user built."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import bpy

from ...core.errors import RigError
from ...core.skinning.skin import Skin
from ..attributes import splats
from ..capture_object import is_capture_object
from ..deformer import add_deformer
from ..modifiers import DISPLAY, remove_modifier
from ..rig_object import own_splats, show_playback
from ..skin_attributes import SKIN, keep_skins, put_back_skins, write_skin
from .layers import LAYERS, padded, restart_layers, restore_text
from .numbering import (
    bone_numbers,
    follow_numbers,
    planned_bones,
    release_others,
    restore_numbers,
    write_numbers,
)


def bind_splats(
    context: bpy.types.Context, object: bpy.types.Object, armature: bpy.types.Object, skin: Skin
) -> tuple[str, ...]:
    """Let an armature carry the splats, where both stand now; its deform bones get their numbers.

    Layers that the splats have stay and act on the new weights; those of bones the armature has not go. An
    object without parent becomes the armature's child. A rig the object had keeps its armature.

    Returns
    -------
    notes : one sentence each on what was cut, for a report

    Raises
    ------
    RigError : the splats are not those the weights were made for, or as `add_deformer`; all is as before then
    """
    names, fresh = [bone.name for bone in planned_bones(armature)], not bone_numbers(armature)
    if len(skin) != len(splats(object).points):
        raise RigError(f"The splats of '{object.name}' changed meanwhile; bind again")
    with weights_kept(object, armature):
        own_splats(object)
        write_skin(splats(object), padded(skin), SKIN)
        notes = restart_layers(object, names)
        write_numbers(armature, names)
        add_deformer(object, armature)
    if fresh:
        release_others(armature, object)
    follow_numbers(armature)  # others that it carries
    if is_capture_object(object):
        show_playback(object, False)
    remove_modifier(object, DISPLAY)  # thins out what plays; it comes again for what is deformed
    _parent(context, object, armature)
    context.view_layer.update()
    return (*skin.notes, *notes)


@contextmanager
def weights_kept(object: bpy.types.Object, armature: bpy.types.Object) -> Iterator[None]:
    """Put weights, layers and the numbers of bones back where something goes wrong."""
    data, numbers = splats(object), bone_numbers(armature)
    text, skins = data.get(LAYERS), keep_skins(data)
    try:
        yield
    except BaseException:
        object.data = data  # where splats of its own were made
        restore_numbers(armature, numbers)
        put_back_skins(data, skins)
        restore_text(object, text)
        raise


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
