"""Motions: new poses for a rig's joints, as .npz files."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from ..atomic_npz import read_npz, write_npz
from ..errors import RigError
from .rig import Rig


@dataclass(frozen=True)
class Motion:
    """F poses of J joints.

    rotations : (F, J, 4) float64, unit quaternions wxyz, local, relative to rest
    root_translations : (F, 3) float64, displacement of the root joint from its rest position, metres
    fps : frames a second, None where the file does not say
    """

    rotations: NDArray[np.float64]
    root_translations: NDArray[np.float64]
    fps: float | None = None


def save_motion(motion: Motion, path: str | PathLike[str]) -> None:
    """Write a motion, whole or not at all."""
    arrays = {"rotations": motion.rotations, "root_translation": motion.root_translations}
    if motion.fps is not None:
        arrays["fps"] = np.array(motion.fps, np.float64)
    write_npz(path, arrays)


def load_motion(path: str | PathLike[str], rig: Rig) -> Motion:
    """Read ``rotations`` [F, J, 4], ``root_translation`` [F, 3] (optional: none) and ``fps`` (optional).

    Raises
    ------
    RigError : the file is no motion or does not fit the rig; one sentence that names the file and the array
    """
    arrays = read_npz(path, "a motion", ("rotations",))
    rotations = _numbers(path, "rotations", arrays["rotations"])
    if rotations.ndim != 3 or rotations.shape[1:] != (rig.joint_count, 4) or not len(rotations):
        raise RigError(
            f"{path}: rotations has shape {list(rotations.shape)}, but this rig needs "
            f"[frames, {rig.joint_count}, 4] (one quaternion wxyz per joint)."
        )
    sizes = np.abs(rotations).max(axis=-1, keepdims=True)
    if (sizes < 1e-6).any():
        frame, joint, _ = np.argwhere(sizes < 1e-6)[0]
        raise RigError(f"{path}: the rotation of joint {joint} in frame {frame} is a zero quaternion.")
    rotations = rotations / sizes  # first: the square of 1e200 is infinite
    lengths = np.linalg.norm(rotations, axis=-1, keepdims=True)
    shape = (len(rotations), 3)
    moves = _numbers(path, "root_translation", arrays.get("root_translation", np.zeros(shape)))
    if moves.shape != shape:
        raise RigError(f"{path}: root_translation has shape {list(moves.shape)}, but needs {list(shape)}.")
    farthest = np.abs(moves).max()
    if farthest > np.finfo(np.float32).max:  # positions of splats are in single precision
        raise RigError(f"{path}: root_translation holds {farthest:.3g} m, which is too far for splats.")
    fps = _numbers(path, "fps", arrays["fps"]).item() if "fps" in arrays and arrays["fps"].size == 1 else None
    return Motion(rotations / lengths, moves, fps)


def _numbers(path: str | PathLike[str], name: str, array: NDArray) -> NDArray[np.float64]:
    if array.dtype.kind not in "fiu":
        raise RigError(f"{path}: {name} does not hold numbers but {array.dtype}.")
    values = array.astype(np.float64)
    if not np.isfinite(values).all():
        raise RigError(f"{path}: {name} holds values that are not finite.")
    return values
