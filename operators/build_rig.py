"""The one button: a capture becomes a posable rig."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import bpy

from ..core.capture import Capture
from ..core.progress import Progress
from ..core.rigging.moving_joints import moving_joints
from ..core.rigging.rig import Rig
from ..core.skinning.skin import Skin
from ..gaussianimate_addon.capture_object import capture_from_point_cloud, is_capture_object
from ..gaussianimate_addon.drawer.display import DRAWER, set_display
from ..gaussianimate_addon.job import JobOperator
from ..gaussianimate_addon.libraries import missing_library
from ..gaussianimate_addon.motion_switch import remember_replay
from ..gaussianimate_addon.properties import object_notes
from ..gaussianimate_addon.rig_object import apply_rig
from ..gaussianimate_addon.sample_armature import find_armature, sample_armature_steps
from ..gaussianimate_addon.subject import active_splats, find_object, linked_reason
from ..gaussianimate_addon.weights.layers import dropped_note, has_layers, read_layers
from .place import select_only

if TYPE_CHECKING:
    from ..core.motion.learned import LearnedMotion
    from ..core.rigging.build import RigReport


Steps = Generator[tuple[str, float], None, tuple[Capture, Any]]


@dataclass(frozen=True)
class NewRig:
    """What the worker made of a capture."""

    rig: Rig
    skin: Skin
    motion: LearnedMotion
    report: RigReport

    @property
    def summary(self) -> str:
        """One line on what was found."""
        joints, bones = int(moving_joints(self.rig).sum()), self.rig.bone_count
        plural = (f"{joints} joint{'s'[: joints != 1]}", f"{bones} skin bone{'s'[: bones != 1]}")
        return f"{', '.join(plural)}, replay error {self.report.rmse_percent:.2g} % of the size"


def _read(
    context: bpy.types.Context, object: bpy.types.Object, armature: bpy.types.Object | None, options: Any
) -> Steps:
    capture = capture_from_point_cloud(object)
    if armature is None:
        return capture, options
    skeleton = yield from sample_armature_steps(context, armature, object)
    return replace(capture, skeleton=skeleton), options


class GAUSSIANIMATE_OT_build_rig(JobOperator, bpy.types.Operator):
    """Find bones, weights and a skeleton in the capture's motion and make an armature that replays it"""

    bl_idname = "gaussianimate.build_rig"
    bl_label = "Build Rig"
    bl_options = {"REGISTER"}

    if TYPE_CHECKING:
        max_bones: int
        max_influences: int
        joint_threshold: float
        canonical_frame: int
        skeleton: str
    else:
        max_bones: bpy.props.IntProperty(name="Skin Bones", default=50, min=1, max=500)
        max_influences: bpy.props.IntProperty(name="Influences", default=4, min=1, max=4)
        joint_threshold: bpy.props.FloatProperty(name="Joint Threshold", default=0.3, min=0.01, max=1.0)
        canonical_frame: bpy.props.IntProperty(name="Rest Frame", default=0, min=0)
        skeleton: bpy.props.StringProperty(
            name="Skeleton",
            description="auto: the one the capture brings, else one found in its motion; given; extracted; "
            "or the name of an armature object that moves along",
            default="auto",
        )

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """A capture must be active, and the libraries of rig building there."""
        object = active_splats(context)
        if object is None:
            return "Select a capture; import one first"
        if not is_capture_object(object):
            return "These splats have no frames to learn from; import them as a capture"
        if reason := linked_reason(object, object.data):
            return reason
        return missing_library("scipy", "Building rigs")

    def prepare(self, context: bpy.types.Context) -> Steps:
        """Copy the capture out of the scene, and sample the armature that is its skeleton."""
        from ..core.rigging.build import SKELETONS, RigOptions

        object = active_splats(context)
        assert object is not None
        self._uid, self._name = object.session_uid, object.name
        named = self.skeleton not in SKELETONS
        options = RigOptions(
            max_bones=self.max_bones,
            max_influences=self.max_influences,
            joint_threshold=self.joint_threshold,
            canonical_frame=self.canonical_frame,
            skeleton="given" if named else self.skeleton,
        )
        return _read(context, object, find_armature(self.skeleton) if named else None, options)

    @staticmethod
    def work(state: tuple[Capture, Any], progress: Progress) -> NewRig:
        """Fit the rig and prepare the skin's gradients."""
        from ..core.motion.learned import learn_motion
        from ..core.rigging.build import build_rig
        from ..core.skinning.skin import make_skin

        built = build_rig(*state, progress)
        rig = built.rig
        skin = make_skin(rig.rest, rig.indices, rig.weights, bone_count=rig.bone_count, progress=progress)
        return NewRig(rig, skin, learn_motion(rig, progress), built.report)

    def apply(self, context: bpy.types.Context, result: NewRig) -> None:
        """Add the armature and bind the splats to it."""
        object = find_object(self._uid, self._name)
        if context.object is not None and context.object.mode != "OBJECT":
            bpy.ops.object.mode_set(mode="OBJECT")
        before = read_layers(object).layers if has_layers(object) else ()
        armature = apply_rig(context, object, result.rig, result.skin, result.motion)
        remember_replay(armature)
        if not bpy.app.background:  # bones are dragged next, which only the drawer keeps up with
            set_display(object, DRAWER)
        select_only(context, armature)
        known = object_notes(object).import_notes.splitlines()
        kept = read_layers(object).bones if has_layers(object) else ()
        gone = dropped_note([layer for layer in before if layer.bone not in kept])
        notes = [note for note in (*result.report.notes, *result.skin.notes, *gone) if note not in known]
        object_notes(object).rig_notes = "\n".join([result.summary, *notes])
        for note in notes:
            self.report({"INFO"}, note)
        self.report({"INFO"}, f"Rigged '{object.name}': {result.summary}")
