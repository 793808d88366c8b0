"""Write the posed splats as splat PLY files."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ..core.progress import Progress
from ..gaussianimate_addon.bake import bake_sequence, pose_steps, rest_splats
from ..gaussianimate_addon.browsing import BrowsingJobOperator
from ..gaussianimate_addon.deformer import deformer
from ..gaussianimate_addon.properties import object_notes
from ..gaussianimate_addon.resampling.checks import check_poses
from ..gaussianimate_addon.resampling.request import check_resampling
from ..gaussianimate_addon.resampling.task import Request, read_whole
from ..gaussianimate_addon.subject import active_splats
from .bake_files import Order, Written, keep_source, named, targets, write_frames
from .place import absolute

Steps = Generator[tuple[str, float], None, Written | Order]


class GAUSSIANIMATE_OT_bake_ply(BrowsingJobOperator, bpy.types.Operator):
    """Write the splats as posed to Gaussian splat PLY files, covariances and colours turned with them"""

    bl_idname = "gaussianimate.bake_ply"
    bl_label = "Export Gaussian Splats"
    bl_options = {"REGISTER", "PRESET"}
    job_undo = False

    if TYPE_CHECKING:
        filepath: str
        frame_start: int
        frame_end: int
        space: str
        check_existing: bool
        filter_glob: str
        resample: bool
        epsilon: float
        budget: float
    else:
        filepath: bpy.props.StringProperty(
            name="File Path",
            description="File of one frame; of a range the folder, or a file whose name gets frame numbers",
            subtype="FILE_PATH",
            options={"SKIP_SAVE", "PATH_SUPPORTS_BLEND_RELATIVE"},
        )
        frame_start: bpy.props.IntProperty(
            name="Start", description="First frame; the current one where not given", options={"SKIP_SAVE"}
        )
        frame_end: bpy.props.IntProperty(
            name="End", description="Last frame; the first one where not given", options={"SKIP_SAVE"}
        )
        space: bpy.props.EnumProperty(
            name="Space",
            items=(
                ("WORLD", "World", "As placed in the scene, in the axes of the imported file"),
                ("OBJECT", "Object", "In the object's own space"),
            ),
            default="WORLD",
        )
        resample: bpy.props.BoolProperty(
            name="Resample",
            description="Split splats that these frames bend too much; the scene stays as it is",
            options={"SKIP_SAVE"},
        )
        epsilon: bpy.props.FloatProperty(
            name="Epsilon",
            description="With Resample, the largest error of a splat; 0 finds one",
            min=0.0,
            unit="LENGTH",
            options={"SKIP_SAVE"},
        )
        budget: bpy.props.FloatProperty(
            name="Budget",
            description="With Resample, most splats after, times those before",
            default=3.0,
            min=1.0,
            options={"SKIP_SAVE"},
        )
        check_existing: bpy.props.BoolProperty(default=True, options={"HIDDEN"})
        filter_glob: bpy.props.StringProperty(default="*.ply", options={"HIDDEN"})

    browser_options = ("frame_start", "frame_end", "space", "resample", "epsilon", "budget")
    job_cancelled = "cancelled; the frames written so far are whole"

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """Splats must be active."""
        if active_splats(context) is None:
            return "Select Gaussian splats or their armature"
        return None

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Open the file browser, unless a file or folder was given."""
        if self.filepath:
            return self.run_modal(context)
        name = bpy.path.clean_name(active_splats(context).name)
        folder = os.path.dirname(bpy.data.filepath) or os.path.expanduser("~")
        self.filepath = os.path.join(folder, f"{name}.ply")
        self.frame_start = self.frame_end = context.scene.frame_current
        return self.open_browser(context)

    def prepare(self, context: bpy.types.Context) -> Steps:
        """Find out what to write where; posing takes the scene, so frames are written between redraws."""
        object, scene = active_splats(context), context.scene
        assert object is not None
        given = self.properties.is_property_set
        start = self.frame_start if given("frame_start") else scene.frame_current
        end = self.frame_end if given("frame_end") else start
        if self.resample:
            check_resampling(object)
        paths = targets(absolute(self.filepath), object.name, start, end)
        keep_source(object_notes(object).source_folder, paths)
        if deformer(object) is None:
            return write_frames(bake_sequence(context, object, start, end, self.space), paths)
        return self._read(context, object, paths)

    def _read(self, context: bpy.types.Context, object: bpy.types.Object, paths: dict[int, Path]) -> Steps:
        rest = rest_splats(object)
        poses = yield from pose_steps(context, object, min(paths), max(paths))
        request = None
        if self.resample:
            check_poses(object, np.stack([pose.transforms for pose in poses.values()]), list(poses))
            request = Request(read_whole(object), None, self.epsilon, self.budget)
        return Order(rest, poses, self.space, paths, request)

    @staticmethod
    def work(state: Written | Order, progress: Progress) -> Written:
        """Pose and write what is not written yet."""
        if isinstance(state, Written):
            return state
        state, notes = state.resampled(progress)
        with closing(write_frames(state.clouds(progress), state.paths)) as steps:
            while True:
                try:
                    progress(*next(steps))
                except StopIteration as stop:
                    return replace(stop.value, resting=state.resting(), notes=notes)

    def apply(self, context: bpy.types.Context, result: Written) -> None:
        """Say what was written."""
        first = result.paths[0]
        what = f"{first}" if len(result.paths) == 1 else f"{len(result.paths)} files to {first.parent}"
        self.report({"INFO"}, f"Wrote {what}")
        for note in result.notes:
            self.report({"INFO"}, note)
        if result.empty:
            self.report({"WARNING"}, f"Frames without splats were left out: {named(result.empty)}")
        if result.resting:
            self.report(
                {"WARNING"},
                f"Bones with a pose that is not finite were left at rest in frames {named(result.resting)}",
            )
        if result.left_out:
            self.report({"WARNING"}, f"{result.left_out} splats had values that cannot be written")
