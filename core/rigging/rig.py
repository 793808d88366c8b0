"""The rig: what a capture is turned into. Frozen, and saved as one .npz without pickles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Rig:
    """Outer bones that carry the surface, and the inner skeleton that carries the outer bones.

    Everything lives in the axes and units of the capture. The rest pose is the canonical frame.

    rest : (N, 3) float32, points of the canonical frame
    indices : (N, K) int32, outer bones that move a point, strongest first, K <= 4
    weights : (N, K) float32, >= 0, rows sum to 1 (unused slots: index 0, weight 0)
    bone_transforms : (F, B, 3, 4) float64, rest -> frame rigid motion [R | t] of each outer bone, the
        capture's own motion
    joint_names : J names, unique
    joint_parents : (J,) int32, parent joint, -1 for the root; parents come before children
    joint_positions : (J, 3) float64, rest positions
    bone_joints : (B,) int32, joint whose motion carries the outer bone when no captured motion does
    joint_rotations : (F, J, 4) float64, unit quaternions wxyz, local (in the parent's posed frame), identity at rest
    root_translations : (F, 3) float64, displacement of the root joint from its rest position
    frames : (F,) int32, frame of the capture that row f comes from (invalid frames are left out)
    fps : frames a second of the capture
    canonical_frame : frame of the capture that is the rest pose
    """

    rest: NDArray[np.float32]
    indices: NDArray[np.int32]
    weights: NDArray[np.float32]
    bone_transforms: NDArray[np.float64]
    joint_names: tuple[str, ...]
    joint_parents: NDArray[np.int32]
    joint_positions: NDArray[np.float64]
    bone_joints: NDArray[np.int32]
    joint_rotations: NDArray[np.float64]
    root_translations: NDArray[np.float64]
    frames: NDArray[np.int32]
    fps: float
    canonical_frame: int
