"""A skeleton that a capture brings with it: joints whose motion is known, not found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .errors import CaptureError
from .rotations import affine_inverse, affine_multiply

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class GivenSkeleton:
    """J joints moving through the F frames of a capture, in the capture's axes and units.

    names : J names, unique
    parents : (J,) int32, parent joint, -1 for a root; parents come before children
    rest : (J, 3) float64, joints in the skeleton's own rest pose, which need not be a frame of the capture
    joint_mats : (F, J, 3, 4) float64, maps from that rest pose to each frame: what is rigid on joint j goes
        from p to ``joint_mats[f, j] @ [p, 1]``

    Make one with `make`, which checks and orders what comes from outside.
    """

    names: tuple[str, ...]
    parents: NDArray[np.int32]
    rest: F64
    joint_mats: F64

    def __len__(self) -> int:
        return len(self.names)

    @property
    def frame_count(self) -> int:
        """Number of frames F."""
        return len(self.joint_mats) if self.joint_mats.ndim else 0

    @classmethod
    def make(
        cls,
        names: Sequence[str],
        parents: NDArray[np.integer] | Sequence[int],
        rest: NDArray[np.floating],
        joint_mats: NDArray[np.floating],
    ) -> GivenSkeleton:
        """Return the skeleton with its joints ordered parents before children.

        Parameters
        ----------
        names : J names; parents : (J,); rest : (J, 3); joint_mats : (F, J, 3, 4) or (F, J, 4, 4)

        Raises
        ------
        CaptureError : an array is out of shape or not finite, a name occurs twice, or the parents are no tree
        """
        mats = np.asarray(joint_mats, np.float64)
        skeleton = cls(
            tuple(str(name) for name in names),
            np.asarray(parents, np.int32),
            np.asarray(rest, np.float64),
            mats[..., :3, :] if mats.ndim == 4 else mats,
        )
        problem = next((text for bad, text in skeleton._faults() if bad), None)
        if problem:
            raise CaptureError(f"The skeleton of the capture is not usable: {problem}.")
        order = _parents_first(skeleton.parents)
        return skeleton if (order == np.arange(len(order))).all() else skeleton._take_joints(order)

    def _faults(self) -> Iterator[tuple[bool | np.bool_, str]]:
        count = len(self.names)
        yield not count, "it has no joints"
        twice = next((name for name in self.names if self.names.count(name) > 1), None)
        yield twice is not None, f"two joints are called '{twice}'"
        shapes = {"parents": (count,), "rest": (count, 3), "joint_mats": (self.frame_count, count, 3, 4)}
        for name, shape in shapes.items():
            array = getattr(self, name)
            yield array.shape != shape, f"{name} has shape {array.shape}, expected {shape}"
            yield not np.isfinite(array).all(), f"{name} holds values that are not finite"
        outside = (self.parents < -1) | (self.parents >= count)
        yield outside.any(), f"parents name joints outside 0..{count - 1}"
        yield len(_parents_first(self.parents)) != count, "the parents of its joints form a circle"
        flat = np.abs(np.linalg.det(self.joint_mats[..., :3])).min(initial=1) < 1e-9
        yield flat, "joint_mats scales a joint to nothing"

    def _take_joints(self, order: NDArray[np.intp]) -> GivenSkeleton:
        new = np.empty(len(self), np.int32)
        new[order] = np.arange(len(order))
        parents = self.parents[order]
        return GivenSkeleton(
            tuple(self.names[j] for j in order),
            np.where(parents >= 0, new[parents], -1).astype(np.int32),
            self.rest[order],
            self.joint_mats[:, order],
        )

    def take_frames(self, frames: NDArray[np.integer] | slice) -> GivenSkeleton:
        """Return the skeleton in some of its frames."""
        return replace(self, joint_mats=self.joint_mats[frames])

    def moved(self, matrix: NDArray[np.floating]) -> GivenSkeleton:
        """Return the skeleton of the same capture after all its points were moved by ``matrix`` (4, 4)."""
        move = np.asarray(matrix, np.float64)[:3]
        mats = affine_multiply(affine_multiply(move, self.joint_mats), affine_inverse(move))
        return replace(self, rest=self.rest @ move[:, :3].T + move[:, 3], joint_mats=mats)

    def positions(self) -> F64:
        """Return the joints in every frame (F, J, 3)."""
        return np.einsum("fjab,jb->fja", self.joint_mats[..., :3], self.rest) + self.joint_mats[..., 3]


def _parents_first(parents: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the joints (J,), parents before children, else as they come; fewer where parents form a circle.

    An order that is so already is kept.
    """
    children: list[list[int]] = [[] for _ in parents]
    for joint, parent in enumerate(parents.tolist()):
        if 0 <= parent < len(parents):
            children[parent].append(joint)
    depth = np.full(len(parents), -1)
    level = np.flatnonzero(parents < 0).tolist()
    for d in range(len(parents)):
        depth[level] = d
        level = [child for joint in level for child in children[joint]]
    reached = np.flatnonzero(depth >= 0)
    if (parents[reached] < reached).all():
        return reached
    return reached[np.argsort(depth[reached], kind="stable")]
