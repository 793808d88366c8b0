"""One pose at a time, fast enough for a viewport: the answer depends on the pose and its history alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .coverage import Coverage, coverage, pose_search
from .database import MotionDatabase, Residuals, bone_transforms, repaired_rotations
from .geodesic import KeySearch
from .match import at_rate, bone_samples
from .se3_mean import rotation_mean
from .so3 import geodesic_distance, geodesic_step

NEIGHBOURS = 4
LEAST_BANDWIDTH = np.radians(3.0)


@dataclass(frozen=True)
class LiveAnswer:
    """residuals : of one frame; coverage : of the pose, per part."""

    residuals: Residuals
    coverage: Coverage


class LiveMatcher:
    """Answers poses from a database, without any state between calls.

    Of every part the few nearest captured moments are averaged, with weights that fall to zero at the next
    nearest one: a moment enters and leaves the average with no weight, so the answer is continuous in the
    pose.

    patch_length : poses of a history that are compared, the current one included
    fps : frames a second of the histories; None: those of the database
    """

    def __init__(self, database: MotionDatabase, patch_length: int = 7, fps: float | None = None) -> None:
        if fps is not None and abs(fps / database.fps - 1) > 1e-3:
            database = at_rate(database, fps / database.fps)
        self.database, self.patch_length = database, patch_length
        self._poses = pose_search(database)
        offsets = np.arange(1 - patch_length, 1)
        self._histories = KeySearch(
            database.rotations,
            database.clips,
            database.parts,
            offsets,
            np.full(patch_length, 1 / patch_length),
        )
        self._bone_parts, self._part_weights = bone_samples(database.bone_parts)

    def pose(self, rotations: NDArray[np.floating]) -> LiveAnswer:
        """Answer a pose (J, 4) by itself: dragging a bone, scrubbing."""
        residuals, nearest = self._blend(
            self._poses, repaired_rotations(rotations[None]), np.zeros(1, np.intp)
        )
        return LiveAnswer(residuals, Coverage(nearest))

    def history(self, rotations: NDArray[np.floating]) -> LiveAnswer:
        """Answer the last of poses (H, J, 4), the others being those just before it: playback.

        Where there are fewer than `patch_length`, the oldest is repeated.
        """
        poses = repaired_rotations(rotations)
        window = np.maximum(np.arange(-self.patch_length, 0) + len(poses), 0)
        residuals, _ = self._blend(self._histories, poses, window)
        return LiveAnswer(residuals, coverage(self.database, poses[-1:], self._poses))

    def transforms(
        self, answer: LiveAnswer, rotations: NDArray[np.floating], root_translation: NDArray[np.floating]
    ) -> NDArray[np.float64]:
        """Bone transforms (B, 3, 4), rest -> posed, of an answer to the pose (J, 4), (3,)."""
        pose = repaired_rotations(rotations[None])
        return bone_transforms(self.database, answer.residuals, pose, np.asarray(root_translation)[None])[0]

    def _blend(
        self, search: KeySearch, poses: NDArray[np.float64], window: NDArray[np.intp]
    ) -> tuple[Residuals, NDArray[np.float32]]:
        """Mean of the nearest moments' values, and the distance (1, P) to the nearest of each part."""
        found, apart = search.nearest(poses, window[None], NEIGHBOURS + 1)
        rows, distances = found[:, 0], apart[:, 0]
        weights = neighbour_weights(distances)  # (P, k)
        rows = rows[:, : weights.shape[1]]
        bones = np.arange(self.database.bone_count)
        shares = (self._part_weights[..., None] * weights[self._bone_parts]).reshape(len(bones), -1)
        rows = rows[self._bone_parts].reshape(len(bones), -1)
        turns = rotation_mean(self.database.residual_rotations[rows, bones[:, None]], shares)
        offsets = np.einsum("bn,bna->ba", shares, self.database.residual_offsets[rows, bones[:, None]])
        return Residuals(turns[None], offsets[None]), distances[None, :, 0]


def neighbour_weights(distances: NDArray[np.floating]) -> NDArray[np.float64]:
    """Weights (P, k), rows summing to 1, of the k nearest of k + 1 distances (P, k + 1), rising.

    A Gaussian, as wide as the nearest is far (at least 3 degrees), times a factor that is 0 with zero slope
    at the distance of the one left out; alike where all are equally far. A single distance has weight 1.
    """
    if distances.shape[1] == 1:
        return np.ones(distances.shape)
    d = np.asarray(distances, np.float64)
    inner, outer = d[:, :-1], np.maximum(d[:, -1:], 1e-12)
    width = np.maximum(d[:, :1], LEAST_BANDWIDTH)
    near = np.exp((d[:, :1] ** 2 - inner**2) / (2 * width**2))
    weights = near * np.maximum(1 - (inner / outer) ** 2, 0) ** 2
    total = weights.sum(axis=1, keepdims=True)
    return np.where(total > 1e-24, weights / np.maximum(total, 1e-24), 1 / inner.shape[1])


class SettlingFilter:
    """Lets residuals glide to their target while a bone is dragged.

    ``V <- V Exp(a Log(V^-1 V*))`` with ``a = 1 - exp(-dt / tau)``; where it settles does not depend on the
    way there.

    tau : seconds
    """

    def __init__(self, tau: float = 0.08) -> None:
        self.tau = tau
        self._now: Residuals | None = None

    def reset(self) -> None:
        """Forget where things were: after an undo, a jump in time, a new file."""
        self._now = None

    def step(self, target: Residuals, seconds: float) -> Residuals:
        """Values `seconds` later, on their way to the target; the first call is there at once."""
        if self._now is None or len(self._now.rotations[0]) != len(target.rotations[0]):
            self._now = target
        share = 1 - np.exp(-max(seconds, 0.0) / self.tau)
        self._now = Residuals(
            geodesic_step(self._now.rotations, target.rotations, share),
            self._now.offsets + share * (target.offsets - self._now.offsets),
        )
        return self._now

    def settled(self, target: Residuals, angle: float = 1e-4, distance: float = 1e-5) -> bool:
        """Whether the values are within `angle`, radians, and `distance`, metres, of the target."""
        if self._now is None:
            return False
        apart = geodesic_distance(self._now.rotations, target.rotations).max(initial=0)
        return bool(apart < angle and np.abs(self._now.offsets - target.offsets).max(initial=0) < distance)
