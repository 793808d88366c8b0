"""Objects and poses whose numbers no resampling can go by, each refused in a sentence that names it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import bpy
import numpy as np
from numpy.typing import NDArray

from ...core.errors import RigError
from ..armature import SKIN_BONE, indexed_bones
from ..deformer import deformer_armature

F64 = NDArray[np.floating]
LEAST, MOST = 1e-6, 1e12  # metres of the world that one of an object may be long


def world_scale(object: bpy.types.Object) -> float:
    """Return how many metres of the world one metre of rigged splats is long.

    Raises
    ------
    RigError : where they or their armature stand is not a number, or one of them is scaled to nothing
    """
    armature = deformer_armature(object)
    for each in (armature, object):
        if each is not None:
            _check_place(_first_lost(each))
    return _scale(object)


def check_poses(object: bpy.types.Object, poses: F64, frames: Sequence[int] = ()) -> None:
    """Raise where a pose (F, B, 3, 4) of the splats' bones is not finite.

    Parameters
    ----------
    frames : of the poses, where they are of frames

    Raises
    ------
    RigError : names the bone, or the armature where none of its bones is anywhere
    """
    lost = ~np.isfinite(poses).all(axis=(2, 3))
    armature = deformer_armature(object)
    if armature is None or not lost.any():
        return
    row = int(np.flatnonzero(lost.any(axis=1))[0])
    bones = indexed_bones(armature, SKIN_BONE)
    who = f"bone '{bones[int(np.flatnonzero(lost[row])[0])].name}' of '{armature.name}', or of one above it,"
    if lost[row].all():
        who = f"'{armature.name}'"
    when, rest = (f"In frame {frames[row]} the", ", or leave that frame out") if frames else ("The", "")
    raise RigError(f"{when} location, rotation or scale of {who} is not a number; clear it{rest}")


def _first_lost(object: bpy.types.Object) -> bpy.types.Object:
    """Return the topmost of an object and its parents that stands nowhere, or the object itself."""
    found, above = object, cast("bpy.types.Object | None", object.parent)
    while above is not None:
        if not LEAST <= _scale(above) <= MOST:
            found = above
        above = cast("bpy.types.Object | None", above.parent)
    return found


def _check_place(object: bpy.types.Object) -> None:
    scale = _scale(object)
    if not np.isfinite(scale):
        raise RigError(f"The location, rotation or scale of '{object.name}' is not a number; clear it")
    if scale < LEAST:
        raise RigError(f"'{object.name}' is scaled to nothing; give it a scale other than 0")
    if scale > MOST:
        raise RigError(f"'{object.name}' is scaled by {scale:.3g}; give it a smaller scale")


def _scale(object: bpy.types.Object) -> float:
    """Return how long a metre of the object is in the world, nan where the object stands nowhere."""
    matrix = np.array(object.matrix_world, np.float64)
    if not np.isfinite(matrix).all():
        return float("nan")
    return float(abs(np.linalg.det(matrix[:3, :3])) ** (1 / 3))
