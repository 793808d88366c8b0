"""The default predictor: the learned kernel, made exact where the capture knows the answer.

The kernel (`kernel`) generalises best but smooths: it replays a captured motion only roughly. What it misses
there, the captured residual seen from the predicted one, is a motion database of its own; it is matched like
any other and laid on the prediction with a share that falls with the distance to the capture (coverage). On a
captured motion this gives back the capture; between captured frames it is better than either method alone;
far away only the kernel is left, and beyond that the bones go back to their joints. With fewer clips than the
kernel needs to learn from, the captured residuals themselves are matched.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import RigError
from ..progress import Progress, no_progress
from ..rotations import quaternion_multiply
from .coverage import Coverage, coverage
from .database import MotionDatabase, Residuals
from .kernel import KernelModel
from .kernel_fit import fit_kernel
from .live import LiveAnswer, LiveMatcher
from .match import MatchOptions, match_motion
from .so3 import quaternion_conjugate, quaternion_exp, quaternion_log

LEAST_CLIPS = 4  # with four the kernel was better than matching in 13 of 15 trials, with three in 7
CAPTURED = np.radians(2.0)  # distance over which what the kernel misses loses its say
KNOWN = np.radians(35.0)  # up to here a prediction is trusted
FADE = np.radians(20.0)  # how fast bones go back to their joints beyond


@dataclass(frozen=True)
class AutoPredictor:
    """Answers poses by the kernel, corrected towards the capture, or by matching where there is no kernel.

    database : of the captures; kernel : fitted to them, None for too few clips
    corrections : the database with what the kernel misses as values (without a kernel: the database itself)
    """

    database: MotionDatabase
    kernel: KernelModel | None
    corrections: MotionDatabase

    @staticmethod
    def of(
        database: MotionDatabase, kernel: KernelModel | None = None, progress: Progress = no_progress
    ) -> AutoPredictor:
        """The predictor of a database; a kernel that is not given is fitted, where there are clips enough.

        Raises
        ------
        RigError : the kernel given belongs to another rig
        """
        if kernel is None and database.clip_count >= LEAST_CLIPS:
            kernel = fit_kernel(database, progress=progress)
        corrections = database if kernel is None else kernel_corrections(database, kernel)
        return AutoPredictor(database, kernel, corrections)

    def predict(
        self,
        rotations: NDArray[np.floating],
        root_translations: NDArray[np.floating],
        fps: float | None = None,
        clips: NDArray[np.integer] | None = None,
        options: MatchOptions | None = None,
        progress: Progress = no_progress,
    ) -> Residuals:
        """Residuals of the outer bones for new poses of the joints.

        Parameters
        ----------
        rotations : (Q, J, 4) local quaternions wxyz; root_translations : (Q, 3) metres
        fps : frames a second of the query; None: those of the database
        clips : (Q,) motion each frame belongs to, contiguous; None: one motion
        """
        matched = match_motion(self.corrections, rotations, clips, fps, options, progress=progress)
        if self.kernel is None:
            predicted = None
        else:
            fps = fps or self.database.fps
            predicted = self.kernel.predict(rotations, root_translations, fps, clips)
        return blend(self.database, coverage(self.database, rotations), matched, predicted)


class AutoLive:
    """Answers one pose with the poses just before it, without any state between calls.

    fps : frames a second of the histories; None: those of the database
    """

    def __init__(self, predictor: AutoPredictor, fps: float | None = None) -> None:
        self.predictor = predictor
        self.fps = fps or predictor.database.fps
        self.matcher = LiveMatcher(predictor.corrections, fps=fps)

    def history(self, rotations: NDArray[np.floating], root_translations: NDArray[np.floating]) -> LiveAnswer:
        """Answer the last of poses (H, J, 4), (H, 3), the others being those just before it, oldest first.

        A single pose is answered as one held still. The kernel looks `layout.history` seconds back. Without
        one only the pose counts: few clips hardly ever hold a history like a new one, and what they have
        nearest to it lies far from the pose.
        """
        kernel = self.predictor.kernel
        held = kernel is None or len(rotations) == 1
        answer = self.matcher.pose(rotations[-1]) if held else self.matcher.history(rotations)
        predicted = (
            None if kernel is None else kernel.predict(rotations, root_translations, self.fps, rows=[-1])
        )
        residuals = blend(self.predictor.database, answer.coverage, answer.residuals, predicted)
        return LiveAnswer(residuals, answer.coverage)


def blend(
    database: MotionDatabase, covered: Coverage, matched: Residuals, predicted: Residuals | None
) -> Residuals:
    """Lay matched corrections on predictions (or take matched residuals as they are), and fade far outside.

    The distance that counts for a bone is the root mean square of those of the parts it listens to.
    """
    distance = np.sqrt(np.square(covered.parts, dtype=np.float64) @ database.bone_parts)  # (Q, B)
    answer = matched
    if predicted is not None:
        near = scaled(matched, np.exp(-((distance / CAPTURED) ** 2)))
        answer = Residuals(
            quaternion_multiply(predicted.rotations, near.rotations), predicted.offsets + near.offsets
        )
    if distance.max(initial=0) <= KNOWN:
        return answer
    return scaled(answer, np.exp(-((np.maximum(distance - KNOWN, 0) / FADE) ** 2)))


def scaled(residuals: Residuals, shares: NDArray[np.floating]) -> Residuals:
    """Shares (Q, B) of residuals: 1 leaves them, 0 gives rigid bones."""
    turns = quaternion_exp(shares[..., None] * quaternion_log(residuals.rotations))
    return Residuals(turns, shares[..., None] * residuals.offsets)


def kernel_corrections(database: MotionDatabase, kernel: KernelModel) -> MotionDatabase:
    """The database with what turns the kernel's prediction of each frame into the captured residual.

    Frames filled into gaps of the capture get the corrections next to them: those are a noise that no curve
    follows.
    """
    if kernel.values.bone_count != database.bone_count or len(kernel.layout.parents) != database.joint_count:
        raise RigError("The motion kernel was fitted to another rig; fit it again from the motion database.")
    rows = np.flatnonzero(database.captured)
    guess = kernel.predict(database.rotations, database.root_translations, database.fps, database.clips, rows)
    turns = quaternion_multiply(quaternion_conjugate(guess.rotations), database.residual_rotations[rows])
    everywhere = np.arange(database.frame_count)
    before = np.searchsorted(rows, everywhere, side="right") - 1
    after = np.minimum(before + (rows[before] < everywhere), len(rows) - 1)
    gap = np.maximum(rows[after] - rows[before], 1)
    share = ((everywhere - rows[before]) / gap)[:, None, None]

    def filled(values: NDArray[np.floating]) -> NDArray[np.floating]:
        return values[before] + share * (values[after] - values[before])

    return replace(
        database,
        residual_rotations=quaternion_exp(filled(quaternion_log(turns))).astype(np.float32),
        residual_offsets=filled(database.residual_offsets[rows] - guess.offsets).astype(np.float32),
    )
