"""Step 3: replay or pose."""

from __future__ import annotations

import bpy

from ..gaussianimate_addon.armature import SKELETON, SKIN_BONES
from ..gaussianimate_addon.deformer import deformer
from ..gaussianimate_addon.modifiers import input_property
from ..gaussianimate_addon.motion_switch import is_replaying, no_replay
from ..gaussianimate_addon.subject import active_armature, active_splats
from ..operators.pose import GAUSSIANIMATE_OT_reset_pose, GAUSSIANIMATE_OT_set_motion
from .layout import SubPanel, reason_below, wrapped


class GAUSSIANIMATE_PT_animate(SubPanel, bpy.types.Panel):
    """Switch between the capture's motion and one's own."""

    bl_label = "3. Animate"
    bl_order = 3

    def draw(self, context: bpy.types.Context) -> None:
        """The motion, the bones shown, a hint on what to do next."""
        layout, armature = self.layout, active_armature(context)
        replaying = armature is not None and is_replaying(armature)
        row = layout.row(align=True)
        row.scale_y = 1.2
        for motion, text, icon in (("REPLAY", "Replay", "PLAY"), ("POSE", "Pose Anew", "POSE_HLT")):
            chosen = armature is not None and replaying == (motion == "REPLAY")
            part = row.row(align=True)
            part.enabled = motion == "POSE" or armature is None or no_replay(armature) is None
            button = part.operator(
                GAUSSIANIMATE_OT_set_motion.bl_idname, text=text, icon=icon, depress=chosen
            )
            button.motion = motion
        if armature is None:
            reason_below(context, layout, GAUSSIANIMATE_OT_set_motion)
            return
        layout.operator(GAUSSIANIMATE_OT_reset_pose.bl_idname, icon="LOOP_BACK")
        column = layout.column(heading="Show", align=True)
        column.use_property_split = True
        column.use_property_decorate = False
        for name in (SKELETON, SKIN_BONES):
            collection = armature.data.collections.get(name)
            if collection is not None:
                column.prop(collection, "is_visible", text=name)
        column.prop(armature, "show_in_front", text="In Front")
        modifier = deformer(active_splats(context))
        if modifier is not None:
            column.prop(input_property(modifier, "Elastic"), "value", text="Elastic")
        if not replaying:
            hint = (
                "Rotate bones and press I to key them"
                if context.mode == "POSE"
                else "Press Pose Anew to enter Pose Mode"
            )
            wrapped(context, layout, hint, "INFO")
