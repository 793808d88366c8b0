"""Bake secondary motion: keys on the skin bones."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import bpy

from ..core.progress import Progress
from ..gaussianimate_addon.job import JobOperator
from ..gaussianimate_addon.motion_switch import is_replaying
from ..gaussianimate_addon.secondary.bake import Query, answer, query_steps
from ..gaussianimate_addon.secondary.modes import BAKED, set_mode
from ..gaussianimate_addon.secondary.skin_keys import SkinKeys, write_keys
from ..gaussianimate_addon.subject import active_armature, find_object
from .secondary_motion import NeedsMotion


class GAUSSIANIMATE_OT_bake_partmm(JobOperator, NeedsMotion, bpy.types.Operator):
    """Key the skin bones over a frame range, so that it plays and renders where this extension is missing"""

    bl_idname = "gaussianimate.bake_partmm"
    bl_label = "Bake Secondary Motion"
    bl_options = {"REGISTER"}

    if TYPE_CHECKING:
        frame_start: int
        frame_end: int
        method: str
    else:
        frame_start: bpy.props.IntProperty(
            name="Start", description="First frame; that of the scene where not given", options={"SKIP_SAVE"}
        )
        frame_end: bpy.props.IntProperty(
            name="End", description="Last frame; that of the scene where not given", options={"SKIP_SAVE"}
        )
        method: bpy.props.EnumProperty(
            name="Method",
            items=(
                ("AUTO", "Automatic", "The learned blend, drawn to captured motion where that is near"),
                ("MATCH", "Match", "The nearest captured patches of motion, part by part"),
                ("KERNEL", "Kernel", "The learned blend of all captured motion"),
                ("FULL", "Whole Body", "The nearest captured patches of the whole body"),
            ),
            default="AUTO",
        )

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """There must be a pose of the user's."""
        if reason := super().unready(context):
            return reason
        armature = active_armature(context)
        if armature is not None and is_replaying(armature):
            return "The replay has the captured motion already; press Pose Anew to bake one of your own"
        return None

    def prepare(self, context: bpy.types.Context) -> Generator[tuple[str, float], None, Query]:
        """Read the poses."""
        armature, scene = active_armature(context), context.scene
        assert armature is not None
        self._uid, self._name = armature.session_uid, armature.name
        given = self.properties.is_property_set
        preview = scene.use_preview_range
        start = scene.frame_preview_start if preview else scene.frame_start
        end = scene.frame_preview_end if preview else scene.frame_end
        start = self.frame_start if given("frame_start") else start
        end = self.frame_end if given("frame_end") else end
        return query_steps(context, armature, start, end, self.method)

    @staticmethod
    def work(state: Query, progress: Progress) -> SkinKeys:
        """Predict."""
        return answer(state, progress)

    def apply(self, context: bpy.types.Context, result: SkinKeys) -> None:
        """Write the keys and play them."""
        armature = find_object(self._uid, self._name)
        write_keys(armature, result)
        set_mode(armature, BAKED)
        count = len(result.frames)
        self.report({"INFO"}, f"Baked {count} frame{'s'[: count != 1]} of secondary motion")
