"""The geometry-nodes deformer: the gradient rig without this add-on."""

from __future__ import annotations

import bpy


def add_deformer(object: bpy.types.Object, armature: bpy.types.Object) -> bpy.types.NodesModifier:
    """Bind the splats (which carry a skin) to the armature's skin bones as they stand now."""
    raise NotImplementedError


def deformer(object: bpy.types.Object) -> bpy.types.NodesModifier | None:
    """Return the object's deformer modifier, None where it has none."""
    raise NotImplementedError


def deformer_armature(object: bpy.types.Object) -> bpy.types.Object | None:
    """Return the armature that deforms the object, None where there is none."""
    raise NotImplementedError


def bind_is_stale(object: bpy.types.Object) -> str | None:
    """Return one sentence saying what changed since binding (Apply, renamed bones), None if nothing."""
    raise NotImplementedError


def rebind(object: bpy.types.Object) -> None:
    """Mend a stale bind: after a native Apply, scale, rotation, colours and the bind follow."""
    raise NotImplementedError
