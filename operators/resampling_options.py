"""What resampling and its preview share: their settings, and how they find what would be split."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, cast

import bpy

from ..core.progress import Progress
from ..gaussianimate_addon.attributes import splats
from ..gaussianimate_addon.job import JobOperator
from ..gaussianimate_addon.libraries import missing_library
from ..gaussianimate_addon.resampling.request import Choice, request_steps
from ..gaussianimate_addon.resampling.settings import DESCRIPTIONS, MODES, free_bones
from ..gaussianimate_addon.resampling.task import Answer, Mode, Request, solve
from ..gaussianimate_addon.resampling.whole import edited_reason
from ..gaussianimate_addon.subject import active_armature, active_splats, find_object, linked_reason


def unready_to_resample(context: bpy.types.Context) -> str | None:
    """Return one sentence where there are no rigged splats of this file, or no scipy."""
    object = active_splats(context)
    if object is None:
        return "Select rigged Gaussian splats or their armature"
    if active_armature(context) is None:
        return f"'{object.name}' is not rigged; build a rig or bind it to an armature first"
    reason = linked_reason(object, object.data) or edited_reason(splats(object))
    return reason or missing_library("scipy", "Resampling")


class ResamplingJob(JobOperator):
    """Mix-in of jobs that resample; ``apply`` is theirs."""

    if TYPE_CHECKING:
        epsilon: float
        mode: str
        budget: float
        frame_start: int
        frame_end: int
        frame_step: int
        angle: float
    else:
        epsilon: bpy.props.FloatProperty(
            name="Epsilon", description=DESCRIPTIONS["epsilon"] + "; 0 finds one", min=0.0, unit="LENGTH"
        )
        mode: bpy.props.EnumProperty(name="For", items=MODES)
        budget: bpy.props.FloatProperty(
            name="Budget",
            description=DESCRIPTIONS["budget"] + "; where not given, Uniform has none",
            default=3.0,
            min=1.0,
            options={"SKIP_SAVE"},
        )
        frame_start: bpy.props.IntProperty(
            name="Start", description="First frame; of the action where not given", options={"SKIP_SAVE"}
        )
        frame_end: bpy.props.IntProperty(
            name="End", description="Last frame; of the action where not given", options={"SKIP_SAVE"}
        )
        frame_step: bpy.props.IntProperty(
            name="Step", description=DESCRIPTIONS["step"], default=1, min=1, options={"SKIP_SAVE"}
        )
        angle: free_bones()

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """There must be rigged splats of this file."""
        return unready_to_resample(context)

    def prepare(self, context: bpy.types.Context) -> Generator[tuple[str, float], None, Request]:
        """Read splats, weights and poses."""
        object = active_splats(context)
        assert object is not None
        self._subject = object.session_uid, object.name
        return request_steps(context, object, self._choice(context))

    @staticmethod
    def work(state: Request, progress: Progress) -> Answer:
        """Split."""
        return solve(state, progress)

    def subject(self) -> bpy.types.Object:
        """Find the splats again.

        Raises
        ------
        RigError : they were deleted meanwhile
        """
        return find_object(*self._subject)

    def _choice(self, context: bpy.types.Context) -> Choice:
        given = cast(bpy.types.Operator, self).properties.is_property_set
        frames, playing = None, active_armature(context)
        if given("frame_start") or given("frame_end"):
            scene = context.scene
            start = self.frame_start if given("frame_start") else scene.frame_start
            frames = start, self.frame_end if given("frame_end") else scene.frame_end, self.frame_step
        elif self.frame_step > 1 and playing is not None and self.mode == "ACTION":
            from ..gaussianimate_addon.resampling.poses import action_frames

            frames = *action_frames(playing), self.frame_step
        unbounded = self.mode == "UNIFORM" and not given("budget")
        budget = float("inf") if unbounded else self.budget
        return Choice(cast(Mode, self.mode), self.epsilon, budget, frames, self.angle)
