"""Choosing the files of a capture: one, a folder, or a numbered sequence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy

from ..core.formats.frame_names import is_sibling
from ..gaussianimate_addon.browsing import BrowsingJobOperator
from .place import absolute

EXTENSIONS = (".ply", ".splat", ".ksplat", ".spz", ".sog", ".npz", ".obj", ".glb")


class CaptureFilesOperator(BrowsingJobOperator):
    """Mix-in of jobs on the files of a capture, chosen in the browser, dropped, or given by a script."""

    if TYPE_CHECKING:
        filepath: str
        directory: str
        files: Any
        filter_glob: str
        detect_sequence: bool
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
        detect_sequence: bpy.props.BoolProperty(
            name="Detect Sequence",
            description="Take one numbered file for the whole sequence it belongs to",
            default=False,
        )

    def is_given(self) -> bool:
        """Return whether there is nothing left to choose."""
        return bool(self.filepath or len(self.files))

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Open the file browser, unless all is given; the user's one file is taken for its sequence."""
        if not self.properties.is_property_set("detect_sequence"):  # pyright: ignore[reportAttributeAccessIssue]
            self.detect_sequence = True
        return self.run_modal(context) if self.is_given() else self.open_browser(context)

    def chosen_files(self) -> str | list[str]:
        """Return the path, or the paths of a sequence, that are meant."""
        source = chosen(self.filepath, self.directory, [element.name for element in self.files])
        if isinstance(source, str) and self.detect_sequence:
            return numbered_siblings(source)
        return source


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
    if not os.path.isfile(file):
        return path
    found = [str(other) for other in file.parent.iterdir() if is_sibling(file.name, other.name)]
    return found if len(found) > 1 else path
