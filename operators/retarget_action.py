"""The action of another armature goes onto the skeleton; and which of its bones moves which joint."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.errors import RigError
from ..core.progress import Progress
from ..core.retarget.skeleton import RestSkeleton
from ..core.retarget.transfer import RetargetedMotion, RetargetOptions, retarget_motion
from ..gaussianimate_addon.armature_edits import leave_edit_mode
from ..gaussianimate_addon.frame_range import check_range
from ..gaussianimate_addon.job import JobOperator
from ..gaussianimate_addon.libraries import missing_library
from ..gaussianimate_addon.retarget_action import write_retargeted
from ..gaussianimate_addon.retarget_map import (
    bone_indices,
    has_map,
    read_map,
    retarget_settings,
    target_bones,
    write_map,
)
from ..gaussianimate_addon.retarget_sampling import (
    animated_range,
    animation_name,
    object_scale,
    sample_motion_steps,
    source_bones,
    source_skeleton,
    target_skeleton,
)
from ..gaussianimate_addon.secondary.modes import BAKED, LIVE, mode_of, set_mode
from ..gaussianimate_addon.subject import active_armature, find_object
from .pose import NeedsRig

Suggested = tuple[list[str | None], list[float]]


@dataclass(frozen=True)
class Sampled:
    """What the worker needs."""

    target: RestSkeleton
    source: RestSkeleton
    motions: NDArray[np.float64]
    bone_map: NDArray[np.intp]
    options: RetargetOptions


def chosen_source(context: bpy.types.Context, name: str) -> bpy.types.Object:
    """Return the source armature: the named one, else that of the sidebar.

    Raises
    ------
    RigError : there is none, or it is the armature that is to be moved
    """
    armature = active_armature(context)
    source = bpy.data.objects.get(name) if name else retarget_settings(armature).source
    if source is None and not name:
        raise RigError("No source is chosen; choose the armature whose motion is wanted.")
    if source is None or source.type != "ARMATURE":
        raise RigError(f"There is no armature called '{name}'; name the one whose motion is wanted.")
    if source == armature or source.data == armature.data:
        raise RigError(f"'{source.name}' is the rig itself; choose another armature as the source.")
    if source.name not in context.view_layer.objects:
        raise RigError(f"'{source.name}' is not in this view layer; enable its collection in the Outliner.")
    return source


def suggested_map(armature: bpy.types.Object, source: bpy.types.Object) -> Suggested:
    """Suggest a source bone, or None, for each of `target_bones`, and how sure each is.

    Raises
    ------
    RigError : the source has no bones, or scipy is missing
    """
    if reason := missing_library("scipy", "Suggesting a bone map"):
        raise RigError(f"{reason}.")
    from ..core.retarget.suggest import suggest_bone_map

    bones = source_bones(source)
    if not bones:
        raise RigError(f"The armature '{source.name}' has no bones, so nothing can be taken from it.")
    found = suggest_bone_map(
        target_skeleton(armature, target_bones(armature)), source_skeleton(source, bones)
    )
    names = [bones[each.source].name if each.source >= 0 else None for each in found]
    return names, [each.confidence for each in found]


def _source_property() -> Any:
    return bpy.props.StringProperty(
        name="Source", description="Name of the armature whose motion is wanted; the sidebar's where empty"
    )


class GAUSSIANIMATE_OT_suggest_bone_map(NeedsRig, bpy.types.Operator):
    """Fill the bone map from the bones' names and from how both skeletons are built"""

    bl_idname = "gaussianimate.suggest_bone_map"
    bl_label = "Suggest Bone Map"
    bl_options = {"REGISTER", "UNDO"}

    if TYPE_CHECKING:
        source: str
    else:
        source: _source_property()

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Write the map."""
        try:
            source = chosen_source(context, self.source)
            names, confidences = suggested_map(active_armature(context), source)
        except RigError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        write_map(active_armature(context), source, names, confidences)
        mapped = sum(name is not None for name in names)
        self.report({"INFO"}, f"{mapped} of {len(names)} bones have a source bone in '{source.name}'")
        return {"FINISHED"}


class GAUSSIANIMATE_OT_retarget_action(NeedsRig, JobOperator, bpy.types.Operator):
    """Put the motion of another armature onto the skeleton, as a new action"""

    bl_idname = "gaussianimate.retarget_action"
    bl_label = "Retarget Action"
    bl_options = {"REGISTER"}

    if TYPE_CHECKING:
        source: str
        frame_start: int
        frame_end: int
        align_rest: bool
        scale_root: bool
        in_place: bool
    else:
        source: _source_property()
        frame_start: bpy.props.IntProperty(
            name="Start",
            description="First frame; the source action's where not given",
            options={"SKIP_SAVE"},
        )
        frame_end: bpy.props.IntProperty(
            name="End", description="Last frame; the source action's where not given", options={"SKIP_SAVE"}
        )
        align_rest: bpy.props.BoolProperty(
            name="Align Rest Poses",
            description="Limbs point as the source's do though rest poses differ, as T-pose and A-pose do",
            default=True,
        )
        scale_root: bpy.props.BoolProperty(
            name="Scale Steps",
            description="Steps as long as the legs allow; off: as the source's",
            default=True,
        )
        in_place: bpy.props.BoolProperty(name="In Place", description="Walk and run on the spot")

    def prepare(self, context: bpy.types.Context) -> Generator[tuple[str, float], None, Sampled]:
        """Read the map, suggested where there is none, and sample the source."""
        armature, source = active_armature(context), chosen_source(context, self.source)
        if leave_edit_mode(armature) and bpy.context.window is not None:
            bpy.ops.ed.undo_push(message="Toggle Edit Mode")  # a step of its own, as with Tab
        self._uid, self._name, self._source = armature.session_uid, armature.name, source.name
        start, end = animated_range(source, context.scene)
        given = self.properties.is_property_set
        start = self.frame_start if given("frame_start") else start
        end = self.frame_end if given("frame_end") else end
        check_range(start, end)
        self._start, self._action = start, f"{animation_name(source)} on {armature.name}"
        self._suggested = None if has_map(armature, source) else suggested_map(armature, source)
        names = read_map(armature, source) if self._suggested is None else self._suggested[0]
        return self._sample(context, armature, source, names, end)

    def _sample(
        self,
        context: bpy.types.Context,
        armature: bpy.types.Object,
        source: bpy.types.Object,
        names: list[str | None],
        end: int,
    ) -> Generator[tuple[str, float], None, Sampled]:
        target = target_skeleton(armature, target_bones(armature))
        wanted = {name for name in names if name is not None}
        if not wanted:
            raise RigError("No bone is mapped; choose source bones in the bone map, or let it be suggested.")
        unit = 1 / object_scale(armature)
        rest, motions = yield from sample_motion_steps(context, source, wanted, self._start, end)
        options = RetargetOptions(self.align_rest, self.scale_root, self.in_place, unit)
        return Sampled(target, rest, motions, bone_indices(names, rest.names), options)

    @staticmethod
    def work(state: Sampled, progress: Progress) -> tuple[RestSkeleton, RetargetedMotion]:
        """Carry the motion over."""
        progress("Retargeting", 0.0)
        return state.target, retarget_motion(
            state.target, state.source, state.motions, state.bone_map, state.options
        )

    def apply(self, context: bpy.types.Context, result: tuple[RestSkeleton, RetargetedMotion]) -> None:
        """Write the action, which the armature plays from now on."""
        target, moved = result
        armature = find_object(self._uid, self._name)
        if tuple(bone.name for bone in target_bones(armature)) != target.names:
            raise RigError(f"The bones of '{armature.name}' changed meanwhile; retarget again.")
        source = bpy.data.objects.get(self._source)
        if self._suggested is not None and source is not None:
            write_map(armature, source, *self._suggested)
        elif source is not None:
            retarget_settings(armature).source = source
        action = write_retargeted(armature, self._action, target.parents, moved.motions, self._start)
        if mode_of(armature) == BAKED:  # nothing is baked in the new action
            set_mode(armature, LIVE)
        self.report({"INFO"}, f"'{armature.name}' plays '{action.name}', {len(moved.motions)} frames")
