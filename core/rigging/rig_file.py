"""A rig as one .npz without pickles; the schema is documented in docs/rig-file.md."""

from __future__ import annotations

from os import PathLike

import numpy as np
from numpy.typing import NDArray

from ..atomic_npz import read_npz, write_npz
from ..errors import RigError
from .rig import FIELDS, OPTIONAL, Rig

SCHEMA = "gaussianimate-rig"
VERSION = 1
_TYPES = {
    "rest": np.float32,
    "indices": np.int32,
    "weights": np.float32,
    "bone_transforms": np.float64,
    "joint_parents": np.int32,
    "joint_positions": np.float64,
    "bone_joints": np.int32,
    "joint_rotations": np.float64,
    "root_translations": np.float64,
    "frames": np.int32,
    "bone_affinity": np.float32,
    "joint_bind": np.float64,
    "clips": np.int32,
    "up": np.float64,
}


def save_rig(rig: Rig, path: str | PathLike[str]) -> None:
    """Write a rig to `path`, whole or not at all.

    Raises
    ------
    RigError : the rig is inconsistent or the file cannot be written
    """
    rig.check()
    arrays = {
        name: np.asarray(getattr(rig, name), dtype) for name, dtype in _TYPES.items() if _has(rig, name)
    }
    arrays["joint_names"] = np.array(rig.joint_names, dtype=np.str_)
    arrays["fps"] = np.array(rig.fps, np.float64)
    arrays["canonical_frame"] = np.array(rig.canonical_frame, np.int32)
    arrays["schema"] = np.array(SCHEMA)
    arrays["version"] = np.array(VERSION, np.int32)
    write_npz(path, arrays)


def _has(rig: Rig, name: str) -> bool:
    return getattr(rig, name) is not None


def is_rig(path: str | PathLike[str]) -> bool:
    """Whether a file is a rig (of any version), told by its content."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return "schema" in archive.files and str(archive["schema"]) == SCHEMA
    except Exception:  # zipfile, zlib and numpy meet damage with a dozen exception types
        return False


def load_rig(path: str | PathLike[str]) -> Rig:
    """Read and check a rig.

    Raises
    ------
    RigError : no such file, not a rig, of a newer version, or inconsistent; one sentence that names the file
    """
    required = ("schema", "version", *(name for name in FIELDS if name not in OPTIONAL))
    arrays = read_npz(path, "a rig", required)
    if str(arrays["schema"]) != SCHEMA:
        raise RigError(f"{path}: is not a rig but {arrays['schema']}.")
    try:
        if int(arrays["version"]) > VERSION:
            raise RigError(
                f"{path}: was written by a newer GaussiAnimate (version {int(arrays['version'])}; this one "
                f"reads up to {VERSION}); update the extension to open it."
            )
        values = {name: _as(dtype, name, arrays[name]) for name, dtype in _TYPES.items() if name in arrays}
        rig = Rig(
            **values,
            joint_names=tuple(str(name) for name in arrays["joint_names"]),
            fps=float(arrays["fps"]),
            canonical_frame=int(arrays["canonical_frame"]),
        )
        rig.check()
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise RigError(f"{path}: is not a usable rig ({error}).") from error
    except RigError as error:
        raise RigError(str(error) if str(path) in str(error) else f"{path}: {error}") from error
    return rig


def _as(dtype: type, name: str, array: NDArray) -> NDArray:
    """Return an array in its own type; refuse one that this would make another."""
    if array.dtype.kind not in "fiub":
        raise RigError(f"{name} holds {array.dtype}, not numbers.")
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        if array.dtype.kind == "f" or (
            array.size and not limits.min <= array.min() <= array.max() <= limits.max
        ):
            raise RigError(f"{name} holds values that are no 32-bit integers.")
    with np.errstate(over="ignore"):  # what becomes infinite is found by the check of the rig
        return array.astype(dtype, copy=False)
