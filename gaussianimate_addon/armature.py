"""Rig -> one native armature: bone collections "Skeleton" and "Skin bones"."""

from __future__ import annotations

import bpy

from ..core.rigging.rig import Rig

SKELETON = "Skeleton"
SKIN_BONES = "Skin bones"


def rig_to_armature(context: bpy.types.Context, rig: Rig, name: str) -> bpy.types.Object:
    """Add an armature object, linked to the scene at the world origin, in the axes of the capture."""
    raise NotImplementedError
