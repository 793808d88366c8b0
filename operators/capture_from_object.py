"""Make a capture of an animated mesh object."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import bpy

from ..core.capture import Capture
from ..core.progress import Progress
from ..gaussianimate_addon.job import JobOperator
from ..gaussianimate_addon.modifiers import PLAYBACK, find_modifier, set_input
from ..gaussianimate_addon.sample_object import sample_steps
from .new_capture import NewCapture, add_capture, make_splats

Steps = Generator[tuple[str, float], None, tuple[Capture, int]]


class GAUSSIANIMATE_OT_capture_from_object(JobOperator, bpy.types.Operator):
    """Capture the active mesh object's animation (modifiers, shape keys, armatures, caches) as splats"""

    bl_idname = "gaussianimate.capture_from_object"
    bl_label = "Capture from Object"
    bl_options = {"REGISTER"}

    if TYPE_CHECKING:
        frame_start: int
        frame_end: int
        splat_count: int
        hide_object: bool
    else:
        frame_start: bpy.props.IntProperty(
            name="Start", description="First frame; the scene's where not given", options={"SKIP_SAVE"}
        )
        frame_end: bpy.props.IntProperty(
            name="End", description="Last frame; the scene's where not given", options={"SKIP_SAVE"}
        )
        splat_count: bpy.props.IntProperty(name="Splats", default=30_000, min=100, max=2_000_000)
        hide_object: bpy.props.BoolProperty(
            name="Hide Object", description="Hide the mesh, which stands where the splats are", default=True
        )

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """A mesh must be active."""
        kinds = {"MESH", "CURVE", "SURFACE", "META", "FONT"}
        if context.active_object is None or context.active_object.type not in kinds:
            return "Select an animated mesh object"
        return None

    def prepare(self, context: bpy.types.Context) -> Steps:
        """Sample the evaluated mesh frame by frame."""
        object, scene = context.active_object, context.scene
        self._source = object.session_uid
        given = self.properties.is_property_set
        start = self.frame_start if given("frame_start") else scene.frame_start
        self._start = start
        end = self.frame_end if given("frame_end") else scene.frame_end
        return _sample(sample_steps(context, object, start, end), self.splat_count)

    @staticmethod
    def work(state: tuple[Capture, int], progress: Progress) -> NewCapture:
        """Cover the mesh with splats."""
        return make_splats(*state, progress)

    def apply(self, context: bpy.types.Context, result: NewCapture) -> None:
        """Add the capture where the mesh is."""
        source = next((o for o in bpy.data.objects if o.session_uid == self._source), None)
        object = add_capture(context, result, "z", set_scene=False)
        set_input(find_modifier(object, PLAYBACK), "Start Frame", float(self._start))
        if source is not None and self.hide_object:
            source.hide_set(True)
            source.hide_render = True
        self.report({"INFO"}, f"Captured '{object.name}': {result.summary}")


def _sample(steps: Generator[tuple[str, float], None, Capture], splat_count: int) -> Steps:
    capture = yield from steps
    return capture, splat_count
