"""What a rig has learned from its captures: the predictor of its bones, and all that makes the rig anew.

It is what travels in a file. With the points and their weights, which the splats carry, `rig_of` gives the
whole rig back, to solve its skeleton again or to add captures to it.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..atomic_npz import array_of, in_short
from ..errors import RigError
from ..progress import Progress, no_progress
from ..rigging.rig import Rig
from ..rotations import normalize_quaternions
from .arrays import check_arrays, database_from_arrays, database_to_arrays, misfit
from .auto import AutoPredictor
from .database import bone_transforms, build_database
from .kernel import KernelModel

MOTION = "learned motion"
VERSION = 1  # of the bytes
_OPTIONAL = ("bone_affinity", "joint_bind")
_LAYOUT = {"frames": "i F", "joint_names": "U J", "canonical_frame": "i"}  # as in `arrays`
_OPTIONAL_LAYOUT = {"bone_affinity": "f B J", "joint_bind": "f J 3 4"}
_CORRECTIONS = {"correction_rotations": "f F B 4", "correction_offsets": "f F B 3"}


@dataclass(frozen=True)
class LearnedMotion:
    """The motion of a rig, ready to answer new poses.

    predictor : database of the captured poses, and the kernel where there were clips enough for one
    frames : (F,) int32, frame of the capture that each row of the database is; -1 where it was filled in
    joint_names : J names
    canonical_frame : frame of the capture that is the rest pose
    bone_affinity, joint_bind : as in `Rig`
    """

    predictor: AutoPredictor
    frames: NDArray[np.int32]
    joint_names: tuple[str, ...]
    canonical_frame: int
    bone_affinity: NDArray[np.float32] | None = None
    joint_bind: NDArray[np.float64] | None = None

    def to_bytes(self) -> bytes:
        """Everything as one uncompressed .npz without pickles."""
        predictor = self.predictor
        arrays = {f"database_{name}": array for name, array in database_to_arrays(predictor.database).items()}
        if predictor.kernel is not None:
            arrays |= predictor.kernel.to_arrays()
            arrays["correction_rotations"] = predictor.corrections.residual_rotations
            arrays["correction_offsets"] = predictor.corrections.residual_offsets
        arrays["version"] = np.array(VERSION, np.int32)
        arrays["frames"] = self.frames
        arrays["joint_names"] = np.array(self.joint_names, np.str_)
        arrays["canonical_frame"] = np.array(self.canonical_frame, np.int32)
        arrays |= {name: getattr(self, name) for name in _OPTIONAL if getattr(self, name) is not None}
        stream = io.BytesIO()
        np.savez(stream, **arrays)  # pyright: ignore[reportArgumentType]
        return stream.getvalue()

    @staticmethod
    def from_bytes(data: bytes) -> LearnedMotion:
        """Inverse of `to_bytes`.

        Raises
        ------
        RigError : the bytes are damaged or of a newer version, or an array is missing or does not fit
        """
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                arrays = {name: array_of(archive, name) for name in archive.files}
        except Exception as problem:  # zipfile and numpy raise nearly anything at damaged bytes
            raise RigError(
                f"The learned motion is damaged ({in_short(problem)}); build the rig again from the capture."
            ) from problem
        if "version" in arrays and not (arrays["version"] == VERSION).all():
            raise RigError(
                "The learned motion was written by another version of GaussiAnimate; update that, or build "
                "the rig again from the capture."
            )
        predictor = _predictor(arrays)
        database = predictor.database
        sizes = {"F": database.frame_count, "J": database.joint_count, "B": database.bone_count}
        optional = {name: layout for name, layout in _OPTIONAL_LAYOUT.items() if name in arrays}
        check_arrays(arrays, _LAYOUT | optional, MOTION, sizes)
        return LearnedMotion(
            predictor,
            arrays["frames"],
            tuple(str(name) for name in arrays["joint_names"]),
            int(arrays["canonical_frame"]),
            arrays.get("bone_affinity"),
            arrays.get("joint_bind"),
        )


def learn_motion(rig: Rig, progress: Progress = no_progress) -> LearnedMotion:
    """Learn how a rig's outer bones move with its skeleton, from its own captured poses.

    Where the rig does not say what is up, y is.

    Raises
    ------
    Cancelled : by `progress`, which is told of the fit of the kernel
    """
    database = build_database(rig, rig.clips, rig.up)
    order = np.lexsort((rig.frames, np.zeros(rig.frame_count) if rig.clips is None else rig.clips))
    frames = np.full(database.frame_count, -1, np.int32)
    frames[database.captured] = rig.frames[order]
    return LearnedMotion(
        AutoPredictor.of(database, progress=progress),
        frames,
        rig.joint_names,
        rig.canonical_frame,
        rig.bone_affinity,
        rig.joint_bind,
    )


def rig_of(
    motion: LearnedMotion,
    rest: NDArray[np.floating],
    indices: NDArray[np.integer],
    weights: NDArray[np.floating],
) -> Rig:
    """The rig a motion was learned from.

    Parameters
    ----------
    rest : (N, 3) points at rest; indices, weights : (N, K) the outer bones that move them, as in `Rig`

    Raises
    ------
    RigError : points or weights do not fit the motion
    """
    database = motion.predictor.database
    if np.max(indices, initial=0) >= database.bone_count:
        raise RigError(
            f"The splats follow {int(np.max(indices)) + 1} bones and the learned motion has "
            f"{database.bone_count}; build the rig again."
        )
    rows = _captured_rows(motion)
    rotations = np.asarray(normalize_quaternions(database.rotations[rows].astype(np.float64)), np.float64)
    translations = database.root_translations[rows]
    rig = Rig(
        rest=np.asarray(rest, np.float32),
        indices=np.asarray(indices, np.int32),
        weights=np.asarray(weights, np.float32),
        bone_transforms=bone_transforms(database, database.residuals[rows], rotations, translations),
        joint_names=motion.joint_names,
        joint_parents=database.parents,
        joint_positions=database.joint_positions,
        bone_joints=database.bone_joints,
        joint_rotations=rotations,
        root_translations=translations,
        frames=motion.frames[rows],
        fps=database.fps,
        canonical_frame=motion.canonical_frame,
        bone_affinity=motion.bone_affinity,
        joint_bind=motion.joint_bind,
        clips=database.clips[rows],
        up=database.up,
    )
    rig.check()
    return rig


def _captured_rows(motion: LearnedMotion) -> NDArray[np.intp]:
    """Rows of the database that were captured, in the order of the capture's frames."""
    rows = np.flatnonzero(motion.frames >= 0)
    return rows[np.argsort(motion.frames[rows], kind="stable")]


def _predictor(arrays: Mapping[str, NDArray]) -> AutoPredictor:
    prefix = "database_"
    database = database_from_arrays(
        {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    )
    if "kernel_blend" not in arrays:
        return AutoPredictor(database, None, database)
    kernel = KernelModel.from_arrays(arrays)
    if len(kernel.layout.parents) != database.joint_count or kernel.values.bone_count != database.bone_count:
        raise misfit(MOTION)
    check_arrays(arrays, _CORRECTIONS, MOTION, {"F": database.frame_count, "B": database.bone_count})
    turns, offsets = arrays["correction_rotations"], arrays["correction_offsets"]
    corrections = replace(database, residual_rotations=turns, residual_offsets=offsets)
    return AutoPredictor(database, kernel, corrections)
