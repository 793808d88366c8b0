"""One call from a finished Rig to a posable object."""

from __future__ import annotations

from typing import Any, cast

import bpy
import numpy as np
from mathutils import Matrix

from ..core.deform.deform import diagonal
from ..core.errors import RigError
from ..core.motion.learned import LearnedMotion
from ..core.rigging.rig import Rig
from ..core.skinning.skin import Skin
from .action import MADE_HERE, replay_action
from .armature import JOINT, SKIN_BONE, indexed_bones, rig_to_armature
from .attributes import read_attribute, splats
from .capture_frames import CaptureFrames, load_frames
from .capture_object import check_frame, is_capture_object, scene_frame, show_frame
from .deformer import add_deformer, deformer_armature
from .modifiers import DEFORM, DISPLAY, PLAYBACK, find_modifier, remove_modifier
from .motion_store import store_motion
from .motion_switch import remember_replay
from .skin_attributes import write_skin
from .weights.layers import has_layers, read_layers, restart_layers

Parenting = tuple[bpy.types.Object | None, Any, str, Matrix]


def apply_rig(
    context: bpy.types.Context,
    object: bpy.types.Object,
    rig: Rig,
    skin: Skin,
    motion: LearnedMotion | None = None,
) -> bpy.types.Object:
    """Give a capture object its armature, replay action, skin and deformer; returns the armature.

    The canonical frame becomes the rest state, playback from the stored frames is switched off (they stay,
    so that the rig can be built anew), and the object becomes a child of the armature, which is the one to
    move from now on, unless the object is animated itself. A rig the object had before is replaced.
    The motion learned from the rig's poses is kept with the armature. Selection layers stay where the new rig
    has bones of their names. An armature that the user built, which carried the splats, is kept.

    Raises
    ------
    RigError : the rig was not built from this object's splats.
    """
    frames = load_frames(object) if is_capture_object(object) else None
    _check_fit(object, rig, skin, frames)
    if has_layers(object):
        read_layers(object)  # raises where they are of a later version, before anything is changed
    # All that is new comes first: a failure on the way leaves the rig the object has.
    name = f"{object.name} rig"
    armature = rig_to_armature(context, rig, name)
    action = replay_action(armature, rig, context.scene, *replay_timing(object))
    remember_replay(armature)  # before anything is evaluated: a replay is not answered
    if motion is not None:
        store_motion(armature, motion)
    own_splats(object)
    write_skin(splats(object), skin)
    remove_rig(object)
    armature.name = armature.data.name = name  # free again where a rig was replaced
    action.name = f"{name} replay"
    if frames is not None:
        show_frame(object, rig.canonical_frame, frames)
        del frames
    if has_layers(object):  # evaluated at the new rest state
        restart_layers(object, [bone.name for bone in indexed_bones(armature, SKIN_BONE)])
    show_playback(object, False)
    _take_place(context, object, armature)
    add_deformer(object, armature)
    context.view_layer.update()
    return armature


def replay_timing(object: bpy.types.Object) -> tuple[float | None, float | None]:
    """Return scene frame of the first frame and scene frames a frame lasts, None twice without playback."""
    if find_modifier(object, PLAYBACK) is None:
        return None, None
    start = scene_frame(object, 0)
    return start, scene_frame(object, 1) - start


def own_splats(object: bpy.types.Object) -> None:
    """Give the object splats of its own where it shares them with other objects."""
    if splats(object).users > 1 + splats(object).use_fake_user:
        object.data = splats(object).copy()


def _check_fit(object: bpy.types.Object, rig: Rig, skin: Skin, frames: CaptureFrames | None) -> None:
    """Raise RigError unless the rig's rest pose is the object's canonical frame, and it can be bound."""
    if abs(object.matrix_world.determinant()) < 1e-18:
        raise RigError(f"'{object.name}' is scaled to nothing; give it a scale other than 0")
    if len(rig.rest) != len(splats(object).points) or len(skin) != len(rig.rest):
        raise RigError(
            f"the rig has {len(rig.rest)} splats and '{object.name}' has {len(splats(object).points)};"
            " build the rig from this object"
        )
    if frames is None:
        rest = read_attribute(splats(object), "position")
    else:
        check_frame(object, rig.canonical_frame, frames)
        rest = frames.positions[rig.canonical_frame]
    if not np.allclose(rest, rig.rest, rtol=0, atol=1e-3 * diagonal(rig.rest)):
        raise RigError(f"the rig's rest pose is not that of '{object.name}'; build the rig from this object")


def remove_rig(object: bpy.types.Object) -> None:
    """Remove an earlier rig, if there is one: deformer, armature and action; the frames play again.

    An armature that deforms other splats too (copies of the object) stays theirs, and one that was not made
    from a capture the user's.
    """
    armature = deformer_armature(object)
    remove_modifier(object, DEFORM)
    remove_modifier(object, DISPLAY)  # thins out what a rig deforms, never what plays
    if armature is not None and (_deforms_others(armature, object) or not indexed_bones(armature, JOINT)):
        if object.parent == armature:
            world = object.matrix_world.copy()
            _set_parenting(object, _parenting(armature))
            object.matrix_world = world
    elif armature is not None:
        world, parenting = object.matrix_world.copy(), _parenting(armature)
        is_child = object.parent == armature
        action = armature.animation_data.action if armature.animation_data else None
        data = cast(bpy.types.Armature, armature.data)
        if action is not None and MADE_HERE not in action:
            action.use_fake_user = True  # the user's own work is saved though nothing plays it now
        bpy.data.objects.remove(armature)
        if is_child:
            _set_parenting(object, parenting)
            object.matrix_world = world
        if data.users == 0:
            bpy.data.armatures.remove(data)
        if action is not None and action.users == 0 and MADE_HERE in action:  # never an action of the user's
            bpy.data.actions.remove(action)
    show_playback(object, True)


def _deforms_others(armature: bpy.types.Object, object: bpy.types.Object) -> bool:
    return any(
        other != object and other.type == "POINTCLOUD" and deformer_armature(other) == armature
        for other in bpy.data.objects
    )


def show_playback(object: bpy.types.Object, shown: bool) -> None:
    """Switch playback of the stored frames on or off, in the viewport and in renders."""
    modifier = find_modifier(object, PLAYBACK)
    if modifier is not None:
        modifier.show_viewport = modifier.show_render = shown


def _take_place(context: bpy.types.Context, object: bpy.types.Object, armature: bpy.types.Object) -> None:
    """Put the armature where the object is, under its parent, and the object under the armature.

    An object that moves by itself (keys, drivers, constraints) goes on doing so, its armature under it.
    """
    _join_collections(context, object, armature)
    if _moves_itself(object):
        armature.parent = object
    context.view_layer.update()
    if armature.parent == object:
        return
    world = object.matrix_world.copy()
    _set_parenting(armature, _parenting(object))
    armature.matrix_world = world
    context.view_layer.update()
    _set_parenting(object, (armature, "OBJECT", "", armature.matrix_world.inverted_safe()))
    object.matrix_world = world
    context.view_layer.update()


def _moves_itself(object: bpy.types.Object) -> bool:
    animation = object.animation_data
    animated = animation and (animation.action or len(animation.drivers) or len(animation.nla_tracks))
    return bool(animated) or len(object.constraints) > 0


def _join_collections(
    context: bpy.types.Context, object: bpy.types.Object, armature: bpy.types.Object
) -> None:
    """Let the armature be in the collections the object is in, as far as they are this scene's own."""
    home = context.scene.collection
    known = {home, *home.children_recursive}
    wanted = [each for each in object.users_collection if each in known and each.library is None]
    for collection in wanted:
        if armature.name not in collection.objects:
            collection.objects.link(armature)
    if wanted and home not in wanted:
        home.objects.unlink(armature)


def _parenting(object: bpy.types.Object) -> Parenting:
    return object.parent, object.parent_type, object.parent_bone, object.matrix_parent_inverse.copy()


def _set_parenting(object: bpy.types.Object, parenting: Parenting) -> None:
    object.parent, object.parent_type, object.parent_bone, object.matrix_parent_inverse = parenting
