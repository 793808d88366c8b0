"""Partwise motion matching: new poses answered by captured bone motion, part by part and in short patches.

For every part of the skeleton and every short patch of the query the nearest captured patch is found; the
residuals that came with it are laid under the query; where patches and parts overlap, they are averaged. The
match depends on the poses alone, so the published iteration over a pyramid of time scales, which moves an
initial guess a share `step` of the way to those averages again and again, converges to the averages of the
finest scale; the default goes there at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import CaptureError
from ..progress import Progress, no_progress
from .database import MotionDatabase, Residuals, repaired_rotations
from .geodesic import KeySearch, window_rows
from .se3_mean import rotation_mean
from .so3 import geodesic_step
from .timeline import Timeline, clip_bounds, clip_lengths

I64 = NDArray[np.intp]
_BLOCK = 64


@dataclass(frozen=True)
class MatchOptions:
    """How to match.

    patch_length : frames of a patch, odd, at the database's rate
    window : weight of a patch's frames: "triangular" about its centre, "flat" (all alike), or "centre" alone
    blend : "closed": the averages themselves; "paper": `steps` moves towards them at each of `levels` scales
    levels, ratio : time scales of the pyramid, and how much shorter each is than the next finer
    step : share 0..1 of the way a move goes (lambda_alpha); 0 keeps the initial guess
    """

    patch_length: int = 7
    window: Literal["triangular", "flat", "centre"] = "triangular"
    blend: Literal["closed", "paper"] = "closed"
    levels: int = 5
    ratio: float = 0.75
    step: float = 0.5
    steps: int = 4

    def check(self) -> None:
        """Raise `CaptureError` naming the option that is out of range."""
        if self.patch_length < 1 or self.patch_length % 2 == 0:
            raise CaptureError(f"The patch length must be an odd number of frames, not {self.patch_length}.")
        if self.levels < 1 or self.steps < 0:
            raise CaptureError("Matching needs at least one pyramid level and no negative number of steps.")
        if not 0 < self.ratio < 1 or not 0 <= self.step <= 1:
            raise CaptureError("The pyramid's ratio and the step must lie between 0 and 1.")

    def offsets(self) -> I64:
        """(p,) frames of a patch relative to its centre."""
        reach = self.patch_length // 2
        return np.arange(-reach, reach + 1)

    def weights(self) -> NDArray[np.float64]:
        """(p,) weights of a patch's frames, summing to 1."""
        offsets = np.abs(self.offsets())
        if self.window == "centre":
            weights = (offsets == 0).astype(np.float64)
        elif self.window == "flat":
            weights = np.ones(len(offsets))
        else:
            weights = (offsets.max() + 1.0) - offsets
        return weights / weights.sum()


def match_motion(
    database: MotionDatabase,
    rotations: NDArray[np.floating],
    clips: NDArray[np.integer] | None = None,
    fps: float | None = None,
    options: MatchOptions | None = None,
    initial: Residuals | None = None,
    progress: Progress = no_progress,
) -> Residuals:
    """Residuals of the outer bones for new poses of the joints.

    Parameters
    ----------
    rotations : (Q, J, 4) local joint rotations wxyz; one that is not finite takes the frame before it
    clips : (Q,) motion each frame belongs to, contiguous; None: one motion
    fps : frames a second of the query; None: those of the database
    initial : where the iteration of the "paper" blend starts; None: rigid bones

    Returns
    -------
    Residuals of Q frames, float64. The same query gives the same answer.
    """
    options = options or MatchOptions()
    options.check()
    query = repaired_rotations(rotations)
    clips = np.zeros(len(query), np.int32) if clips is None else np.asarray(clips)
    if fps is not None and abs(fps / database.fps - 1) > 1e-3:
        reach = round(options.patch_length // 2 * fps / database.fps)  # patches last as long as before
        options = replace(options, patch_length=2 * reach + 1)
        database = at_rate(database, fps / database.fps)
    if not len(query):
        return Residuals.rigid(0, database.bone_count)
    if options.blend == "closed":
        return _assign(database, query, clips, options, progress)
    return _iterate(database, query, clips, options, initial, progress)


def at_rate(database: MotionDatabase, factor: float, least: int = 1) -> MotionDatabase:
    """The database at `factor` times its frame rate, clips of at least `least` frames."""
    lengths = clip_lengths(database.clips)
    timeline = Timeline.stretched(lengths, _scaled(lengths, factor, least))
    return replace(
        database,
        rotations=timeline.fill_rotations(database.rotations).astype(np.float32),
        root_translations=timeline.fill(database.root_translations),
        clips=timeline.clips,
        captured=(database.captured[timeline.sources] | (timeline.weights == 0)).all(axis=1),
        fps=database.fps * factor,
        residual_rotations=timeline.fill_rotations(database.residual_rotations).astype(np.float32),
        residual_offsets=timeline.fill(database.residual_offsets).astype(np.float32),
    )


def nearest_patches(
    database: MotionDatabase,
    query: NDArray[np.floating],
    clips: NDArray[np.integer],
    options: MatchOptions,
    progress: Progress = no_progress,
) -> I64:
    """Frame of the database (P, Q) whose patch is nearest to the patch around each query frame, per part."""
    search = KeySearch(
        database.rotations, database.clips, database.parts, options.offsets(), options.weights()
    )
    windows = window_rows(clips, search.offsets)
    rows = np.empty((len(database.parts), len(query)), np.intp)
    for first in range(0, len(query), _BLOCK):
        progress("Motion matching", first / len(query))
        block = slice(first, first + _BLOCK)
        rows[:, block] = search.nearest(query, windows[block], 1)[0][..., 0]
    return rows


def bone_samples(bone_parts: NDArray[np.floating]) -> tuple[I64, NDArray[np.float64]]:
    """Parts (B, n) that each bone listens to and their weights (B, n), padded with weight 0."""
    most = int((bone_parts > 0).sum(axis=0).max())
    parts = np.argsort(-bone_parts, axis=0, kind="stable")[:most].T
    return parts, np.take_along_axis(bone_parts.T, parts, 1).astype(np.float64)


def _assign(
    database: MotionDatabase,
    query: NDArray[np.floating],
    clips: NDArray[np.integer],
    options: MatchOptions,
    progress: Progress,
) -> Residuals:
    """Weighted means of the values of all patches and parts that cover a frame and a bone."""
    matched = nearest_patches(database, query, clips, options, progress)
    used = options.weights() > 0
    offsets, weights = options.offsets()[used], options.weights()[used]
    first, last = clip_bounds(database.clips)
    # The patch whose frame at an offset lies on frame f is centred at f - offset, if that is inside the clip.
    centres = np.arange(len(query))[:, None] - offsets
    own_first, own_last = clip_bounds(clips)
    inside = (centres >= own_first[:, None]) & (centres <= own_last[:, None])
    share = np.where(inside, weights, 0.0)
    share /= share.sum(axis=1, keepdims=True)
    match = matched[:, np.where(inside, centres, 0)]  # (P, Q, p)
    sources = np.clip(match + offsets, first[match], last[match])
    parts, part_weights = bone_samples(database.bone_parts)
    bones = np.arange(database.bone_count)[:, None]
    out = Residuals.rigid(len(query), database.bone_count)
    for start in range(0, len(query), _BLOCK):
        progress("Motion blending", start / len(query))
        block = slice(start, start + _BLOCK)
        rows = np.moveaxis(sources[:, block], 0, 1)[:, parts].reshape(
            -1, len(bones), parts.shape[1] * len(offsets)
        )
        mix = (part_weights[None, :, :, None] * share[block, None, None]).reshape(rows.shape)
        out.rotations[block] = rotation_mean(database.residual_rotations[rows, bones], mix)
        out.offsets[block] = np.einsum("qbn,qbna->qba", mix, database.residual_offsets[rows, bones])
    return out


def _iterate(
    database: MotionDatabase,
    query: NDArray[np.floating],
    clips: NDArray[np.integer],
    options: MatchOptions,
    initial: Residuals | None,
    progress: Progress,
) -> Residuals:
    """The published iteration, from the coarsest time scale to the finest.

    Each level's averages are stretched to the query's own length, so that nothing else than the moves changes
    the values.
    """
    now = initial or Residuals.rigid(len(query), database.bone_count)
    lengths = clip_lengths(clips)
    for level in reversed(range(options.levels)):
        factor = options.ratio**level
        coarse = at_rate(database, factor, options.patch_length)
        counts = _scaled(lengths, factor, options.patch_length)
        down, up = Timeline.stretched(lengths, counts), Timeline.stretched(counts, lengths)
        target = _assign(coarse, down.fill_rotations(query), down.clips, options, progress)
        turns, offsets = up.fill_rotations(target.rotations), up.fill(target.offsets)
        for _ in range(options.steps):
            now = Residuals(
                geodesic_step(now.rotations, turns, options.step),
                now.offsets + options.step * (offsets - now.offsets),
            )
    return now


def _scaled(lengths: NDArray[np.integer], factor: float, least: int) -> NDArray[np.intp]:
    """Frames (C,) of clips at `factor` times their rate; at the rate itself they stay as they are."""
    if factor == 1:
        return np.asarray(lengths, np.intp)
    return np.maximum(np.round((lengths - 1) * factor).astype(np.intp) + 1, least)
