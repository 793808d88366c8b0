"""Tracked points as one matrix, in the form every fit of this room works on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kabsch import F64, fit_rigid, kabsch

# Root mean square errors, relative to the box diagonal.
NO_ERROR = 1e-6  # counts as none
RIGID = 5e-4  # of every point: millimetres rounded to 1/2048 m on the scale of a person


@dataclass(frozen=True)
class Alignment:
    """The rigid motion common to all points, taken out before the fits and put back after.

    centre : (3,) float64, centroid of the points at rest
    motion : (F, 3, 4) float64, rigid motion of the whole, from rest *relative to its centre* to each frame
    """

    centre: F64
    motion: F64

    @classmethod
    def fit(cls, rest: NDArray, frames: NDArray) -> Alignment:
        """Fit to points (N, 3) and their frames (F, N, 3)."""
        centre = rest.mean(0, dtype=np.float64)
        return cls(centre, fit_rigid(rest - centre, frames))

    def matrix(self, rest: NDArray, frames: NDArray) -> MotionMatrix:
        """Return points (N, 3) and frames (F, N, 3) relative to the common motion."""
        points = rest - self.centre
        local = (frames - self.motion[:, None, :, 3]) @ self.motion[:, :, :3] - points
        return MotionMatrix.of(points, np.ascontiguousarray(local.transpose(1, 0, 2)))

    def world(self, bones: F64) -> F64:
        """Return bones (B, 4, 3F) of the matrix as transforms (B, F, 3, 4) from rest to each frame."""
        local = bones.reshape(len(bones), 4, -1, 3).transpose(0, 2, 3, 1).copy()  # (B, F, 3, 4)
        local[..., :3] += np.eye(3)
        out = self.motion[:, :, :3] @ local
        out[..., 3] += self.motion[:, :, 3] - np.matvec(out[..., :3], self.centre)
        return out

    def local(self, transforms: F64) -> F64:
        """Inverse of :meth:`world`: transforms (F, B, 3, 4) as bones (B, 4, 3F) of the matrix."""
        moved = transforms.transpose(1, 0, 2, 3).copy()
        moved[..., 3] += np.matvec(moved[..., :3], self.centre) - self.motion[:, :, 3]
        moved = np.swapaxes(self.motion[:, :, :3], 1, 2) @ moved
        moved[..., :3] -= np.eye(3)
        return np.ascontiguousarray(moved.transpose(0, 3, 1, 2)).reshape(len(moved), 4, -1)


@dataclass(frozen=True)
class MotionMatrix:
    """N points as displacements over F frames.

    Displacements rather than positions, relative to the motion of the whole: blend weights sum to one, so the
    error of a skinning is the same, and squared errors can be taken as differences of large sums without
    loss. A *bone* here is a (4, 3F) matrix ``U`` with ``displacement = [p, 1] U``; its upper 3 x 3 block of
    each frame is ``R^T - I``.

    homogeneous : (N, 4) float64, rows [p, 1]
    displacements : (N, 3F) float64, frame by frame x, y, z
    energy : (N,) float64, squared length of each row of ``displacements``
    """

    homogeneous: F64
    displacements: F64
    energy: F64

    @classmethod
    def of(cls, points: NDArray, displacements: NDArray) -> MotionMatrix:
        """Build from points (N, 3) and displacements (N, F, 3)."""
        flat = displacements.reshape(len(points), -1)
        homogeneous = np.concatenate([points, np.ones((len(points), 1))], 1)
        return cls(homogeneous, flat, np.einsum("nf,nf->n", flat, flat))

    def __len__(self) -> int:
        return len(self.energy)

    @property
    def frame_count(self) -> int:
        """Number of frames F."""
        return self.displacements.shape[1] // 3

    @property
    def points(self) -> F64:
        """(N, 3) points at rest."""
        return self.homogeneous[:, :3]

    def take(self, rows: NDArray) -> MotionMatrix:
        """Return the matrix of the given rows (mask (N,) or indices (M,))."""
        return MotionMatrix(self.homogeneous[rows], self.displacements[rows], self.energy[rows])

    @property
    def diagonal(self) -> float:
        """Length of the diagonal of the box around the points at rest."""
        return float(np.linalg.norm(np.ptp(self.points, axis=0)))

    @property
    def floor(self) -> float:
        """Squared error, over all points and frames, that counts as none."""
        return len(self) * self.frame_count * (NO_ERROR * self.diagonal) ** 2

    @property
    def nearly_rigid(self) -> bool:
        """Whether no point strays from the motion of the whole by more than rounded coordinates may."""
        return bool(self.energy.max() <= self.frame_count * (RIGID * self.diagonal) ** 2)

    def take_frames(self, frames: NDArray[np.intp]) -> MotionMatrix:
        """Return the matrix of some frames only."""
        flat = self.displacements.reshape(len(self), -1, 3)[:, frames].reshape(len(self), -1)
        return MotionMatrix(self.homogeneous, flat, np.vecdot(flat, flat))

    def correlate(self, bones: F64, displacements: F64 | None = None) -> F64:
        """Return (N, B): inner products of each point's displacement with that under each bone (B, 4, 3F).

        ``displacements`` (N, 3F) stand in for the matrix's own, where given.
        """
        rows = self.displacements if displacements is None else displacements
        flat = rows @ bones.reshape(-1, bones.shape[-1]).T
        return np.einsum("nba,na->nb", flat.reshape(len(self), len(bones), 4), self.homogeneous)

    def single_errors(self, bones: F64) -> F64:
        """Return (N, B): squared error over all frames of each point moved by one bone alone."""
        gram = bones @ np.swapaxes(bones, 1, 2)  # (B, 4, 4)
        own = np.einsum("na,bac,nc->nb", self.homogeneous, gram, self.homogeneous, optimize=True)
        return np.maximum(own - 2 * self.correlate(bones) + self.energy[:, None], 0)


def rigid_bone(moments: F64, second: F64) -> F64:
    """Return the rigid bone that best explains weighted points, in closed form.

    Minimises ``sum_i |d_i - w_i [p_i, 1] U|^2`` from its sums (Le & Deng 2012, section 4.2; all frames at
    once).

    Parameters
    ----------
    moments : (..., 4, 3F) float64, ``sum_i w_i [p_i, 1]^T d_i``
    second : (..., 4, 4) float64, ``sum_i w_i^2 [p_i, 1]^T [p_i, 1]``

    Returns
    -------
    (..., 4, 3F) float64 bones.
    """
    frames = moments.shape[-1] // 3
    target = (
        moments.reshape(*moments.shape[:-1], frames, 3) + second[..., None, :3]
    )  # displacement -> position
    mass = second[..., 3, 3, None, None]
    mean = second[..., :3, 3] / second[..., 3, 3, None]
    cross = target[..., :3, :, :] - mean[..., None, None] * target[..., 3:, :, :]
    rotation = np.swapaxes(kabsch(np.moveaxis(cross, -2, -3)), -1, -2)  # (..., F, 3, 3), transposed R
    shift = target[..., 3, :, :] / mass - np.einsum("...a,...fac->...fc", mean, rotation)
    bone = np.concatenate([np.moveaxis(rotation - np.eye(3), -3, -2), shift[..., None, :, :]], -3)
    return bone.reshape(moments.shape)
