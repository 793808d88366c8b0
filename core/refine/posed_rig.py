"""A known rig posed in more frames of its asset, and whether they are frames of it at all."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..capture import Capture
from ..errors import CaptureError, RigError
from ..progress import Progress, no_progress
from ..rigging.build import usable_frames
from ..rigging.decomposition.continuation import pose_bones
from ..rigging.decomposition.lbs import replay_rmse
from ..rigging.decomposition.sampling import stratified_subset
from ..rigging.decomposition.ssdr import SkinningDecomposition
from ..rigging.posing import joint_motions
from ..rigging.rig import Rig
from ..rigging.skeleton.extension import pose_joints
from ..rigging.skeleton.given import given_poses
from ..rigging.skeleton.lbs_statistics import LbsStatistics, lbs_statistics
from ..rigging.skeleton.poses import squared_error
from ..rigging.skeleton.tree import KinematicTree

F64 = NDArray[np.float64]
SAMPLE, NEIGHBOURS, FRAMES = 1000, 4, 12
KNOWN = 4  # known frames that are looked at
LITTLE = 5e-3  # of the box diagonal: replay error that tells nothing
TORN = 0.5  # median change of the distances between neighbours at which frames show other points
SIZE = 0.1  # change of size that is one
STRANGE = 0.2  # RMS error of the old bones' replay, of the box diagonal, at which frames show something else


@dataclass(frozen=True)
class PosedRig:
    """A rig in all frames of a capture.

    rig : with poses in F frames
    positions : (F, N, 3) float32, the points in these
    new : (F,) bool, frames that were not known before
    stats : of these points with the rig's weights
    """

    rig: Rig
    positions: NDArray[np.float32]
    new: NDArray[np.bool_]
    stats: LbsStatistics

    @classmethod
    def of(cls, rig: Rig, positions: NDArray[np.float32], new: NDArray[np.bool_]) -> PosedRig:
        """Sum up the statistics."""
        stats = lbs_statistics(rig.rest, positions, rig.indices, rig.weights, rig.bone_count)
        return cls(rig, positions, new, stats)

    @property
    def skin(self) -> SkinningDecomposition:
        """Outer bones and weights."""
        weights = self.rig.weights.astype(np.float64)
        return SkinningDecomposition(
            self.rig.indices, weights, self.rig.bone_transforms, self.rms(self.bone_errors())
        )

    def bone_errors(self) -> F64:
        """(F,) squared error, metres, summed over the points, of the replay by the outer bones."""
        return self._errors(self.rig.bone_transforms)

    def joint_errors(self) -> F64:
        """(F,) likewise by the joints alone, each outer bone rigid on its joint."""
        return self._errors(joint_motions(self.rig)[:, self.rig.bone_joints])

    def rms(self, errors: F64, frames: NDArray[np.bool_] | slice = slice(None)) -> float:
        """Root mean square distance, metres, of some frames' squared errors (F,)."""
        return float(np.sqrt(errors[frames].mean() / self.rig.point_count))

    def _errors(self, transforms: F64) -> F64:
        return squared_error(self.stats, self.stats.to_units(transforms)) * self.stats.scale**2


def pose_rig(
    rig: Rig, capture: Capture, progress: Progress = no_progress
) -> tuple[PosedRig, tuple[str, ...]]:
    """Pose a rig, as it is, in all frames of a capture; those it knows stay as they are.

    Outer bones are posed by least squares with the weights held. Joints follow the capture's skeleton where
    the rig was built on it, else they are fitted.

    Returns
    -------
    the posed rig, and notes for the user

    Raises
    ------
    CaptureError : no new frame, other points than the rig's, or something else's motion
    RigError : the rig's frames are not among the capture's
    """
    if capture.point_count != rig.point_count:
        raise CaptureError(
            f"{capture.name} has {capture.point_count} points and the rig {rig.point_count}; a rig is "
            "refined by captures of the same points in the same order."
        )
    frames, canonical, notes = usable_frames(capture, rig.canonical_frame)
    new = ~np.isin(frames, rig.frames)
    if not new.any():
        raise CaptureError(f"{capture.name} has no frame that the rig was not built from.")
    size = float(np.linalg.norm(np.ptp(rig.rest, axis=0))) or 1.0
    moved = np.abs(capture.positions[canonical] - rig.rest).max()
    if canonical != rig.canonical_frame or (~new).sum() != rig.frame_count or moved > 1e-3 * size:
        raise RigError(
            f"The rig was not built from {capture.name}: its frames are not among those of the capture."
        )
    positions = capture.positions if len(frames) == capture.frame_count else capture.positions[frames]
    more = positions[new]
    _check_points(rig.rest, more)
    _check_known(rig, positions[~new], capture.name, size)
    progress("Poses of skin bones", 0.0)
    transforms = pose_bones(rig.rest, more, rig.indices, rig.weights, rig.bone_count, progress)
    stats = lbs_statistics(rig.rest, positions, rig.indices, rig.weights, rig.bone_count)
    turns, moves, more_notes = _joint_poses(rig, capture, frames[new], stats.take_frames(np.flatnonzero(new)))
    everywhere = replace(
        rig,
        bone_transforms=_merged(new, rig.bone_transforms, transforms),
        joint_rotations=_merged(new, rig.joint_rotations, turns),
        root_translations=_merged(new, rig.root_translations, moves),
        frames=frames.astype(np.int32),
        clips=None if capture.clips is None else capture.clips[frames],
        up=rig.up if rig.up is not None else capture.up_direction,
    )
    posed = PosedRig(everywhere, positions, new, stats)
    away = posed.rms(posed.bone_errors(), new) / size
    if away > STRANGE:
        raise CaptureError(
            "The new frames move unlike what the rig was built from: the rig's bones miss their points by "
            f"{100 * away:.0f} % of the size; add captures of the same asset."
        )
    return posed, (*notes, *more_notes)


def _joint_poses(
    rig: Rig, capture: Capture, frames: NDArray[np.intp], stats: LbsStatistics
) -> tuple[F64, F64, tuple[str, ...]]:
    """Local rotations and root translations in new frames, by the skeleton that was given, or fitted."""
    notes: tuple[str, ...] = ()
    if rig.joint_bind is not None:
        if capture.skeleton is not None and set(rig.joint_names) <= set(capture.skeleton.names):
            return *given_poses(rig, capture.skeleton.take_frames(frames)), ()
        notes = (
            f"The rig's skeleton came with its first capture and not with all of {capture.name}; its poses "
            f"in {len(frames)} new frames were fitted to the points.",
        )
    tree = KinematicTree(rig.joint_positions, rig.joint_parents)
    return *pose_joints(stats, tree, rig.bone_joints), notes


def _merged(new: NDArray[np.bool_], known: F64, more: F64) -> F64:
    """Rows (F, ...) of both, where they belong."""
    rows = np.empty((len(new), *known.shape[1:]))
    rows[~new], rows[new] = known, more
    return rows


def _check_known(rig: Rig, frames: NDArray[np.float32], name: str, size: float) -> None:
    """Raise RigError where the rig's poses are not those of the frames (F, N, 3) it claims to know."""
    few = np.unique(np.linspace(0, len(frames) - 1, KNOWN).astype(int))
    posed = pose_bones(rig.rest, frames[few], rig.indices, rig.weights, rig.bone_count)
    weights = rig.weights.astype(np.float64)
    kept, fitted = (
        replay_rmse(rig.rest, frames[few], rig.indices, weights, transforms)
        for transforms in (rig.bone_transforms[few], posed)
    )
    if kept > 1.1 * fitted + LITTLE * size:
        raise RigError(f"The rig was not built from {name}: its poses are not those of the frames there.")


def _check_points(rest: NDArray[np.float32], frames: NDArray[np.float32]) -> None:
    """Raise CaptureError where neighbours at rest are no neighbours in frames (F, N, 3), or all is larger."""
    from scipy.spatial import KDTree

    if len(rest) <= NEIGHBOURS:
        return
    points = rest.astype(np.float64)
    rows = stratified_subset(points, SAMPLE)
    near, who = map(np.asarray, KDTree(points).query(points[rows], NEIGHBOURS + 1))
    apart = near[:, 1:] > 0
    few = frames[np.unique(np.linspace(0, len(frames) - 1, FRAMES).astype(int))]
    edges = np.linalg.norm(few[:, who[:, 1:]] - few[:, rows, None], axis=-1)[:, apart]
    if not edges.size:
        return
    ratios = edges / near[:, 1:][apart]
    middle = float(np.median(ratios))
    if middle <= 0 or np.median(np.abs(ratios / middle - 1)) > TORN:
        raise CaptureError(
            "The new frames do not follow the rig's points in the same order: neighbours there are no "
            "neighbours here; add captures in one correspondence."
        )
    if not 1 - SIZE < middle < 1 / (1 - SIZE):
        raise CaptureError(
            f"The new frames are {middle:.3g} times as large as the rig's capture; scale one of them first."
        )
