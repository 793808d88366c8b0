"""Outer bones under a motion, with or without secondary motion, for the command line."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .progress import Progress

if TYPE_CHECKING:
    from .rigging.motion_file import Motion
    from .rigging.rig import Rig


def add_secondary(command: argparse.ArgumentParser) -> None:
    """Add the option that says how outer bones answer new poses."""
    command.add_argument(
        "--secondary",
        choices=("off", "auto", "match", "kernel", "full"),
        default="off",
        help="how outer bones answer new poses: rigid to their joints (off, default), or with the motion "
        "they had in the capture (auto; match and full: by its nearest stretches, kernel: by regression)",
    )


def bone_poses(rig: Rig, motion: Motion, secondary: Any, progress: Progress) -> NDArray[np.float64]:
    """Return the outer bones (F, B, 3, 4) under a motion of the joints."""
    if secondary == "off":
        from .rigging.posing import outer_bone_transforms

        return outer_bone_transforms(rig, motion.rotations, motion.root_translations)
    from .motion.database import build_database
    from .motion.predict import predict

    database = build_database(rig, rig.clips, rig.up)
    return predict(
        database,
        motion.rotations,
        motion.root_translations,
        secondary,
        fps=motion.fps,
        progress=progress,
    )
