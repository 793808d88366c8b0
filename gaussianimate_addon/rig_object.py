"""One call from a finished Rig to a posable object."""

from __future__ import annotations

from typing import Any, cast

import bpy
import numpy as np
from mathutils import Matrix

from ..core.deform.deform import diagonal
from ..core.errors import RigError
from ..core.rigging.rig import Rig
from ..core.skinning.skin import Skin
from .action import MADE_HERE, replay_action
from .armature import rig_to_armature
from .attributes import read_attribute, splats
from .capture_frames import CaptureFrames, load_frames
from .capture_object import is_capture_object, scene_frame, show_frame
from .deformer import add_deformer, deformer_armature
from .modifiers import DEFORM, PLAYBACK, find_modifier, remove_modifier
from .skin_attributes import write_skin

Parenting = tuple[bpy.types.Object | None, Any, str, Matrix]


def apply_rig(context: bpy.types.Context, object: bpy.types.Object, rig: Rig, skin: Skin) -> bpy.types.Object:
    """Give a capture object its armature, replay action, skin and deformer; returns the armature.

    The canonical frame becomes the rest state, playback from the stored frames is switched off (they stay,
    so that the rig can be built anew), and the object becomes a child of the armature, which is the one to
    move from now on. A rig the object had before is replaced.

    Raises
    ------
    RigError : the rig was not built from this object's splats.
    """
    frames = load_frames(object) if is_capture_object(object) else None
    _check_fit(object, rig, frames)
    write_skin(splats(object), skin)
    remove_rig(object)
    if frames is not None:
        show_frame(object, rig.canonical_frame, frames)
        del frames
    show_playback(object, False)
    armature = rig_to_armature(context, rig, f"{object.name} rig")
    _take_place(context, object, armature)
    add_deformer(object, armature)
    replay_action(armature, rig, context.scene, *_timing(object))
    context.view_layer.update()
    return armature


def _timing(object: bpy.types.Object) -> tuple[float | None, float | None]:
    """Return scene frame of the first frame and scene frames a frame lasts, None twice without playback."""
    if find_modifier(object, PLAYBACK) is None:
        return None, None
    start = scene_frame(object, 0)
    return start, scene_frame(object, 1) - start


def _check_fit(object: bpy.types.Object, rig: Rig, frames: CaptureFrames | None) -> None:
    """Raise RigError unless the rig's rest pose is the object's canonical frame."""
    if len(rig.rest) != len(splats(object).points):
        raise RigError(
            f"the rig has {len(rig.rest)} splats and '{object.name}' has {len(splats(object).points)};"
            " build the rig from this object"
        )
    if frames is None:
        rest = read_attribute(splats(object), "position")
    else:
        rest = frames.positions[min(rig.canonical_frame, len(frames.positions) - 1)]
    if not np.allclose(rest, rig.rest, rtol=0, atol=1e-3 * diagonal(rig.rest)):
        raise RigError(f"the rig's rest pose is not that of '{object.name}'; build the rig from this object")


def remove_rig(object: bpy.types.Object) -> None:
    """Remove an earlier rig, if there is one: deformer, armature and action; the frames play again."""
    armature = deformer_armature(object)
    remove_modifier(object, DEFORM)
    if armature is not None:
        world, parenting = object.matrix_world.copy(), _parenting(armature)
        action = armature.animation_data.action if armature.animation_data else None
        data = cast(bpy.types.Armature, armature.data)
        bpy.data.objects.remove(armature)
        _set_parenting(object, parenting)
        object.matrix_world = world
        if data.users == 0:
            bpy.data.armatures.remove(data)
        if action is not None and action.users == 0 and MADE_HERE in action:  # never an action of the user's
            bpy.data.actions.remove(action)
    show_playback(object, True)


def show_playback(object: bpy.types.Object, shown: bool) -> None:
    """Switch playback of the stored frames on or off, in the viewport and in renders."""
    modifier = find_modifier(object, PLAYBACK)
    if modifier is not None:
        modifier.show_viewport = modifier.show_render = shown


def _take_place(context: bpy.types.Context, object: bpy.types.Object, armature: bpy.types.Object) -> None:
    """Put the armature where the object is, under its parent, and the object under the armature."""
    context.view_layer.update()
    world = object.matrix_world.copy()
    _set_parenting(armature, _parenting(object))
    armature.matrix_world = world
    context.view_layer.update()
    _set_parenting(object, (armature, "OBJECT", "", armature.matrix_world.inverted_safe()))
    object.matrix_world = world
    context.view_layer.update()


def _parenting(object: bpy.types.Object) -> Parenting:
    return object.parent, object.parent_type, object.parent_bone, object.matrix_parent_inverse.copy()


def _set_parenting(object: bpy.types.Object, parenting: Parenting) -> None:
    object.parent, object.parent_type, object.parent_bone, object.matrix_parent_inverse = parenting
