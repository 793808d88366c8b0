"""Files and folders that are made whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import FormatError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a file to write, beside ``path``; it takes that name once the block has ended well.

    Raises
    ------
    FormatError : the disk refuses
    """
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    try:
        try:
            yield temporary
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise FormatError(path, f"the file cannot be written ({error.strerror or error})") from error


@contextmanager
def made_folder(folder: Path) -> Iterator[Path]:
    """Make a folder for what the block writes; where it ends badly, those it made and left empty go again.

    Raises
    ------
    FormatError : the folder cannot be made
    """
    made = _missing(folder)
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _refused(folder, error) from error
        yield folder
    except BaseException:
        for path in made:
            try:
                path.rmdir()
            except OSError:  # not empty, or never made
                continue
        raise


def require_writable_folder(folder: Path) -> None:
    """Find out whether files could be written to a folder that is there or could be made; leave no trace.

    Raises
    ------
    FormatError : a file is in its place, or the disk refuses
    """
    missing = _missing(folder)
    existing = missing[-1].parent if missing else folder
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        if missing or not existing.is_dir():
            raise _refused(folder, error) from error
        raise FormatError(folder, f"the folder cannot be written to ({_reason(error)})") from error


def _missing(folder: Path) -> list[Path]:
    """Return the folders that must be made for one, the deepest first."""
    missing = []
    at = folder.absolute()
    while not os.path.lexists(at) and at != at.parent:  # a drive that is not there is its own parent
        missing.append(at)
        at = at.parent
    return missing


def _refused(folder: Path, error: OSError) -> FormatError:
    return FormatError(folder, f"the folder cannot be made ({_reason(error)})")


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
