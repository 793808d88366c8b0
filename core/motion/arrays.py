"""Motion as named arrays, and back: a database, and the check of arrays that come from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import RigError
from .database import MotionDatabase

DATABASE = "motion database"
# Kind and sizes of each array: F frames, J joints, B bones, P parts, M members of all parts.
_LAYOUT = {
    "parents": "i J",
    "joint_positions": "f J 3",
    "rotations": "f F J 4",
    "root_translations": "f F 3",
    "clips": "i F",
    "captured": "b F",
    "fps": "f",
    "up": "f 3",
    "bone_joints": "i B",
    "pivots": "f B 3",
    "masses": "f B",
    "spreads": "f B 3 3",
    "residual_rotations": "f F B 4",
    "residual_offsets": "f F B 3",
    "part_leaders": "i P",
    "bone_parts": "f P B",
    "part_joints": "i M",
    "part_sizes": "i P",
}


def check_arrays(
    arrays: Mapping[str, NDArray],
    layout: Mapping[str, str],
    owner: str,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Check that arrays of a file are what they should be; returns the sizes by letter.

    Parameters
    ----------
    layout : kind of the values ("f" finite floats, "i" integers, "b" truth, "U" text) and sizes of each
        array, numbers or letters that stand for the same number everywhere; others are not looked at
    owner : whose arrays they are, for the error; sizes : letters that are known already

    Raises
    ------
    RigError : an array is missing, or does not fit the others
    """
    if missing := [name for name in layout if name not in arrays]:
        raise RigError(f"The {owner} lacks {missing[0]}; build the rig again from the capture.")
    found = dict(sizes or {})
    for name, wanted in layout.items():
        array, (kind, *letters) = arrays[name], wanted.split()
        fits = array.ndim == len(letters) and array.dtype.kind == kind
        fits = fits and all(
            size == (int(letter) if letter.isdigit() else found.setdefault(letter, size))
            for size, letter in zip(array.shape, letters, strict=True)
        )
        if not fits or (kind == "f" and not np.isfinite(array).all()):
            raise misfit(owner)
    return found


def misfit(owner: str) -> RigError:
    """The error that arrays of a file do not fit together."""
    return RigError(f"The arrays of the {owner} do not fit together; build the rig again from the capture.")


def are_indices(array: NDArray[np.integer], count: int, least: int = 0) -> bool:
    """Whether all values lie in `least`..`count` - 1."""
    return bool(((array >= least) & (array < count)).all())


def are_parents(parents: NDArray[np.integer]) -> bool:
    """Whether joints hang on earlier ones, and only the first on none."""
    return bool(len(parents) and parents[0] == -1 and (parents[1:] < np.arange(1, len(parents))).all()) and (
        are_indices(parents[1:], len(parents))
    )


def database_to_arrays(database: MotionDatabase) -> dict[str, NDArray]:
    """The database as named arrays without pickles, for an .npz or a property of a .blend."""
    arrays = {
        field.name: np.asarray(getattr(database, field.name))
        for field in fields(database)
        if field.name != "parts"
    }
    arrays["part_joints"] = np.concatenate([np.zeros(0, np.int32), *database.parts])
    arrays["part_sizes"] = np.array([len(part) for part in database.parts], np.int32)
    return arrays


def database_from_arrays(arrays: Mapping[str, NDArray]) -> MotionDatabase:
    """Inverse of `database_to_arrays`.

    Raises
    ------
    RigError : an array is missing or does not fit the others
    """
    sizes = check_arrays(arrays, _LAYOUT, DATABASE)
    joints, clips, lengths = sizes["J"], arrays["clips"], arrays["part_sizes"]
    fits = (
        min(sizes["F"], sizes["B"], sizes["P"], float(arrays["fps"])) > 0
        and are_parents(arrays["parents"])
        and all(are_indices(arrays[name], joints) for name in ("bone_joints", "part_joints", "part_leaders"))
        and clips[0] == 0
        and are_indices(np.diff(clips), 2)
        and (lengths > 0).all()
        and lengths.sum() == sizes["M"]
    )
    if not fits:
        raise misfit(DATABASE)
    read: dict[str, Any] = {f.name: arrays[f.name] for f in fields(MotionDatabase) if f.name in arrays}
    read["fps"] = float(arrays["fps"])
    read["parts"] = tuple(np.split(np.asarray(arrays["part_joints"], np.int32), np.cumsum(lengths)[:-1]))
    return MotionDatabase(**read)
