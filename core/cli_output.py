"""What may stand after ``-o``, asked before the long work starts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from .atomic_file import require_writable_folder
from .errors import FormatError

AnyPath = str | PathLike[str]


def require_output(path: AnyPath, ending: str, inputs: Iterable[AnyPath] = ()) -> None:
    """Refuse a file that cannot be written, or must not be.

    Parameters
    ----------
    ending : of the files the command writes, ".npz"
    inputs : files it reads

    Raises
    ------
    FormatError : it is a folder, ends otherwise, its folder is missing or cannot be written to, or it is read
    """
    target = Path(path)
    if os.path.isdir(target):
        raise FormatError(path, "cannot be written, it is a folder; name a file in it")
    if target.suffix.lower() != ending:
        ends = f"ends in {target.suffix}" if target.suffix else "has no ending"
        raise FormatError(
            path, f"{ends}, but this command writes {ending} files; let the name end in {ending}"
        )
    if not os.path.isdir(target.absolute().parent):
        raise FormatError(path, f"cannot be written, there is no folder {target.absolute().parent}")
    if os.path.exists(target) and not os.path.isfile(target):
        raise FormatError(path, "cannot be written over, it is no ordinary file; choose another name")
    try:
        target.stat()
    except FileNotFoundError:
        pass
    except OSError as error:  # a name too long
        raise FormatError(path, f"cannot be written ({error.strerror or error})") from error
    _keep_inputs(target, inputs)
    require_writable_folder(target.absolute().parent)


def require_output_folder(path: AnyPath, ending: str, inputs: Iterable[AnyPath]) -> None:
    """Refuse a folder that cannot take a sequence of files, or must not.

    Parameters
    ----------
    ending : of the files the command writes, ".ply"
    inputs : files it reads, whose own sequence the new ones would join

    Raises
    ------
    FormatError : it is a file or named like one, cannot be made or written to, or an input lies in it
    """
    target = Path(path)
    if target.suffix.lower() == ending and not os.path.isdir(target):
        raise FormatError(path, f"names one file, but each frame gets a {ending} of its own; name a folder")
    if os.path.exists(target) and not os.path.isdir(target):
        raise FormatError(path, "is a file; name a folder for the frames")
    for source in inputs:
        if target.resolve() == Path(source).resolve().parent:
            raise FormatError(
                path,
                f"holds {Path(source).name}, whose sequence the new files would join; choose another folder",
            )
    require_writable_folder(target)


def _keep_inputs(output: Path, inputs: Iterable[AnyPath]) -> None:
    """Refuse to write over a file that is read."""
    if not os.path.exists(output):
        return
    for source in inputs:
        if os.path.exists(source) and os.path.samefile(output, source):
            raise FormatError(output, "is read by this command; give the output another name")
