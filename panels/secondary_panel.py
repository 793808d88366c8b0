"""Secondary motion: the switch, the bake, and how well captured poses cover the one that stands."""

from __future__ import annotations

import bpy
import numpy as np
from numpy.typing import NDArray

from ..gaussianimate_addon.armature import JOINT, indexed_bones
from ..gaussianimate_addon.motion_store import has_motion
from ..gaussianimate_addon.motion_switch import is_replaying
from ..gaussianimate_addon.properties import object_notes, scene_settings
from ..gaussianimate_addon.secondary.live import SESSION
from ..gaussianimate_addon.secondary.modes import BAKED, is_baked, mode_of
from ..gaussianimate_addon.subject import active_armature
from ..operators.bake_partmm import GAUSSIANIMATE_OT_bake_partmm
from ..operators.secondary_motion import GAUSSIANIMATE_OT_set_secondary_motion
from .layout import SidebarPanel, reason_below, wrapped

BUTTONS = (("LIVE", "Live", "PLAY"), ("BAKED", "Baked", "REC"), ("OFF", "Off", "X"))
NEAR, FAR = np.radians(15), np.radians(35)
GREEN, AMBER, RED = "STRIP_COLOR_04", "STRIP_COLOR_03", "STRIP_COLOR_01"
ROWS = 8  # parts shown at once


class GAUSSIANIMATE_PT_secondary(SidebarPanel, bpy.types.Panel):
    """How skin bones move with the skeleton."""

    bl_label = "Secondary Motion"
    bl_parent_id = "GAUSSIANIMATE_PT_animate"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Only where there is the rig of a capture: an armature made by hand has nothing to learn from."""
        armature = active_armature(context)
        return armature is not None and (has_motion(armature) or bool(indexed_bones(armature, JOINT)))

    def draw(self, context: bpy.types.Context) -> None:
        """The switch, what keeps it from working, the bake, the coverage."""
        layout, armature = self.layout, active_armature(context)
        if armature is None:
            return
        if not has_motion(armature):
            wrapped(context, layout, "This rig has learned no motion yet: build the rig again", "INFO")
            return
        name, mode = GAUSSIANIMATE_OT_set_secondary_motion.bl_idname, mode_of(armature)
        row = layout.row(align=True)
        row.scale_y = 1.2
        for value, text, icon in BUTTONS:
            row.operator(name, text=text, icon=icon, depress=mode == value).mode = value
        failure = SESSION.failures.get(armature.session_uid)
        if failure is not None:
            wrapped(context, layout, failure, "ERROR")
            layout.operator(name, text="Try Again", icon="FILE_REFRESH").mode = mode
            return
        replaying = is_replaying(armature)
        if replaying:
            wrapped(
                context, layout, "The replay has the captured motion; this is for poses of your own", "INFO"
            )
        elif mode == BAKED and not is_baked(armature):
            wrapped(context, layout, "The action has no baked secondary motion; bake it", "ERROR")
        self._draw_bake(context, replaying)
        self._draw_coverage(context, armature)

    def _draw_bake(self, context: bpy.types.Context, replaying: bool) -> None:
        layout, settings = self.layout, scene_settings(context)
        column = layout.column(align=True)
        button = column.operator(GAUSSIANIMATE_OT_bake_partmm.bl_idname, icon="KEYTYPE_KEYFRAME_VEC")
        column.prop(settings, "secondary_range")
        if settings.secondary_range:
            row = column.row(align=True)
            row.prop(settings, "secondary_start")
            row.prop(settings, "secondary_end")
            button.frame_start, button.frame_end = settings.secondary_start, settings.secondary_end
        if not replaying:
            reason_below(context, layout, GAUSSIANIMATE_OT_bake_partmm)

    def _draw_coverage(self, context: bpy.types.Context, armature: bpy.types.Object) -> None:
        shown = SESSION.shown_coverage(armature, context.view_layer.depsgraph)
        if shown is None:
            return
        names, distances = shown
        header, body = self.layout.panel("gaussianimate_coverage")
        worst = float(distances.max(initial=0))
        header.label(text="Coverage", icon=coverage_icon(worst))
        header.label(text=f"{np.degrees(worst):.0f}° from captured")
        if body is None:
            return
        settings = scene_settings(context)
        column = body.column(align=True)
        for part in _shown(distances, settings.secondary_all_parts):
            row = column.row()
            row.label(text=names[part], icon=coverage_icon(float(distances[part])))
            number = row.row()
            number.alignment = "RIGHT"
            number.label(text=f"{np.degrees(distances[part]):.0f}°")
        if len(distances) > ROWS:
            body.prop(settings, "secondary_all_parts", text=f"All {len(distances)} Parts")
        body.prop(object_notes(armature), "colour_bones")
        if worst > FAR:
            wrapped(context, body, "Far from every captured pose: bones there go back to rigid", "INFO")


def coverage_icon(distance: float) -> str:
    """Return a green, amber or red dot for a distance from captured poses, radians."""
    return GREEN if distance < NEAR else AMBER if distance <= FAR else RED


def _shown(distances: NDArray[np.floating], everything: bool) -> list[int]:
    """Parts to show: all, in the skeleton's order, or the worst ones, the worst first.

    What reads the same keeps the skeleton's order, so that lines do not change places without need.
    """
    if everything or len(distances) <= ROWS:
        return list(range(len(distances)))
    return np.argsort(-np.round(np.degrees(distances)), kind="stable")[:ROWS].tolist()
