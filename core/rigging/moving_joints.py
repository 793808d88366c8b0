"""Joints that move something, and those that only end a chain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .rig import Rig

STILL = 1e-3  # largest part of the axis in the quaternion of a joint that does not turn


def moving_joints(rig: Rig) -> NDArray[np.bool_]:
    """Return the mask (J,) of the joints that have a bone; the others are still ends of chains.

    A joint has one where it can move points. On a skeleton that the capture brought also where it turns, as
    the head above a garment does: poses are told apart by it.
    """
    moving = np.zeros(len(rig.joint_parents), bool)
    moving[0] = True
    moving[rig.bone_joints] = True
    moving[rig.joint_parents[rig.joint_parents >= 0]] = True
    if rig.joint_bind is not None:
        moving |= np.abs(rig.joint_rotations[..., 1:]).max(axis=(0, 2)) > STILL
    return moving
