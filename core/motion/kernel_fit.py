"""Fit the kernel model of a motion database: its keys to one scale, the relevances, and the blend.

What no pose explains, the noise nu, is no other in each frame: where cloth lies aside, it does so for some
time, the more so where the clips are few and tell little about poses like theirs. So in the blend ``alpha =
(K + N)^-1 (V - mean)`` the noise N of frames of a clip is correlated (generalised least squares; Aitken
1936): a clip of many like frames counts for little more than one of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..progress import Progress, no_progress
from .database import MotionDatabase
from .kernel import KernelModel, KeyScaling, rational_quadratic, squared_distances
from .keys import F32, F64, KeyLayout, key_groups, motion_keys, moving_layout
from .relevance import FLOOR, HeldOutError, Relevance, fit_relevance, steps_for
from .values import ValueSpace

COMPONENTS = 60  # of the values, for the fit of the relevances
FIT_FRAMES = 900  # frames that the relevances are fitted on
MAX_CENTRES = 4000  # frames that the blend runs over
CORRELATED = 0.9  # share of the noise that lasts ...
LASTING = 4.0  # ... about so many ticks ...
FEW, MANY = 20, 40  # ... up to so many clips, and from so many on none of it
HEADROOM = 1.25  # how much longer than any captured one a group of a key may be


def fit_kernel(
    database: MotionDatabase, steps: int | None = None, progress: Progress = no_progress
) -> KernelModel:
    """Fit the kernel model to all captured frames of a database. Nothing is random: same input, same model.

    Parameters
    ----------
    steps : of the fit of single relevances; 0 keeps them alike; None: as many as the clips allow
    progress : called with the stage "Motion kernel"
    """
    main_joint = int(np.bincount(database.bone_joints, database.masses, database.joint_count).argmax())
    layout = moving_layout(
        database.parents, database.joint_positions, main_joint, database.up, database.rotations, database.fps
    )
    values = ValueSpace.of(database)
    times = np.arange(database.frame_count) / database.fps
    rows = np.flatnonzero(database.captured)
    keys = motion_keys(layout, database.rotations, database.root_translations, times, database.clips, rows)
    targets = values.embed(database.residuals[rows])
    return fit_model(layout, values, keys, targets, database.clips[rows], times[rows], steps, progress)


def fit_model(
    layout: KeyLayout,
    values: ValueSpace,
    keys: F32,
    targets: F32,
    clips: NDArray[np.integer],
    times: F64,
    steps: int | None = None,
    progress: Progress = no_progress,
) -> KernelModel:
    """Fit the kernel model to raw keys (F, D), values (F, 12 B), their clips (F,) and times (F,), seconds."""
    groups, channels, kinds = key_groups(layout)
    scaling = _scaling(keys, groups)
    scaled = scaling(keys)
    mean = targets.mean(axis=0)
    some = _spread_over(np.arange(len(keys)), FIT_FRAMES)
    measure = HeldOutError(
        scaled[some], _components(targets - mean, some), _held_out(clips[some]), groups, channels, kinds
    )
    start = Relevance.start(int(channels.max()) + 1, int(kinds.max()) + 1)
    if steps is None:
        steps = steps_for(len(np.unique(clips)))
    relevance, error = fit_relevance(measure, start, steps, progress)
    shape, scale, noise = (float(x) for x in np.exp(relevance.numbers))
    nonlinear = np.exp(relevance.channels[channels] + relevance.kinds[kinds])[groups].astype(np.float32)
    straight = np.exp(relevance.channels[channels] + relevance.linear[kinds])[groups].astype(np.float32)
    rows = _spread_over(np.arange(len(keys)), MAX_CENTRES)
    centres, lines = scaled[rows] * nonlinear, scaled[rows] * straight
    gram = (
        np.float32(scale) * rational_quadratic(squared_distances(centres, centres), shape) + lines @ lines.T
    )
    gram = gram.astype(np.float64)
    add_noise(gram, noise + FLOOR, clips[rows], times[rows] / layout.tick)
    blend = np.linalg.solve(gram, (targets[rows] - mean).astype(np.float64)).astype(np.float32)
    linear = (straight[:, None] * (lines.T @ blend)).astype(np.float32)
    return KernelModel(layout, scaling, values, nonlinear, centres, blend, linear, mean, shape, scale, error)


def _scaling(keys: F32, groups: NDArray[np.intp]) -> KeyScaling:
    means = keys.mean(axis=0)
    norms = np.sqrt(np.bincount(groups, keys.var(axis=0))) + 1e-3
    scales = (1 / norms)[groups].astype(np.float32)
    endless = np.full(len(norms), np.inf, np.float32)
    scaled = KeyScaling(means, scales, groups.astype(np.int32), endless)(keys)
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    longest = np.sqrt(np.add.reduceat(scaled * scaled, starts, axis=1)).max(axis=0)
    return KeyScaling(means, scales, groups.astype(np.int32), (HEADROOM * longest).astype(np.float32))


def add_noise(gram: F64, noise: float, clips: NDArray[np.integer], ticks: F64) -> None:
    """Add noise of this variance, correlated within clips (F,) by time (F,), to a matrix (F, F) in place."""
    names = np.unique(clips)
    lasting = CORRELATED * noise * float(np.interp(len(names), (FEW, MANY), (1.0, 0.0)))
    gram[np.diag_indices_from(gram)] += noise - lasting
    for clip in names:
        block = np.flatnonzero(clips == clip)
        apart = (ticks[block, None] - ticks[block]) / LASTING
        gram[np.ix_(block, block)] += lasting * np.exp(-0.5 * apart**2)


def _components(values: F32, rows: NDArray[np.intp]) -> F64:
    """Principal components (R, P) of the values (F, V) at some rows: what the relevances are fitted to."""
    chosen = values[rows].astype(np.float64)
    _, axes = np.linalg.eigh(chosen.T @ chosen)
    return chosen @ axes[:, -COMPONENTS:]


def _spread_over(rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Every k-th row, so that at most so many remain."""
    return rows[:: -(-len(rows) // most)]


def _held_out(clips: NDArray[np.integer], least: int = 4) -> list[NDArray[np.intp]]:
    """Rows to hold out together: the clips, or stretches of them where there are but few."""
    names = np.unique(clips, return_inverse=True)[1]
    if names.max() + 1 < least:
        names = np.arange(len(clips)) * min(2 * least, len(clips)) // len(clips)
    return [np.flatnonzero(names == name) for name in np.unique(names)]
