"""A capture's motion at the frames of a scene that runs at another rate. No Blender needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.rigging.posing import joint_motions
from ..core.rigging.rig import Rig
from ..core.rigging.skeleton.kinematics import joint_transforms
from ..core.rotations import continuous_quaternions, matrix_to_quaternion, quaternion_to_matrix, slerp
from .bone_shapes import bone_centres

F64 = NDArray[np.floating]


def motions_on_whole_frames(rig: Rig, times: F64) -> tuple[F64, F64, F64]:
    """Return whole scene frames within the captured ones, and the motions of joints and outer bones there.

    Between captured frames joints turn along the great arc, and so do outer bones, whose middle moves
    straight. They are interpolated as they move in space, not against their joints: those may turn far and
    back between two frames while the surface hardly moves.

    Parameters
    ----------
    times : (F,) scene times of the rig's poses, rising

    Returns
    -------
    frames (W,), joints (W, J, 3, 4) and outer bones (W, B, 3, 4), rest -> posed
    """
    whole = np.round(times)
    if len(times) < 2 or (np.allclose(times, whole, atol=1e-4) and np.allclose(np.diff(whole), 1)):
        return whole, joint_motions(rig), rig.bone_transforms
    whole = np.arange(np.ceil(times[0] - 1e-4), np.floor(times[-1] + 1e-4) + 1)
    after = np.clip(np.searchsorted(times, whole), 1, len(times) - 1)
    part = np.clip((whole - times[after - 1]) / (times[after] - times[after - 1]), 0, 1)

    def turned(quaternions: F64) -> F64:
        rows = continuous_quaternions(quaternions)
        return slerp(rows[after - 1], rows[after], part[:, None, None])

    def moved(places: F64) -> F64:
        share = part.reshape(-1, *[1] * (places.ndim - 1))
        return (1 - share) * places[after - 1] + share * places[after]

    joints = joint_transforms(
        rig.joint_parents,
        rig.joint_positions,
        np.asarray(turned(rig.joint_rotations), np.float64),
        np.asarray(moved(rig.root_translations), np.float64),
    )
    centres, bones = bone_centres(rig), rig.bone_transforms
    places = moved(np.einsum("fbij,bj->fbi", bones[..., :3], centres) + bones[..., 3])
    turns = quaternion_to_matrix(turned(matrix_to_quaternion(bones[..., :3])))
    offsets = places - np.einsum("fbij,bj->fbi", turns, centres)
    return whole, joints, np.concatenate([turns, offsets[..., None]], axis=-1)
