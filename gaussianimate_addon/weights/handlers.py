"""Bones renamed, deleted or duplicated are followed at once where splats were bound to be drawn on."""

from __future__ import annotations

from typing import Any

import bpy
from bpy.app.handlers import persistent

from ...core.errors import GaussiAnimateError
from ..armature import SKIN_BONE
from ..deform_nodes import bone_names
from ..deformer import deformer
from . import gesture_settings, layer_list
from .layers import MEMORY, REFUSED, has_layers
from .numbering import bound_objects, follow_bones, numbers_are_foreign


@persistent
def _after_update(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    """Look at the armatures that were edited; a pose changes neither their bones nor their names."""
    edited = {u.id.original.session_uid for u in depsgraph.updates if isinstance(u.id, bpy.types.Armature)}
    if edited:
        _follow(edited)


@persistent
def _after_undo(*_: Any) -> None:
    """Undo brings back what followers did after the step was stored."""
    REFUSED.clear()
    _follow(None)


@persistent
def _after_load(*_: Any) -> None:
    """Splats of the file before need no room any more; this one's bones may have been edited elsewhere."""
    MEMORY.clear()
    REFUSED.clear()
    _follow(None)


def _follow(edited: set[int] | None) -> None:
    for armature in bpy.data.objects:
        if armature.type != "ARMATURE" or armature.library is not None or armature.mode == "EDIT":
            continue
        data: Any = armature.data
        if numbers_are_foreign(data) or (edited is not None and data.session_uid not in edited):
            continue
        objects = bound_objects(armature)
        if objects and any(has_layers(object) for object in objects) and _has_changed(data, objects):
            _try_follow(armature)


def _has_changed(data: bpy.types.Armature, objects: list[bpy.types.Object]) -> bool:
    """Whether the numbered bones are not those that the deformers follow; cheap, for every update."""
    numbered = sorted((int(bone[SKIN_BONE]), bone.name) for bone in data.bones if SKIN_BONE in bone)
    for object in objects:
        modifier: Any = deformer(object)
        try:
            names = bone_names(modifier.node_group)
        except (AttributeError, KeyError, StopIteration):
            continue  # nodes that the user changed
        if numbered != list(enumerate(names)):
            return True
    return False


def _try_follow(armature: bpy.types.Object) -> None:
    try:
        follow_bones(armature)
    except GaussiAnimateError as error:
        print(f"GaussiAnimate could not follow the bones of '{armature.name}': {error}")


_HANDLERS = (
    ("depsgraph_update_post", _after_update),
    ("undo_post", _after_undo),
    ("redo_post", _after_undo),
    ("load_post", _after_load),
)


def register() -> None:
    """Add layers to splats and settings to scenes, and follow the file."""
    layer_list.register()
    gesture_settings.register()
    for event, function in _HANDLERS:
        getattr(bpy.app.handlers, event).append(function)


def unregister() -> None:
    """Undo :func:`register`."""
    for event, function in _HANDLERS:
        handlers = getattr(bpy.app.handlers, event)
        if function in handlers:
            handlers.remove(function)
    MEMORY.clear()
    REFUSED.clear()
    gesture_settings.unregister()
    layer_list.unregister()
