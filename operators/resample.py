"""Split the splats that poses bend too much; and put the whole ones back."""

from __future__ import annotations

import bpy

from ..core.errors import GaussiAnimateError
from ..gaussianimate_addon.attributes import splats
from ..gaussianimate_addon.job import Reasoned
from ..gaussianimate_addon.resampling.exchange import restore_whole, show_resampled
from ..gaussianimate_addon.resampling.overlay import hide_overlay
from ..gaussianimate_addon.resampling.task import Answer
from ..gaussianimate_addon.resampling.whole import edited_reason, whole_of
from ..gaussianimate_addon.subject import active_splats, linked_reason
from .resampling_options import ResamplingJob


class GAUSSIANIMATE_OT_resample(ResamplingJob, bpy.types.Operator):
    """Split splats that poses bend too much into smaller ones that look the same; the whole ones are kept"""

    bl_idname = "gaussianimate.resample"
    bl_label = "Resample Splats"
    bl_options = {"REGISTER"}

    def apply(self, context: bpy.types.Context, result: Answer) -> None:
        """Exchange the splats, unless none is split."""
        object = self.subject()
        hide_overlay()
        if not result.counts[1]:
            self._nothing(object, result)
            return
        text = result.summary("split")
        show_resampled(object, result, "\n".join([text, *result.found.notes]))
        context.view_layer.update()
        self.report({"INFO"}, f"'{object.name}': {text}")
        for note in result.found.notes:
            self.report({"WARNING"}, note)

    def _nothing(self, object: bpy.types.Object, result: Answer) -> None:
        """Say that these poses ask for nothing; splats that were split for others become whole."""
        self.job_undo = was_split = whole_of(splats(object)) is not None
        if was_split:
            restore_whole(object)
        put_back = "; the whole splats were put back" if was_split else ""
        self.report({"INFO"}, f"'{object.name}': {result.summary('split')}{put_back}")
        for note in result.found.notes:
            self.report({"WARNING"}, note)


class GAUSSIANIMATE_OT_restore_splats(Reasoned, bpy.types.Operator):
    """Put the whole splats back that were there before resampling, with the weights as they are now"""

    bl_idname = "gaussianimate.restore_splats"
    bl_label = "Restore Whole Splats"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """The splats must have been resampled."""
        object = active_splats(context)
        if object is None:
            return "Select Gaussian splats or their armature"
        if (reason := linked_reason(object, object.data)) is not None:
            return reason
        if whole_of(splats(object)) is None:
            return f"'{object.name}' was not resampled"
        return edited_reason(splats(object))

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Exchange them."""
        object = active_splats(context)
        assert object is not None
        try:
            restore_whole(object)
        except GaussiAnimateError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        hide_overlay()
        self.report({"INFO"}, f"'{object.name}' has its {len(splats(object).points):,} whole splats again")
        return {"FINISHED"}
