"""Step 2: one button."""

from __future__ import annotations

import bpy

from ..gaussianimate_addon.capture_object import is_capture_object
from ..gaussianimate_addon.deformer import bind_is_stale
from ..gaussianimate_addon.motion_store import has_motion
from ..gaussianimate_addon.properties import chosen_skeleton, object_notes, scene_settings
from ..gaussianimate_addon.skeleton_bones import skeleton_is_edited
from ..gaussianimate_addon.subject import active_armature, active_splats
from ..operators.add_capture import GAUSSIANIMATE_OT_add_capture
from ..operators.bind import GAUSSIANIMATE_OT_apply_transform, GAUSSIANIMATE_OT_rebind
from ..operators.build_rig import GAUSSIANIMATE_OT_build_rig
from ..operators.refit_skeleton import GAUSSIANIMATE_OT_refit_skeleton
from .layout import SubPanel, reason_below, wrapped

SETTINGS = ("max_bones", "max_influences", "joint_threshold", "canonical_frame")


class GAUSSIANIMATE_PT_rig(SubPanel, bpy.types.Panel):
    """Build the rig, and keep it bound."""

    bl_label = "2. Rig"
    bl_order = 2

    def draw(self, context: bpy.types.Context) -> None:
        """The settings, the button, what came of it."""
        layout, settings = self.layout, scene_settings(context)
        options = layout.column()
        options.use_property_split = True
        options.use_property_decorate = False
        for name in SETTINGS:
            options.prop(settings, name)
        options.prop(settings, "skeleton")
        if settings.skeleton == "ARMATURE":
            options.prop(settings, "skeleton_armature")
        row = layout.row()
        row.scale_y = 1.4
        again = active_armature(context) is not None
        button = row.operator(
            GAUSSIANIMATE_OT_build_rig.bl_idname,
            text="Build Rig Again" if again else "Build Rig",
            icon="OUTLINER_DATA_ARMATURE",
        )
        for name in SETTINGS:
            setattr(button, name, getattr(settings, name))
        button.skeleton = chosen_skeleton(settings)
        reason_below(context, layout, GAUSSIANIMATE_OT_build_rig)
        splats = active_splats(context)
        if splats is not None:
            self._draw_state(context, splats)

    def _draw_state(self, context: bpy.types.Context, splats: bpy.types.Object) -> None:
        layout = self.layout
        summary, _, notes = object_notes(splats).rig_notes.partition("\n")
        if summary:
            wrapped(context, layout, summary, "CHECKMARK")
        if notes:
            wrapped(context, layout, notes, "INFO")
        stale = bind_is_stale(splats)
        if stale is not None:
            box = layout.box()
            wrapped(context, box, stale, "ERROR")
            box.operator(GAUSSIANIMATE_OT_rebind.bl_idname, icon="FILE_REFRESH")
        armature = active_armature(context)
        if armature is not None and has_motion(armature):
            self._draw_skeleton(context, armature)
            self._draw_more(context, splats)
        layout.operator(GAUSSIANIMATE_OT_apply_transform.bl_idname, text="Apply Transform")

    def _draw_skeleton(self, context: bpy.types.Context, armature: bpy.types.Object) -> None:
        """The button that solves an edited skeleton; where nothing was edited, how to."""
        edited = skeleton_is_edited(armature)
        box = self.layout.box() if edited else self.layout.column()
        hint = edited or "To correct joints, edit the bones in Edit Mode, then refit"
        wrapped(context, box, hint, "ERROR" if edited else "INFO")
        box.operator(GAUSSIANIMATE_OT_refit_skeleton.bl_idname, icon="MOD_ARMATURE")

    def _draw_more(self, context: bpy.types.Context, splats: bpy.types.Object) -> None:
        """The button that adds a capture: the one that is selected beside the rigged one, else files."""
        settings = scene_settings(context)
        others = [o for o in context.selected_objects if is_capture_object(o) and o != splats]
        text = f"Add '{others[0].name}'" if others else "Add Capture"
        button = self.layout.operator(GAUSSIANIMATE_OT_add_capture.bl_idname, text=text, icon="ADD")
        button.source = others[0].name if others else ""
        button.max_bones = settings.max_bones
