"""What a rig has learned, and more captures: the database goes on where the rig stayed the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..progress import Progress, no_progress
from ..rigging.rig import Rig
from .auto import AutoPredictor
from .database import extend_database
from .learned import LearnedMotion, learn_motion


def extend_motion(
    motion: LearnedMotion, before: Rig, rig: Rig, progress: Progress = no_progress
) -> LearnedMotion:
    """Learn the motion of a refined rig.

    Where bones, weights and joints are those there were, the new poses are added to the database and the
    rows there are stay bit by bit; else all is learned anew. The kernel is fitted anew either way.

    Parameters
    ----------
    motion : of ``before``
    rig : refined, its frames those of ``before`` and more
    """
    new = ~np.isin(rig.frames, before.frames)
    if not (_same_rig(before, rig) and new.any()):
        return learn_motion(rig, progress)
    clips = None if rig.clips is None else rig.clips[new]
    if clips is not None and before.clips is not None and rig.clips is not None:
        if np.isin(clips, rig.clips[~new]).any():  # a known clip goes on: its rows must be one stretch
            return learn_motion(rig, progress)
    database = extend_database(
        motion.predictor.database,
        rig.joint_rotations[new],
        rig.root_translations[new],
        rig.bone_transforms[new],
        clips,
        rig.frames[new],
    )
    added = database.captured[len(motion.frames) :]
    order = np.lexsort((rig.frames[new], np.zeros(int(new.sum())) if clips is None else clips))
    frames = np.full(len(added), -1, np.int32)
    frames[added] = rig.frames[new][order]
    return replace(
        motion,
        predictor=AutoPredictor.of(database, progress=progress),
        frames=np.concatenate([motion.frames, frames]),
    )


def _same_rig(before: Rig, rig: Rig) -> bool:
    names = ("indices", "weights", "joint_parents", "joint_positions", "bone_joints")
    return before.joint_names == rig.joint_names and all(
        np.array_equal(getattr(before, name), getattr(rig, name)) for name in names
    )
