"""What happens to the file while splats are drawn: edits, undo, frames, other files, saving."""

from __future__ import annotations

from typing import Any

import bpy
from bpy.app.handlers import persistent

from ..views import redraw_views
from . import viewport
from .appearances import may_instance
from .display import give_back_all, hand_over_all
from .viewport import DRAWER

_HOLDERS = (bpy.types.Scene, bpy.types.Collection, bpy.types.GeometryNodeTree)  # of objects


@persistent
def _after_update(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    """Note which splats changed. A pose changes none: it is read at every draw."""
    for update in depsgraph.updates:
        block: Any = update.id
        if isinstance(block, bpy.types.PointCloud):
            DRAWER.forget(block.original.session_uid)
            DRAWER.look_again()  # it may hold splats no more, or anew
        elif isinstance(block, bpy.types.Armature) and update.is_updated_geometry:
            DRAWER.look_at_rigs()  # posed, or edited
        elif isinstance(block, bpy.types.Object):
            _note_object(block, update)
        elif isinstance(block, _HOLDERS):
            DRAWER.look_again()


def _note_object(object: bpy.types.Object, update: bpy.types.DepsgraphUpdate) -> None:
    """Dragging bones changes geometry only, dragging other objects transforms only: that asks for nothing.

    Of other objects, which animation reports at every frame, only those matter that may instance splats.
    """
    if object.type == "POINTCLOUD":
        if update.is_updated_geometry:
            DRAWER.forget_played(object.original.session_uid)
        posed = update.is_updated_geometry and not update.is_updated_transform
        if posed and not update.is_updated_shading:
            return
    elif not (update.is_updated_shading and may_instance(object)):
        return
    DRAWER.look_again()


@persistent
def _after_frame(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    """Edits that a script makes before it changes the frame are evaluated with it, and told of here only."""
    DRAWER.forget_played()
    _after_update(scene, depsgraph)


@persistent
def _after_undo(*_: Any) -> None:
    DRAWER.forget()
    redraw_views()


@persistent
def _before_load(*_: Any) -> None:
    DRAWER.reset()


@persistent
def _after_load(*_: Any) -> None:
    DRAWER.reset()
    DRAWER.failure = None  # it may have been the last file's
    _hand_over()


@persistent
def _before_save(*_: Any) -> None:
    """A file shows its splats where this extension is not installed."""
    give_back_all()


def _has_viewports() -> bool:
    return not bpy.app.background


@persistent
def _hand_over(*_: Any) -> None:
    if DRAWER.failure is None and _has_viewports():
        hand_over_all()


_HANDLERS = (
    ("depsgraph_update_post", _after_update),
    ("frame_change_post", _after_frame),
    ("undo_post", _after_undo),
    ("redo_post", _after_undo),
    ("load_pre", _before_load),
    ("load_post", _after_load),
    ("save_pre", _before_save),
    ("save_post", _hand_over),
    ("save_post_fail", _hand_over),
    ("blend_import_post", _hand_over),
)


def register() -> None:
    """Follow the file."""
    for event, function in _HANDLERS:
        getattr(bpy.app.handlers, event).append(function)
    viewport.start()
    if _has_viewports():
        bpy.app.timers.register(_hand_over, first_interval=0.0)  # no data yet while add-ons are enabled


def unregister() -> None:
    """Undo :func:`register`; Blender draws all splats again."""
    if bpy.app.timers.is_registered(_hand_over):
        bpy.app.timers.unregister(_hand_over)
    give_back_all()
    viewport.stop()
    for event, function in _HANDLERS:
        handlers = getattr(bpy.app.handlers, event)
        if function in handlers:
            handlers.remove(function)
