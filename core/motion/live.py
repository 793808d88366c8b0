"""One pose at a time, fast enough for a viewport: the answer depends on the pose and its history alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..rigging.kabsch import kabsch
from ..rotations import matrix_to_quaternion, quaternion_to_matrix
from .coverage import Coverage, coverage, pose_search
from .database import MotionDatabase, Residuals, bone_transforms, repaired_rotations
from .geodesic import KeySearch
from .match import at_rate

SOFTENING = math.radians(0.25)  # distance within which a captured pose is answered by its own value
REACH = math.radians(2.0)  # how much farther than the nearest moment others have a say ...
STRETCH = 1.4  # ... and how much of the nearest one's distance is added to that


@dataclass(frozen=True)
class LiveAnswer:
    """residuals : of one frame; coverage : of the pose, per part."""

    residuals: Residuals
    coverage: Coverage


class LiveMatcher:
    """Answers poses from a database, without any state between calls.

    Of every part the captured moments about as near as the nearest are averaged, with weights that fall to
    zero with distance, never with rank: the answer is continuous in the pose.

    patch_length : poses of a history that are compared, the current one included, as far apart as captured
        frames
    fps : frames a second of the histories; None: those of the database

    history_length : most poses of a history that are looked at
    """

    def __init__(self, database: MotionDatabase, patch_length: int = 7, fps: float | None = None) -> None:
        offsets = np.arange(1 - patch_length, 1)
        if fps is not None and abs(fps / database.fps - 1) > 1e-3:
            offsets = np.round(offsets * (fps / database.fps)).astype(np.intp)
            database = at_rate(database, fps / database.fps)
        self.database, self.history_length = database, 1 - int(offsets[0])
        self._poses = pose_search(database)
        alike = np.full(patch_length, 1 / patch_length)
        self._histories = KeySearch(database.rotations, database.clips, database.parts, offsets, alike)
        turns = quaternion_to_matrix(database.residual_rotations)
        values = np.concatenate([turns, database.residual_offsets[..., None]], axis=-1)
        values = np.moveaxis(values.reshape(*turns.shape[:2], 12), 0, 2)  # (B, 12, F)
        self._values = np.ascontiguousarray(values)

    def pose(self, rotations: NDArray[np.floating]) -> LiveAnswer:
        """Answer a pose (J, 4) by itself: dragging a bone, scrubbing."""
        poses = repaired_rotations(rotations[None])
        residuals = self._blend(self._poses, poses, np.zeros(1, np.intp))
        return LiveAnswer(residuals, coverage(self.database, poses, self._poses))

    def history(self, rotations: NDArray[np.floating]) -> LiveAnswer:
        """Answer the last of poses (H, J, 4), the others being those just before it: playback.

        Where there are fewer than `history_length`, the oldest is repeated.
        """
        poses = repaired_rotations(rotations)
        window = np.maximum(self._histories.offsets + len(poses) - 1, 0)
        residuals = self._blend(self._histories, poses[window], np.arange(len(window)))
        return LiveAnswer(residuals, coverage(self.database, poses[-1:], self._poses))

    def covered(self, rotations: NDArray[np.floating]) -> Coverage:
        """Coverage of a pose (J, 4) without an answer to it."""
        return coverage(self.database, repaired_rotations(rotations[None]), self._poses)

    def transforms(
        self, answer: LiveAnswer, rotations: NDArray[np.floating], root_translation: NDArray[np.floating]
    ) -> NDArray[np.float64]:
        """Bone transforms (B, 3, 4), rest -> posed, of an answer to the pose (J, 4), (3,)."""
        pose = repaired_rotations(rotations[None])
        return bone_transforms(self.database, answer.residuals, pose, np.asarray(root_translation)[None])[0]

    def _blend(self, search: KeySearch, poses: NDArray[np.float64], window: NDArray[np.intp]) -> Residuals:
        """Mean of the values of near moments over the parts that each bone listens to.

        Rotations are averaged as matrices, whose nearest rotation is the mean of least chords.
        """
        squared = search.squared_chords(poses.astype(np.float32), window[None])[:, 0]
        # Not matrix products: BLAS threads of a busy machine wait for each other longer than these sums take.
        weights = np.einsum("pb,pf->bf", self.database.bone_parts, moment_weights(squared))
        mean = np.einsum("bcf,bf->bc", self._values, weights).reshape(-1, 3, 4).astype(np.float64)
        turns = kabsch(np.swapaxes(mean[..., :3], -1, -2))
        return Residuals(matrix_to_quaternion(turns)[None], mean[None, ..., 3])


def moment_weights(squared: NDArray[np.float32]) -> NDArray[np.float32]:
    """Weights (P, F), rows summing to 1, of captured moments at squared distances (P, F), radians squared.

    Inverse distance weights with compact support (Shepard 1968; Franke and Little 1980), softened near 0: a
    captured moment is answered by its own value. The support grows with the distance of the nearest, so that
    far from all of them many have their say.
    """
    squared = np.maximum(squared, 0)
    nearest = squared.min(axis=1, keepdims=True)
    reach = STRETCH**2 * nearest + REACH**2
    closeness = (nearest + SOFTENING**2) / (squared + SOFTENING**2)
    weights = (closeness * np.maximum(1 - (squared - nearest) / reach, 0)) ** 2
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), np.float32)
