"""When skin bones answer: after every update that poses an armature, and after every change of the frame.

Blender evaluates what a handler changes in a second pass of the same update, without calling handlers again,
so that the answer is seen at once, also in renders.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import bpy
from bpy.app.handlers import persistent

from ..motion_store import has_motion
from ..motion_switch import is_replaying
from ..properties import FOLLOWERS, object_notes
from ..views import redraw_sidebars
from .bone_colours import colour_bones
from .live import SESSION
from .modes import LIVE, apply_colours, apply_mode, mode_of, mute_baked

TAB = "GaussiAnimate"


@persistent
def _after_update(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    _follow(scene, depsgraph, played=False)


@persistent
def _after_frame(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    _follow(scene, depsgraph, played=True)


def _follow(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph, played: bool) -> None:
    if SESSION.paused:
        return
    for armature in _posed(scene, depsgraph, played):
        if armature.session_uid in SESSION.failures:
            continue
        try:
            _answer(armature, depsgraph, played)
        except Exception as error:  # nothing may pass: Blender would tell it at every update
            SESSION.fail(armature, error)
            redraw_sidebars(TAB)


def _posed(
    scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph, played: bool
) -> Iterator[bpy.types.Object]:
    """The armatures of this file with a learned motion whose pose or action this update may have changed."""
    changed: dict[int, Any] = {}
    actions: set[int] = set()
    for update in depsgraph.updates:
        block: Any = update.id
        if isinstance(block, bpy.types.Object) and block.type == "ARMATURE" and update.is_updated_geometry:
            changed[block.original.session_uid] = block.original
        elif isinstance(block, bpy.types.Action) and not played:  # keys may change what came before alone
            actions.add(block.original.session_uid)
    objects: Any = scene.objects if actions else ()
    for object in objects:
        animation = object.animation_data if object.type == "ARMATURE" else None
        if animation is not None and animation.action and animation.action.session_uid in actions:
            changed[object.session_uid] = object
    for armature in changed.values():
        if armature.library is None and armature.mode != "EDIT" and has_motion(armature):
            yield armature


def _answer(armature: bpy.types.Object, depsgraph: bpy.types.Depsgraph, played: bool) -> None:
    if mode_of(armature) == LIVE and not is_replaying(armature):
        if SESSION.plays_another_action(armature):
            mute_baked(armature, True)
        changed = SESSION.answer(armature, depsgraph, played)
    else:
        changed = SESSION.pose_changed(armature)
    if depsgraph.mode == "RENDER":  # in a thread beside the window
        return
    if changed and not bpy.app.background:
        redraw_sidebars(TAB)
    if changed and object_notes(armature).colour_bones:
        distances = SESSION.covered(armature, depsgraph)
        colour_bones(armature, SESSION.of(armature).bones.database, distances)


@persistent
def _forget(*_: Any) -> None:
    SESSION.forget()


_HANDLERS = (
    ("depsgraph_update_post", _after_update),
    ("frame_change_post", _after_frame),
    ("undo_post", _forget),
    ("redo_post", _forget),
    ("load_post", _forget),
)


def register() -> None:
    """Follow poses, and the switches."""
    FOLLOWERS.update(secondary_motion=apply_mode, colour_bones=apply_colours)
    for event, function in _HANDLERS:
        getattr(bpy.app.handlers, event).append(function)


def unregister() -> None:
    """Undo :func:`register`; bones stay where they are."""
    for event, function in _HANDLERS:
        handlers = getattr(bpy.app.handlers, event)
        if function in handlers:
            handlers.remove(function)
    for name in ("secondary_motion", "colour_bones"):
        FOLLOWERS.pop(name, None)
    SESSION.forget()
