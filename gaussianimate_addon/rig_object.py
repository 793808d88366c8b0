"""One call from a finished Rig to a posable object."""

from __future__ import annotations

import bpy

from ..core.rigging.rig import Rig
from ..core.skinning.skin import Skin


def apply_rig(context: bpy.types.Context, object: bpy.types.Object, rig: Rig, skin: Skin) -> bpy.types.Object:
    """Give a capture object its armature, replay action, skin and deformer; returns the armature.

    The canonical frame becomes the rest state, playback from stored frames is switched off, and the
    object becomes a child of the armature. A rig the object had before is replaced.
    """
    raise NotImplementedError
