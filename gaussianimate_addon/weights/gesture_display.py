"""Who draws the splats while a selection is drawn, and afterwards."""

from __future__ import annotations

import bpy

from ..drawer.display import DRAWER, NATIVE, set_display
from ..properties import display_settings, object_notes

_borrowed: set[int] = set()  # session numbers of objects


def chosen_display(object: bpy.types.Object) -> str:
    """Return who draws an object by the user's choice, whoever does so while a selection is drawn."""
    return NATIVE if object.session_uid in _borrowed else object_notes(object).display


def borrow_display(object: bpy.types.Object) -> bool:
    """Let our drawer show an object, as the mask needs it; returns whether Blender has shown it so far."""
    if object_notes(object).display == DRAWER:
        return False
    _borrowed.add(object.session_uid)
    set_display(object, DRAWER)
    return True


def return_display(session_uid: int, scene: bpy.types.Scene) -> None:
    """Let Blender show a borrowed object again, unless what the scene shows of splats needs our drawer."""
    _borrowed.discard(session_uid)
    object = next((each for each in bpy.data.objects if each.session_uid == session_uid), None)
    if object is not None and not shows_more_than_colours(scene):
        set_display(object, NATIVE)


def shows_more_than_colours(scene: bpy.types.Scene) -> bool:
    """Whether the scene shows of its splats what only our drawer can show: weights, stretch, gradients."""
    shown = display_settings(scene)
    return shown.show != "COLOUR" or shown.outlines or shown.gradients or shown.unweighted
