"""The skeleton as the animator corrected it: the capture's poses are solved on it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import bpy

from ..core.progress import Progress
from ..core.rigging.moving_joints import moving_joints
from ..gaussianimate_addon.job import JobOperator
from ..gaussianimate_addon.properties import object_notes
from ..gaussianimate_addon.refit_apply import apply_refit
from ..gaussianimate_addon.refit_read import RefitTask, read_refit
from .learned_rig import NeedsLearnedRig

if TYPE_CHECKING:
    from ..core.motion.learned import LearnedMotion
    from ..core.rigging.refit import Refit


@dataclass(frozen=True)
class NewSkeleton:
    """What the worker made of an edited skeleton."""

    task: RefitTask
    refit: Refit
    motion: LearnedMotion

    @property
    def summary(self) -> str:
        """One line on what was solved."""
        rig, before = self.refit.rig, self.refit.skeleton_rmse_percent_before
        joints, bones = int(moving_joints(rig).sum()), rig.bone_count
        plural = f"{joints} joint{'s'[: joints != 1]}, {bones} skin bone{'s'[: bones != 1]}"
        after = self.refit.report.skeleton_rmse_percent
        return f"{plural}, error of the skeleton alone {after:.2f} % of the size (before {before:.2f} %)"


class GAUSSIANIMATE_OT_refit_skeleton(JobOperator, NeedsLearnedRig, bpy.types.Operator):
    """Solve the captured motion again on the joints as they were edited, and learn it anew"""

    bl_idname = "gaussianimate.refit_skeleton"
    bl_label = "Refit Skeleton"
    bl_options = {"REGISTER"}

    solving = "Refitting skeletons"

    def prepare(self, context: bpy.types.Context) -> RefitTask:
        """Read the edited bones and the capture."""
        object, armature = self.note_subjects(context)
        self.end_editing(context, armature)
        return read_refit(object, armature)

    @staticmethod
    def work(state: RefitTask, progress: Progress) -> NewSkeleton:
        """Solve the poses and learn the motion."""
        from ..core.motion.learned import learn_motion
        from ..core.rigging.refit import refit_skeleton

        refit = refit_skeleton(state.rig, state.edited, state.positions, progress)
        return NewSkeleton(state, refit, learn_motion(refit.rig, progress))

    def apply(self, context: bpy.types.Context, result: NewSkeleton) -> None:
        """Let armature, replay and learned motion follow."""
        object, armature = self.subjects()
        refit = result.refit
        said = apply_refit(context, object, armature, result.task, refit.rig, result.motion)
        notes = [*result.task.notes, *refit.report.notes, *said]
        object_notes(object).rig_notes = "\n".join([result.summary, *notes])
        for note in notes:
            self.report({"INFO"}, note)
        self.report({"INFO"}, f"Refitted '{armature.name}': {result.summary}")
