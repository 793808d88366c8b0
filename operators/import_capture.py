"""Import a capture from files."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy

from ..core.capture import Capture
from ..core.progress import Progress
from ..gaussianimate_addon.browsing import BrowsingJobOperator
from ..gaussianimate_addon.preferences import UP_AXES, preferences
from ..gaussianimate_addon.properties import object_notes
from .new_capture import NewCapture, add_capture, make_splats
from .place import absolute

if TYPE_CHECKING:
    from ..core.formats import MeshTexture

EXTENSIONS = (".ply", ".splat", ".ksplat", ".spz", ".sog", ".npz", ".obj", ".glb")


@dataclass(frozen=True)
class Request:
    """What to read: one path, folder or pattern, or the files of a sequence."""

    source: str | list[str]
    splat_count: int


class GAUSSIANIMATE_OT_import_capture(BrowsingJobOperator, bpy.types.Operator):
    """Import a capture: a sequence of Gaussian splats or meshes in one correspondence. Choose all files of \
the sequence, or its folder by leaving the name empty"""

    bl_idname = "gaussianimate.import_capture"
    bl_label = "Import Capture"
    bl_options = {"REGISTER", "PRESET"}

    if TYPE_CHECKING:
        filepath: str
        directory: str
        files: Any
        filter_glob: str
        up: str
        detect_sequence: bool
        set_scene: bool
        splat_count: int
    else:
        filepath: bpy.props.StringProperty(
            name="File Path",
            description="A file, a folder, or a pattern with * and ?",
            subtype="FILE_PATH",
            options={"SKIP_SAVE", "HIDDEN", "PATH_SUPPORTS_BLEND_RELATIVE"},
        )
        directory: bpy.props.StringProperty(subtype="DIR_PATH", options={"SKIP_SAVE", "HIDDEN"})
        files: bpy.props.CollectionProperty(
            type=bpy.types.OperatorFileListElement, options={"SKIP_SAVE", "HIDDEN"}
        )
        filter_glob: bpy.props.StringProperty(
            default=";".join(f"*{extension}" for extension in EXTENSIONS), options={"HIDDEN", "SKIP_SAVE"}
        )
        up: bpy.props.EnumProperty(
            name="Up Axis",
            description="Axis of the file that points up in the scene",
            items=(("AUTO", "From File", "As the file says, else the axis chosen last"), *UP_AXES),
            default="AUTO",
        )
        detect_sequence: bpy.props.BoolProperty(
            name="Detect Sequence",
            description="Take one numbered file for the whole sequence it belongs to",
            default=False,
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

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Open the file browser, unless files were dropped or given."""
        if not self.properties.is_property_set("detect_sequence"):
            self.detect_sequence = True
        if self.filepath or len(self.files):
            return self.run_modal(context)
        return self.open_browser(context)

    def prepare(self, context: bpy.types.Context) -> Request:
        """Find out what was chosen."""
        source = chosen(self.filepath, self.directory, [element.name for element in self.files])
        if isinstance(source, str) and self.detect_sequence:
            source = numbered_siblings(source)
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


def chosen(filepath: str, directory: str, names: list[str]) -> str | list[str]:
    """Return the path, or the list of paths, that file browser, drop or script asked for."""
    names = [name for name in names if name]
    folder = absolute(directory)
    if len(names) > 1:
        return [os.path.join(folder, name) for name in names]
    if filepath:
        return absolute(filepath)
    return os.path.join(folder, *names)


def numbered_siblings(path: str) -> str | list[str]:
    """Return the files whose names differ from ``path`` in the last number only, or ``path`` alone."""
    file = Path(path)
    parts = re.match(r"(.*?)(\d+)(\D*)$", file.name)
    if parts is None or not file.is_file():
        return path
    same = re.compile(re.escape(parts[1]) + r"\d+" + re.escape(parts[3]) + "$")
    found = [str(sibling) for sibling in file.parent.iterdir() if same.match(sibling.name)]
    return found if len(found) > 1 else path
