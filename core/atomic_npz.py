"""NumPy archives, written whole or not at all, and read with nothing executed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .errors import GaussiAnimateError, RigError

SAID = 120  # letters of what a library says of a damaged file


def write_npz(path: str | PathLike[str], arrays: Mapping[str, NDArray], *, compress: bool = True) -> None:
    """Write arrays to `path` under a temporary name, then rename, so that no reader ever meets half a file.

    Raises
    ------
    RigError : the folder is missing or cannot be written
    """
    target = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as stream:
                save: Callable[..., None] = np.savez_compressed if compress else np.savez
                save(stream, **arrays)
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise RigError(f"{target}: cannot be written ({error.strerror or error}).") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read_npz(
    path: str | PathLike[str],
    what: str,
    required: tuple[str, ...],
    error: type[GaussiAnimateError] = RigError,
) -> dict[str, NDArray]:
    """Read all arrays of an archive without pickles.

    Parameters
    ----------
    what : what the file should be, for messages ("a rig")
    required : names that must be there
    error : raised, with one sentence, where the file is missing, not an archive, damaged or incomplete
    """
    if os.path.isdir(path):
        raise error(f"{path}: is a folder, not {what} (.npz).")
    if not os.path.isfile(path):
        raise error(f"{path}: there is no such file.")
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise error(f"{path}: is a single array, not {what} (.npz).")
        with archive:
            missing = [name for name in required if name not in archive.files]
            if missing:
                raise error(f"{path}: is not {what}, it lacks {', '.join(missing)}.")
            return {name: array_of(archive, name) for name in archive.files}
    except GaussiAnimateError:
        raise
    except Exception as problem:  # zipfile and numpy raise nearly anything at damaged bytes
        if isinstance(problem, OSError) and problem.errno:
            raise error(f"{path}: cannot be read ({problem.strerror}).") from problem
        said = in_short(problem)
        if "pickle" in said:  # what numpy takes anything else for
            said = "no numpy archive"
        raise error(f"{path}: is not {what}, or is damaged ({said}).") from problem


def array_of(archive: np.lib.npyio.NpzFile, name: str) -> NDArray:
    """Return an array of an archive; numpy hands out the bytes of what has lost the mark of an array."""
    array = archive[name]
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{name} is no array")
    return array


def in_short(problem: BaseException) -> str:
    """Return what a library says of damaged bytes, on one line and without the bytes that it quotes."""
    said = " ".join(str(problem).split()) or type(problem).__name__
    return said if len(said) <= SAID else f"{said[:SAID]}..."
