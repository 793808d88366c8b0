"""What moves the skin bones while a rig is posed anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bpy

from ..core.errors import RigError
from ..gaussianimate_addon.motion_store import has_motion
from ..gaussianimate_addon.secondary.modes import set_mode
from ..gaussianimate_addon.subject import active_armature
from .pose import NeedsRig

DESCRIPTIONS = {
    "LIVE": "Skin bones answer every pose as the capture moved in poses like it",
    "BAKED": "Skin bones play their baked keys, which needs nothing of this extension",
    "OFF": "Skin bones are rigid on the skeleton; baked keys are kept",
}


class NeedsMotion(NeedsRig):
    """Mix-in of operators on a rig that has learned how its skin bones move."""

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """There must be a learned motion."""
        if reason := super().unready(context):
            return reason
        armature = active_armature(context)
        if armature is None or not has_motion(armature):
            return "This rig has learned no motion yet; build it again from the capture"
        return None


class GAUSSIANIMATE_OT_set_secondary_motion(NeedsMotion, bpy.types.Operator):
    """Choose what moves the skin bones"""

    bl_idname = "gaussianimate.set_secondary_motion"
    bl_label = "Set Secondary Motion"
    bl_options = {"REGISTER", "UNDO"}

    if TYPE_CHECKING:
        mode: str
    else:
        mode: bpy.props.EnumProperty(
            name="Mode",
            items=[(mode, mode.title(), text) for mode, text in DESCRIPTIONS.items()],
        )

    @classmethod
    def description(
        cls, context: bpy.types.Context, properties: GAUSSIANIMATE_OT_set_secondary_motion
    ) -> str:
        """Say what the button does, not what the operator is."""
        return DESCRIPTIONS[properties.mode]

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Switch; where Live had failed, it tries again."""
        armature = active_armature(context)
        assert armature is not None
        try:
            set_mode(armature, self.mode)
        except RigError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"FINISHED"}
