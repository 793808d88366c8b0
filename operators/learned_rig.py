"""Operators that solve a rig again: what they need, and what they work on."""

from __future__ import annotations

import bpy

from ..gaussianimate_addon.armature_edits import leave_edit_mode
from ..gaussianimate_addon.libraries import missing_library
from ..gaussianimate_addon.motion_store import has_motion
from ..gaussianimate_addon.subject import active_armature, active_splats, find_object, linked_reason
from .pose import NeedsRig


class NeedsLearnedRig(NeedsRig):
    """Mix-in of operators that change a rig which knows its motion, all of this file.

    solving : what scipy is needed for
    """

    solving = ""

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """There must be such a rig."""
        if reason := super().unready(context):
            return reason
        armature, object = active_armature(context), active_splats(context)
        assert armature is not None and object is not None
        if reason := linked_reason(armature.data, object, object.data):
            return reason
        if not has_motion(armature):
            return f"'{armature.name}' has learned no motion; build the rig again from the capture"
        return missing_library("scipy", cls.solving)

    def note_subjects(self, context: bpy.types.Context) -> tuple[bpy.types.Object, bpy.types.Object]:
        """Return splats and armature, and note them for :meth:`subjects`."""
        armature, object = active_armature(context), active_splats(context)
        assert armature is not None and object is not None
        self._splats = object.session_uid, object.name
        self._armature = armature.session_uid, armature.name
        return object, armature

    def subjects(self) -> tuple[bpy.types.Object, bpy.types.Object]:
        """Find splats and armature again.

        Raises
        ------
        RigError : one was deleted meanwhile
        """
        return find_object(*self._splats), find_object(*self._armature)

    @staticmethod
    def end_editing(context: bpy.types.Context, armature: bpy.types.Object) -> None:
        """Leave the armature's Edit Mode, in a step of its own, as with Tab."""
        if leave_edit_mode(armature) and bpy.context.window is not None:
            bpy.ops.ed.undo_push(message="Toggle Edit Mode")
