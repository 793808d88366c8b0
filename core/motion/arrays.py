"""A motion database as named arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from ..errors import RigError
from .database import MotionDatabase


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
    names = [field.name for field in fields(MotionDatabase) if field.name not in ("parts", "fps")]
    missing = [name for name in (*names, "fps", "part_joints", "part_sizes") if name not in arrays]
    if missing:
        raise RigError(f"The motion database lacks {missing[0]}; build it again from the capture.")
    ends = np.cumsum(arrays["part_sizes"])[:-1]
    database = MotionDatabase(
        **{name: arrays[name] for name in names},
        fps=float(arrays["fps"]),
        parts=tuple(np.split(np.asarray(arrays["part_joints"], np.int32), ends)),
    )
    frames, joints, bones = database.frame_count, database.joint_count, database.bone_count
    fits = (
        database.rotations.shape == (frames, joints, 4)
        and database.residual_rotations.shape == (frames, bones, 4)
        and database.residual_offsets.shape == (frames, bones, 3)
        and database.bone_parts.shape == (len(database.parts), bones)
        and len(database.clips) == len(database.captured) == len(database.root_translations) == frames > 0
    )
    if not fits:
        raise RigError("The motion database's arrays do not fit together; build it again from the capture.")
    return database
