"""The rig: what a capture is turned into. Frozen, and saved as one .npz without pickles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ..errors import RigError

LARGEST = float(np.finfo(np.float32).max)


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
    joint_rotations : (F, J, 4) float64, unit quaternions wxyz, local (in the parent's posed frame),
        identity at rest
    root_translations : (F, 3) float64, displacement of the root joint from its rest position
    frames : (F,) int32, frame of the capture that row f comes from (invalid frames are left out)
    fps : frames a second of the capture
    canonical_frame : frame of the capture that is the rest pose
    bone_affinity : (B, J) float32, share of each outer bone's points on the segments each joint moves,
        rows sum to 1; None where unknown
    joint_bind : (J, 3, 4) float64, of a rig on a skeleton the capture brought: rigid motion of each joint
        from that skeleton's own rest pose to the rig's (see `given_poses`); else None
    clips : (F,) int32, motion each pose belongs to, as in `Capture`; None: all are one motion
    up : (3,) float64, unit vector that points up; None where unknown
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
    bone_affinity: NDArray[np.float32] | None = None
    joint_bind: NDArray[np.float64] | None = None
    clips: NDArray[np.int32] | None = None
    up: NDArray[np.float64] | None = None

    @property
    def point_count(self) -> int:
        """Number of points N."""
        return len(self.rest)

    @property
    def frame_count(self) -> int:
        """Number of captured poses F."""
        return len(self.frames)

    @property
    def bone_count(self) -> int:
        """Number of outer bones B."""
        return self.bone_transforms.shape[1]

    @property
    def joint_count(self) -> int:
        """Number of joints J."""
        return len(self.joint_parents)

    def check(self) -> None:
        """Raise `RigError` naming the first array that is out of shape, out of range or not finite."""
        problem = next((text for bad, text in self._faults() if bad), None)
        if problem:
            raise RigError(f"The rig is not usable: {problem}.")

    def _faults(self) -> Iterator[tuple[bool | np.bool_, str]]:
        n, f, b, j = self.point_count, self.frame_count, self.bone_count, self.joint_count
        influences = self.indices.shape[1] if self.indices.ndim == 2 else 0
        shapes = {
            "rest": (n, 3),
            "indices": (n, influences),
            "weights": (n, influences),
            "bone_transforms": (f, b, 3, 4),
            "joint_parents": (j,),
            "joint_positions": (j, 3),
            "bone_joints": (b,),
            "joint_rotations": (f, j, 4),
            "root_translations": (f, 3),
            "frames": (f,),
        }
        optional = {"bone_affinity": (b, j), "joint_bind": (j, 3, 4), "clips": (f,), "up": (3,)}
        shapes |= {name: shape for name, shape in optional.items() if getattr(self, name) is not None}
        for name, shape in shapes.items():
            array = getattr(self, name)
            yield array.shape != shape, f"{name} has shape {array.shape}, expected {shape}"
            if array.dtype.kind == "f":
                largest = np.abs(array).max(initial=0.0)
                yield not np.isfinite(largest), f"{name} holds values that are not finite"
                yield largest > LARGEST, f"{name} holds {largest:.3g}, more than single precision can"
        yield min(n, f, b, j, influences) < 1, "it has no points, frames, bones or joints"
        yield self.indices.min() < 0 or self.indices.max() >= b, f"indices name bones outside 0..{b - 1}"
        yield self.weights.min() < 0, "weights are negative"
        yield np.abs(self.weights.sum(axis=1) - 1).max() > 1e-3, "weights of a point do not sum to 1"
        named = len(self.joint_names) == len(set(self.joint_names)) == j
        yield not named, f"joint_names are not {j} different names"
        ordered = self.joint_parents[0] == -1 and (self.joint_parents[1:] >= 0).all()
        ordered = ordered and (self.joint_parents < np.arange(j)).all()
        yield not ordered, "joint_parents is not a tree with parents before children"
        yield self.bone_joints.min() < 0 or self.bone_joints.max() >= j, "bone_joints name no joint"
        turned = np.abs(np.linalg.norm(self.joint_rotations, axis=-1) - 1).max() <= 1e-3
        yield not turned, "joint_rotations are no unit quaternions"
        yield not 0 <= self.canonical_frame < 2**31, "canonical_frame is no number of a frame"
        yield not (np.isfinite(self.fps) and self.fps > 0), "fps is not positive"


FIELDS = tuple(field.name for field in fields(Rig))
OPTIONAL = tuple(field.name for field in fields(Rig) if field.default is None)
