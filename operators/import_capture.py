"""Import a capture from files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import bpy

from ..core.capture import Capture
from ..core.progress import Progress
from ..gaussianimate_addon.preferences import UP_AXES, preferences
from ..gaussianimate_addon.properties import object_notes
from .capture_files import CaptureFilesOperator
from .new_capture import NewCapture, add_capture, make_splats

if TYPE_CHECKING:
    from ..core.formats import MeshTexture


@dataclass(frozen=True)
class Request:
    """What to read: one path, folder or pattern, or the files of a sequence."""

    source: str | list[str]
    splat_count: int


class GAUSSIANIMATE_OT_import_capture(CaptureFilesOperator, bpy.types.Operator):
    """Import a capture: a sequence of Gaussian splats or meshes in one correspondence. Choose all files of \
the sequence, or its folder by leaving the name empty"""

    bl_idname = "gaussianimate.import_capture"
    bl_label = "Import Capture"
    bl_options = {"REGISTER", "PRESET"}

    if TYPE_CHECKING:
        up: str
        set_scene: bool
        splat_count: int
    else:
        up: bpy.props.EnumProperty(
            name="Up Axis",
            description="Axis of the file that points up in the scene",
            items=(("AUTO", "From File", "As the file says, else the axis chosen last"), *UP_AXES),
            default="AUTO",
        )
        set_scene: bpy.props.BoolProperty(
            name="Set Scene Time",
            description="Give the scene the capture's frame rate and length",
            default=True,
        )
        splat_count: bpy.props.IntProperty(
            name="Mesh Splats",
            description="Number of splats that cover a mesh capture",
            default=30_000,
            min=100,
            max=2_000_000,
        )

    browser_options = ("up", "detect_sequence", "set_scene", "splat_count")

    def prepare(self, context: bpy.types.Context) -> Request:
        """Find out what was chosen."""
        source = self.chosen_files()
        first = source if isinstance(source, str) else source[0]
        self._folder = first if os.path.isdir(first) else os.path.dirname(first)
        return Request(source, self.splat_count)

    @staticmethod
    def work(state: Request, progress: Progress) -> NewCapture:
        """Read the files; cover a mesh with splats."""
        from ..core.formats import read_capture
        from ..core.formats.sources import find_files

        capture = read_capture(state.source, progress=progress)
        texture = None
        if capture.load_cloud is None and capture.colors is None:
            texture = _texture(find_files(state.source)[0][0])
        return make_splats(capture, state.splat_count, progress, texture)

    def apply(self, context: bpy.types.Context, result: NewCapture) -> None:
        """Add the capture to the scene."""
        axis = self._axis(context, result.capture)
        object = add_capture(context, result, axis, self.set_scene)
        object_notes(object).source_folder = os.path.abspath(self._folder)
        for note in result.capture.notes:
            self.report({"INFO"}, note)
        self.report({"INFO"}, f"Imported '{object.name}': {result.summary}")

    def _axis(self, context: bpy.types.Context, capture: Capture) -> str:
        remembered = preferences(context)
        if self.up != "AUTO":
            if remembered is not None:
                remembered.up_axis = self.up
            return _AXIS[self.up]
        if capture.up in _AXIS.values():
            return capture.up
        return _AXIS[remembered.up_axis if remembered is not None else "Y"]


_AXIS = {"Z": "z", "Y": "y", "NEG_Y": "-y"}


def _texture(path: Path) -> MeshTexture | None:
    """Return the base-colour texture of a mesh file, if it has one."""
    from ..core.formats import read_texture

    return read_texture(path) if path.suffix.lower() in (".obj", ".glb", ".ply") else None
