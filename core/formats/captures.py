"""Any source a user may point at to a Capture."""

from __future__ import annotations

import re
from pathlib import Path

from ..capture import Capture
from ..errors import FormatError
from ..progress import Progress, no_progress
from .detection import SPLAT_KINDS, detect
from .sources import Source, find_files


def read_capture(source: Source, progress: Progress = no_progress) -> Capture:
    """Read a 4D capture, told by the content of its files.

    Parameters
    ----------
    source : one splat file (one frame); a folder, a pattern or a list of splat files (a sequence in natural
        numeric order); the same of meshes (.obj, .ply, .glb); the ``params.npz`` of Dynamic3DGaussians; or an
        .npz with ``vertices [F, N, 3]``
    progress : called with the stage and its fraction; may raise `Cancelled`

    Returns
    -------
    capture : the points that are usable in every frame, in the axes and units of the source; frames of splats
        are read anew when `load_cloud` asks for them

    Raises
    ------
    FormatError : the files are missing, damaged, or no one capture (differing counts)
    """
    paths, notes = find_files(source)
    kind = _kind_of_first(paths)
    name = capture_name(paths)
    if kind == "npz":
        first, *others = paths
        if others:
            raise FormatError(
                first.parent, f"{len(paths)} .npz archives were found, each a capture: choose one"
            )
        from .array_archive import read_archive

        return read_archive(first, name, notes)
    if kind == "mesh":
        from .mesh_sequence import read_mesh_sequence

        return read_mesh_sequence(paths, name, notes, progress)
    from .splat_sequence import read_splat_sequence

    return read_splat_sequence(paths, name, notes, progress)


def capture_name(paths: tuple[Path, ...]) -> str:
    """Return the name of a capture: the file's stem, or what the stems of a sequence begin with."""
    if len(paths) == 1:
        return paths[0].name.split(".")[0] or paths[0].name
    stem = re.sub(r"[\s_.\-]*\d+$", "", paths[0].name.split(".")[0])
    return stem or paths[0].resolve().parent.name or "capture"


def _kind_of_first(paths: tuple[Path, ...]) -> str:
    """Return the kind of the sequence, from the first file that has a kind: frames may be empty files."""
    for path in paths:
        try:
            kind = detect(path)
        except FormatError:
            if len(paths) > 1 and path.is_file() and path.stat().st_size == 0:
                continue
            raise
        return "splat" if kind in SPLAT_KINDS else kind
    raise FormatError(paths[0].parent, f"all of its {len(paths)} files are empty: 0 bytes")
