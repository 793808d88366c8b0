"""Which files a render writes; touches no Blender data."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..core.atomic_file import require_writable_folder
from ..core.errors import FormatError
from ..gaussianimate_addon.frame_range import range_problem

EXTENSIONS = {"PNG": ".png", "OPEN_EXR": ".exr"}
_FORMATS = {extension: name for name, extension in EXTENSIONS.items()}


def format_of(path: str, default: str) -> str:
    """Return "PNG" or "OPEN_EXR": by the extension of a path, else the default.

    Raises
    ------
    FormatError : the extension is that of another kind of picture or film
    """
    suffix = Path(path).suffix.lower()
    if suffix in _OTHERS:
        raise FormatError(path, "splats are rendered to .png or .exr files; choose one of them")
    return _FORMATS.get(suffix, default)


_OTHERS = frozenset(
    ".jpg .jpeg .tif .tiff .tga .bmp .webp .avif .jp2 .hdr .dpx .cin .mp4 .mov .mkv .avi .webm .ogv".split()
)


def frame_files(path: str, name: str, file_format: str, start: int, end: int) -> dict[int, Path]:
    """Return the file of each frame.

    Parameters
    ----------
    path : a file, or a folder that exists or ends with a slash. The last run of # in the file's name stands
        for the frame's number, as in Blender; without it frames of a range are numbered ``name_0001``, and
        a single frame takes the name as it is
    name : beginning of the names of files in a folder
    file_format : of files whose extension does not say it

    Raises
    ------
    FormatError : no path, no frames, another kind of file, or the folder cannot be made or written to
    """
    if not path:
        raise FormatError("(no file)", "no file was given to render to")
    if (problem := range_problem(start, end)) is not None:
        raise FormatError(path, problem)
    extension = EXTENSIONS[format_of(path, file_format)]
    file = Path(path)
    if os.path.isdir(file) or path.endswith(("/", os.sep)):
        file = file / f"{name}_####"
    stem = file.name[: -len(extension)] if file.name.lower().endswith(extension) else file.name
    if "#" not in stem and start != end:
        stem += "_####"
    require_writable_folder(file.parent)
    return {frame: file.with_name(_numbered(stem, frame, end) + extension) for frame in range(start, end + 1)}


def _numbered(stem: str, frame: int, last: int) -> str:
    """Put a frame's number in the place of the last run of #, with at least as many digits."""
    return re.sub(
        r"#+(?=[^#]*$)",
        lambda run: f"{'-' * (frame < 0)}{abs(frame):0{max(len(run[0]), len(str(abs(last))))}d}",
        stem,
    )
