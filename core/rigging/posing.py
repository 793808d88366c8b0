"""Points and outer bones under poses: what playing and posing need, numpy only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import RigError
from .rig import Rig
from .skeleton.kinematics import joint_transforms


def joint_motions(rig: Rig) -> NDArray[np.float64]:
    """S_j (F, J, 3, 4), rest -> posed, of every joint in a rig's captured poses."""
    return joint_transforms(
        rig.joint_parents, rig.joint_positions, rig.joint_rotations, rig.root_translations
    )


def outer_bone_transforms(
    rig: Rig, rotations: NDArray[np.floating], root_translations: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Transforms of the outer bones under poses of the joints: each bone follows its joint rigidly.

    Parameters
    ----------
    rotations : (F, J, 4) local quaternions wxyz relative to rest; root_translations : (F, 3) metres

    Returns
    -------
    (F, B, 3, 4) float64, rest -> posed; exactly the identity where the pose is the rest pose
    """
    turns, places = np.asarray(rotations, np.float64), np.asarray(root_translations, np.float64)
    transforms = joint_transforms(rig.joint_parents, rig.joint_positions, turns, places)
    return transforms[:, rig.bone_joints]


def posed_points(rig: Rig, transforms: NDArray[np.floating]) -> NDArray[np.float32]:
    """Points (N, 3) under one pose of the outer bones (B, 3, 4), by linear blend skinning.

    Displacements are blended, so identity transforms give the rest points bit by bit.
    """
    offsets = np.asarray(transforms, dtype=np.float64) - np.eye(3, 4)
    points = rig.rest.astype(np.float64)
    moved = np.zeros_like(points)
    for bone, weight in zip(rig.indices.T, rig.weights.T, strict=True):
        chosen = offsets[bone]
        moved += weight[:, None] * (np.einsum("nab,nb->na", chosen[..., :3], points) + chosen[..., 3])
    return (points + moved).astype(np.float32)


def rows_for_cloud(rig: Rig, positions: NDArray[np.floating], name: str) -> NDArray[np.intp]:
    """The rig's point (N,) whose weights each point (N, 3) of a cloud takes: its own row, else the nearest.

    Raises
    ------
    RigError : the cloud does not lie where the rig's rest pose does
    """
    rest = rig.rest.astype(np.float64)
    diagonal = float(np.linalg.norm(np.ptp(rest, axis=0))) or 1.0
    if len(positions) == len(rest) and np.abs(positions - rest).max() <= 1e-5 * diagonal:
        return np.arange(len(rest))
    from scipy.spatial import KDTree

    distances, rows = KDTree(rest).query(positions)
    if distances.max(initial=0) > 0.1 * diagonal:
        raise RigError(
            f"{name} does not fit the rig: some splats are {100 * distances.max() / diagonal:.0f} % of the "
            "rig's size away from its rest pose; give the cloud of the capture's rest frame."
        )
    return np.asarray(rows, np.intp)
