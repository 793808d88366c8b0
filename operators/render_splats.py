"""Draw the splats of a scene as its camera sees them, to picture files."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import bpy

from ..core.atomic_file import made_folder
from ..core.progress import Progress
from ..gaussianimate_addon.browsing import BrowsingJobOperator
from ..gaussianimate_addon.drawer.render import (
    NO_CAMERA,
    SceneRenderer,
    render_size,
    start_gpu,
)
from ..gaussianimate_addon.drawer.render_visibility import evaluated_as_rendered, left_out
from ..gaussianimate_addon.picture_files import write_exr_picture, write_png_picture
from ..gaussianimate_addon.point_cloud import is_splat_data
from .place import absolute
from .render_files import format_of, frame_files

Steps = Generator[tuple[str, float], None, tuple[list[Path], str]]


class GAUSSIANIMATE_OT_render_splats(BrowsingJobOperator, bpy.types.Operator):
    """Draw the scene's splats as its camera sees them, over nothing, to PNG or OpenEXR files"""

    bl_idname = "gaussianimate.render_splats"
    bl_label = "Render Splats"
    bl_options = {"REGISTER", "PRESET"}
    job_undo = False

    if TYPE_CHECKING:
        filepath: str
        frame_start: int
        frame_end: int
        width: int
        height: int
        file_format: str
        color_depth: str
        behind_meshes: bool
        check_existing: bool
        filter_glob: str
    else:
        filepath: bpy.props.StringProperty(
            name="File Path",
            description="File or folder; .png or .exr decides the format, and # stand for the frame's number",
            subtype="FILE_PATH",
            options={"SKIP_SAVE", "PATH_SUPPORTS_BLEND_RELATIVE"},
        )
        frame_start: bpy.props.IntProperty(
            name="Start", description="First frame; the scene's where not given", options={"SKIP_SAVE"}
        )
        frame_end: bpy.props.IntProperty(
            name="End", description="Last frame; the scene's where not given", options={"SKIP_SAVE"}
        )
        width: bpy.props.IntProperty(
            name="Width",
            description="Pixels; 0 takes the scene's resolution",
            min=0,
            subtype="PIXEL",
            options={"SKIP_SAVE"},
        )
        height: bpy.props.IntProperty(
            name="Height",
            description="Pixels; 0 takes the scene's resolution",
            min=0,
            subtype="PIXEL",
            options={"SKIP_SAVE"},
        )
        file_format: bpy.props.EnumProperty(
            name="Format",
            description="Of files whose name does not end with .png or .exr",
            items=(
                ("PNG", "PNG", "Colours as the scene's colour management shows them, with alpha"),
                ("OPEN_EXR", "OpenEXR", "Scene-linear colours, premultiplied by alpha, and depth"),
            ),
            default="PNG",
        )
        color_depth: bpy.props.EnumProperty(
            name="Color Depth",
            description="Bits of a channel; PNG has at most 16, OpenEXR at least 16, and 32 for depth",
            items=(
                ("8", "8", "8 bits in PNG, 16 in OpenEXR"),
                ("16", "16", "16 bits"),
                ("32", "32", "32 bits in OpenEXR, 16 in PNG"),
            ),
            default="8",
        )
        behind_meshes: bpy.props.BoolProperty(
            name="Behind Meshes",
            description="Meshes hide splats behind them, so that the picture can be laid over a render",
            default=True,
        )
        check_existing: bpy.props.BoolProperty(default=True, options={"HIDDEN"})
        filter_glob: bpy.props.StringProperty(default="*.png;*.exr", options={"HIDDEN"})

    browser_options = (
        "frame_start",
        "frame_end",
        "width",
        "height",
        "file_format",
        "color_depth",
        "behind_meshes",
    )
    job_cancelled = "cancelled; the frames written so far are whole"

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """There must be splats, and a camera to see them with."""
        scene = context.scene
        if not any(is_splat_data(object.data) for object in bpy.data.objects):
            return "There are no Gaussian splats in this file"
        if scene.camera is None:
            return NO_CAMERA.format(scene.name)
        return None

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Open the file browser, unless a file or folder was given."""
        self.frame_start, self.frame_end = self._frames(context)
        if self.filepath:
            return self.run_modal(context)
        folder = os.path.dirname(bpy.data.filepath) or os.path.expanduser("~")
        self.filepath = os.path.join(folder, f"{_name(context)}_####.png")
        return self.open_browser(context)

    def prepare(self, context: bpy.types.Context) -> Steps:
        """Find out what to draw and where to; drawing takes the scene, so it goes on between redraws."""
        scene = context.scene
        path = absolute(self.filepath)
        files = frame_files(path, _name(context), self.file_format, *self._frames(context))
        start_gpu()
        size = render_size(scene, self.width, self.height)
        is_exr = format_of(path, self.file_format) == "OPEN_EXR"
        renderer = SceneRenderer(*size, with_depth=is_exr, behind_meshes=self.behind_meshes)
        return self._render(context, renderer, files)

    def _frames(self, context: bpy.types.Context) -> tuple[int, int]:
        given, scene = self.properties.is_property_set, context.scene
        return (
            self.frame_start if given("frame_start") else scene.frame_start,
            self.frame_end if given("frame_end") else scene.frame_end,
        )

    def _render(self, context: bpy.types.Context, renderer: SceneRenderer, files: dict[int, Path]) -> Steps:
        scene, layer = context.scene, context.view_layer
        before, subframe, camera = scene.frame_current, scene.frame_subframe, scene.camera
        bits = int(self.color_depth)
        aspect = scene.render.pixel_aspect_x / scene.render.pixel_aspect_y
        try:
            with made_folder(next(iter(files.values())).parent), evaluated_as_rendered(layer):
                for done, (frame, path) in enumerate(files.items()):
                    yield "Rendering frames", done / len(files)
                    scene.frame_set(frame)
                    picture = renderer.draw(scene, context.evaluated_depsgraph_get())
                    if renderer.with_depth:
                        write_exr_picture(path, picture.rgba, picture.depth, max(bits, 16), aspect)
                    else:
                        write_png_picture(path, picture.rgba, scene, min(bits, 16))
                problem = _problem(context, renderer)
        finally:
            scene.frame_set(before, subframe=subframe)
            scene.camera = camera  # markers may have changed it
        return list(files.values()), problem

    @staticmethod
    def work(state: tuple[list[Path], str], progress: Progress) -> tuple[list[Path], str]:
        """Nothing is left to do: the GPU and Blender's pictures belong to the main thread."""
        return state

    def apply(self, context: bpy.types.Context, result: tuple[list[Path], str]) -> None:
        """Say what was written."""
        paths, problem = result
        what = f"{paths[0]}" if len(paths) == 1 else f"{len(paths)} files to {paths[0].parent}"
        self.report({"INFO"}, f"Wrote {what}")
        if problem:
            self.report({"WARNING"}, problem)


def _name(context: bpy.types.Context) -> str:
    """Return the beginning of file names: that of the .blend."""
    stem = Path(bpy.data.filepath).stem or context.scene.name
    return f"{bpy.path.clean_name(stem)}_splats"


def _problem(context: bpy.types.Context, renderer: SceneRenderer) -> str:
    """Return one sentence on splats that are not in the pictures, "" where all are."""
    names = ", ".join(map(repr, left_out(context.view_layer, context.evaluated_depsgraph_get())))
    if names:
        return f"Left out, as no collection shows them in viewports: {names}"
    if not renderer.has_drawn:
        return f"The pictures are empty: '{context.scene.name}' renders no Gaussian splats"
    return renderer.splats.problem or ""
