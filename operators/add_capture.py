"""Further captures of a rigged asset: the rig is refined, and what that bought is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np

from ..core.capture import Capture
from ..core.cloud import GaussianCloud
from ..core.errors import CaptureError
from ..core.formats.mesh_splats import MeshSamples
from ..core.joined_capture import join_captures, moved_capture
from ..core.progress import Progress
from ..gaussianimate_addon.attributes import splats
from ..gaussianimate_addon.capture_frames import frames_object
from ..gaussianimate_addon.capture_object import capture_from_point_cloud, is_capture_object
from ..gaussianimate_addon.point_cloud import point_cloud_to_cloud
from ..gaussianimate_addon.properties import object_notes
from ..gaussianimate_addon.skeleton_store import load_samples
from ..gaussianimate_addon.subject import active_armature, active_splats
from .capture_files import CaptureFilesOperator
from .learned_rig import NeedsLearnedRig

if TYPE_CHECKING:
    from ..gaussianimate_addon.refined_apply import Refined, RiggedCapture


@dataclass(frozen=True)
class Request:
    """What to add to what; plain data.

    read : the rigged capture; rest : its splats
    source : files, or a capture read from the scene; samples : where the splats lie on their mesh
    options : of `refine_rig`
    """

    read: RiggedCapture
    rest: GaussianCloud
    source: str | list[str] | Capture
    samples: MeshSamples | None
    options: Any


class GAUSSIANIMATE_OT_add_capture(CaptureFilesOperator, NeedsLearnedRig, bpy.types.Operator):
    """Add another capture of the asset to its rig: bones, joints and learned motion are refined. Choose its \
files, or select a capture object beside the rigged one"""

    bl_idname = "gaussianimate.add_capture"
    bl_label = "Add Capture"
    bl_options = {"REGISTER"}

    if TYPE_CHECKING:
        source: str
        max_bones: int
        new_joints: bool
        keep_joints: bool
        hide_source: bool
    else:
        source: bpy.props.StringProperty(
            name="Source",
            description="Name of a capture object in the scene; files are read where it is empty",
            options={"SKIP_SAVE"},
        )
        max_bones: bpy.props.IntProperty(
            name="Skin Bones",
            description="Most bones that carry the splats; a rig that has more keeps them",
            default=50,
            min=1,
            max=500,
        )
        new_joints: bpy.props.BoolProperty(
            name="New Joints",
            description="Add joints where the new motion bends what was stiff before",
            default=True,
        )
        keep_joints: bpy.props.BoolProperty(
            name="Keep Joints",
            description="Remove no joint, even where the new motion shows that it is misplaced",
            default=False,
        )
        hide_source: bpy.props.BoolProperty(
            name="Hide Source", description="Hide the capture object that was added", default=True
        )

    solving = "Refining rigs"
    browser_options = ("detect_sequence", "max_bones", "new_joints", "keep_joints")

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """There must be a learned rig that still has its captured frames."""
        object = active_splats(context)
        if active_armature(context) is not None and object is not None and not is_capture_object(object):
            return f"'{object.name}' carries no captured frames; only a rig from a capture is refined"
        return super().unready(context)

    def is_given(self) -> bool:
        """Return whether files or an object are given."""
        return bool(self.source) or super().is_given()

    def prepare(self, context: bpy.types.Context) -> Request:
        """Read the rigged capture, and the other one where it is an object."""
        from ..core.refine.refine import RefineOptions
        from ..gaussianimate_addon.refined_apply import read_rigged

        object, armature = self.note_subjects(context)
        source = self._source(object)
        self.end_editing(context, armature)
        holder = frames_object(object)
        return Request(
            read_rigged(object, armature),
            point_cloud_to_cloud(splats(object)),
            source,
            None if holder is None else load_samples(holder),
            RefineOptions(self.max_bones, self.new_joints, self.keep_joints),
        )

    def _source(self, object: bpy.types.Object) -> str | list[str] | Capture:
        self._other = 0
        if not self.source:
            return self.chosen_files()
        other = bpy.data.objects.get(self.source)
        if other is None or not is_capture_object(other):
            raise CaptureError(f"'{self.source}' is no capture object; give the name of one, or files")
        if other == object or frames_object(other) == frames_object(object):
            raise CaptureError(f"'{other.name}' is what the rig was built from; choose another capture")
        self._other = other.session_uid
        return capture_from_point_cloud(other)

    @staticmethod
    def work(state: Request, progress: Progress) -> Refined:
        """Read the files, refine the rig and learn its motion."""
        from ..core.motion.extended import extend_motion
        from ..core.refine.refine import refine_rig
        from ..core.rigging.skeleton.given import skeleton_in_frames
        from ..core.skinning.skin import make_skin
        from ..gaussianimate_addon.more_frames import MoreFrames, collect_more
        from ..gaussianimate_addon.refined_apply import Refined

        read = state.read
        joined = join_captures(read.capture, _new_capture(state, progress))
        new = joined.take_frames(np.arange(read.capture.frame_count, joined.frame_count))
        back = moved_capture(new, np.linalg.inv(read.to_rig)) if read.applied else new
        frames = collect_more(back, state.rest, progress)
        refined = refine_rig(read.rig, joined, state.options, progress)
        rig = refined.rig
        skin = make_skin(
            _rest_of(state, rig.rest), rig.indices, rig.weights, bone_count=rig.bone_count, progress=progress
        )
        motion = extend_motion(read.motion, read.rig, rig, progress)
        skeleton = joined.skeleton
        if skeleton is None and read.capture.skeleton is not None and rig.joint_bind is not None:
            skeleton = skeleton_in_frames(rig, read.capture.skeleton, joined.frame_count)
        if skeleton is not None and read.applied:
            skeleton = skeleton.moved(np.linalg.inv(read.to_rig))
        more = MoreFrames(frames, replace(joined, positions=joined.positions[:0], load_cloud=None), skeleton)
        return Refined(replace(read, capture=more.capture), refined, skin, motion, more)

    def apply(self, context: bpy.types.Context, result: Refined) -> None:
        """Let frames, bones, weights, replay and learned motion follow."""
        from ..gaussianimate_addon.refined_apply import apply_refined

        object, armature = self.subjects()
        said = apply_refined(context, object, armature, result)
        report = result.refined.report
        other = next((o for o in bpy.data.objects if o.session_uid == self._other), None)
        if other is not None and self.hide_source:
            other.hide_render = True
            if other.name in context.view_layer.objects:
                other.hide_set(True)
        summary, *figures = report.sentences()
        lines = [f"{summary}.", *(f"{line[0].upper()}{line[1:]}." for line in figures), *report.notes, *said]
        object_notes(object).rig_notes = "\n".join(lines)
        for line in lines[1:]:
            self.report({"INFO"}, line)
        self.report({"INFO"}, f"Refined '{armature.name}': {summary}")


def _rest_of(state: Request, rest: np.ndarray) -> np.ndarray:
    """The rest points in the axes of the object, in which gradients of weights are stored."""
    return state.rest.positions if state.read.applied else rest


def _new_capture(state: Request, progress: Progress) -> Capture:
    """The capture to add, of splats like those there are: a mesh is sampled where theirs lie."""
    if isinstance(state.source, Capture):
        return state.source
    from ..core.formats import mesh_to_splats, read_capture

    capture = read_capture(state.source, progress=progress)
    if capture.load_cloud is not None:
        return capture
    has_faces = capture.faces is not None and len(capture.faces) > 0
    if has_faces and state.samples is not None:
        capture = mesh_to_splats(capture, len(state.rest), samples=state.samples, progress=progress)
        assert capture.load_cloud is not None
        return replace(capture, load_cloud=_coloured(capture.load_cloud, state.rest))
    positions = capture.positions
    return replace(
        capture,
        faces=None,
        load_cloud=lambda frame: replace(state.rest, positions=positions[frame]),
    )


def _coloured(load: Callable[[int], GaussianCloud], rest: GaussianCloud) -> Callable[[int], GaussianCloud]:
    """Clouds with the colours and opacities of the splats there are."""
    return lambda frame: replace(load(frame), sh=rest.sh, opacities=rest.opacities)
