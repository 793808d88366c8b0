"""Which files a user means by a path, a folder, a pattern or a list of files."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path

from ..errors import FormatError
from .detection import MESH_SUFFIXES, SPLAT_SUFFIXES
from .frame_names import natural_key

SEQUENCE_SUFFIXES = (*SPLAT_SUFFIXES, *MESH_SUFFIXES)
SUFFIXES = (*SEQUENCE_SUFFIXES, ".npz")

Source = str | PathLike[str] | Sequence[str | PathLike[str]]


def find_files(source: Source) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Return the files of a source in natural numeric order, and notes on those passed over.

    Parameters
    ----------
    source : one file, a folder, a pattern with ``*``, ``?`` or ``[]``, or a list of files

    Raises
    ------
    FormatError : nothing is found, and the message shows what was searched and what there is; or a folder
        cannot be looked into
    """
    try:
        return _find(source)
    except OSError as error:
        raise FormatError(
            str(error.filename or source), f"cannot be looked into ({error.strerror or error})"
        ) from error


def _find(source: Source) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    if not isinstance(source, str | PathLike):
        paths = sorted((Path(item) for item in source), key=natural_key)
        if not paths:
            raise FormatError("(no files)", "no files were chosen")
        return tuple(paths), ()
    if not str(source):
        raise FormatError("(no file)", "no file or folder was given")
    path = Path(source)
    if os.path.isfile(path):  # unlike Path's, it takes names that no file can have for no file
        return (path,), ()
    if os.path.isdir(path):
        return _choose(path / "*", path.iterdir(), path)
    if glob.has_magic(str(path)):
        folder = _fixed_parent(path)
        # The folder is escaped, as it may be called "take [1]".
        pattern = Path(glob.escape(str(folder))) / path.relative_to(folder)
        return _choose(path, map(Path, glob.glob(str(pattern), recursive=True)), folder)
    found = f"; the folder holds {_count_text(path.parent.iterdir())}" if os.path.isdir(path.parent) else ""
    raise FormatError(path, f"there is no such file or folder{found}")


def _choose(
    pattern: Path, candidates: Iterable[Path], folder: Path
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Take the files of the most frequent known suffix, in a folder the others are no part of the capture."""
    files = [p for p in candidates if p.is_file() and not p.name.startswith(".")]
    counts = Counter(p.suffix.lower() for p in files if p.suffix.lower() in SUFFIXES)
    if not counts:
        there = files or (list(folder.iterdir()) if folder.is_dir() else [])
        raise FormatError(
            pattern,
            f"no matching files: searched {pattern} for {', '.join(SUFFIXES)} and found {_count_text(there)}",
        )
    chosen = max(counts, key=lambda suffix: (counts[suffix], -SUFFIXES.index(suffix)))
    paths = sorted((p for p in files if p.suffix.lower() == chosen), key=natural_key)
    others = {suffix: number for suffix, number in counts.items() if suffix != chosen}
    text = ", ".join(f"{number} {suffix}" for suffix, number in others.items())
    notes = (
        (f"Only the {len(paths)} {chosen} files were read, not the {text} beside them.",) if others else ()
    )
    return tuple(paths), notes


def _fixed_parent(pattern: Path) -> Path:
    """Return the deepest folder of a pattern that is there, or has no wildcard."""
    parent = pattern.parent
    while glob.has_magic(str(parent)) and not parent.is_dir():
        parent = parent.parent
    return parent


def _count_text(paths: Iterable[Path]) -> str:
    counts = Counter(p.suffix.lower() or "(no extension)" for p in paths if p.is_file())
    return ", ".join(f"{number} {suffix}" for suffix, number in counts.most_common()) or "no files"
