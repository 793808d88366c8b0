"""What the user is working on: splats and armature of the active object, and objects found again later."""

from __future__ import annotations

import bpy

from ..core.errors import RigError
from .deformer import deformer_armature
from .point_cloud import is_splat_data


def active_splats(context: bpy.types.Context) -> bpy.types.Object | None:
    """Return the splat object the user means: the active one, or the one the active armature deforms."""
    object = context.active_object
    if object is None:
        return None
    if is_splat_data(object.data):
        return object
    if object.type == "ARMATURE":
        return next((o for o in context.scene.objects if active_armature_of(o) == object), None)
    return None


def active_armature(context: bpy.types.Context) -> bpy.types.Object | None:
    """Return the armature of :func:`active_splats`, None where they are not rigged."""
    splats = active_splats(context)
    return None if splats is None else active_armature_of(splats)


def active_armature_of(object: bpy.types.Object) -> bpy.types.Object | None:
    """Return the armature that deforms a splat object, None for anything else."""
    return deformer_armature(object) if is_splat_data(object.data) else None


def linked_reason(*blocks: bpy.types.ID | None) -> str | None:
    """Return one sentence where one of the blocks belongs to another file, None where all are this one's.

    Splats that are a library override count as the other file's: Blender saves nothing that is done to them.
    """
    for block in blocks:
        if block is None:
            continue
        if block.library is not None:
            return f"'{block.name}' is linked from another file; make it local (Object > Relations) first"
        if block.override_library is not None and isinstance(block, bpy.types.PointCloud):
            return (
                f"The splats '{block.name}' override those of another file, and what is done to them would "
                "not be saved; make them local (Object > Relations) first"
            )
    return None


def find_object(session_uid: int, name: str) -> bpy.types.Object:
    """Find an object again after a job: references do not outlive undo, the session's number does.

    Raises
    ------
    RigError : the object was deleted meanwhile.
    """
    found = next((o for o in bpy.data.objects if o.session_uid == session_uid), None)
    if found is None:
        raise RigError(f"'{name}' was deleted while the job ran, so its result was dropped; run it again")
    return found
