"""Which splats a pose bends more than a linear map can follow.

A splat is carried by the linear map J about its centre. What it should follow is the blended motion F of
all its points. The error |F(y) - F(p) - J (y - p)| has a distribution over the splat; its 95 % quantile, a
length, is what these criteria find. A splat whose quantile is above epsilon must be split (GradRig).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..cloud import GaussianCloud
from ..deform.blend import check_fit
from ..progress import Progress, no_progress
from ..rotations import quaternion_to_matrix
from ..skinning.skin import Skin
from .blended_motion import Bones, LocalMotion, quadratic_forms
from .quantiles import CHI2, bound, eigenvalues, estimate, spread
from .sampled_error import PROBES, residuals, sampled_quantiles
from .weight_fields import StoredField, WeightField

F64 = NDArray[np.float64]
Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
CriterionName = Literal["hybrid", "estimate", "bound", "sampled", "paper"]

CHUNK = 4096
# A field is sampled where the bound, or the error at its probes, exceeds this part of the threshold.
CAUTION = 0.25


def affine_errors(
    cloud: GaussianCloud,
    skin: Skin,
    transforms: Floats,
    field: WeightField | None = None,
    origins: Ints | None = None,
    criterion: CriterionName = "hybrid",
    threshold: float = 0.0,
    seed: int = 0,
    progress: Progress = no_progress,
) -> NDArray[np.float32]:
    """Return the 95 % quantile of the error of each splat's linear map, (N,), metres: the worst of all poses.

    Parameters as for `worst_errors`.
    """
    return worst_errors(
        cloud, skin, transforms, field, origins, criterion, threshold, seed, progress
    ).quantiles


@dataclass(frozen=True, eq=False)
class Errors:
    """How badly linear maps fit, the worst of all poses.

    quantiles : (N,) 95 % quantile of the error over the splat, metres
    overshoots : (N,) that over the largest standard deviation of the posed splat, what sticks out; 0 below
        the threshold
    """

    quantiles: NDArray[np.float32]
    overshoots: NDArray[np.float32]


def worst_errors(
    cloud: GaussianCloud,
    skin: Skin,
    transforms: Floats,
    field: WeightField | None = None,
    origins: Ints | None = None,
    criterion: CriterionName = "hybrid",
    threshold: float = 0.0,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Errors:
    """Return the errors of each splat's linear map, the worst of all poses.

    Parameters
    ----------
    cloud : N splats at rest, in the space of the transforms
    skin : N rows
    transforms : (F, B, 3, 4) or (B, 3, 4), rest -> pose
    field : weights between splats; None takes what the skin implies (`StoredField`)
    origins : (N,) the field's row of each splat; None: its own number
    criterion : "hybrid" estimates in closed form from a stored field, and samples any other field where it
        may matter; "estimate" is the closed form, "bound" a closed form that is never below the quantile of
        the second-order error; "sampled" draws 128 even points of every splat, "paper" 512 random ones
    threshold : errors surely below it are only bounded, which is much faster
    seed : of the random points
    progress : told of every chunk

    Raises
    ------
    RigError : skin and cloud, or skin and transforms, do not fit
    """
    poses = np.asarray(transforms, np.float64).reshape(-1, *np.shape(transforms)[-3:])
    check_fit(len(cloud), skin, poses.shape[1])
    field = StoredField(cloud.positions, skin) if field is None else field
    rows = np.arange(len(cloud)) if origins is None else origins
    judge = _Judge(cloud, skin, field, rows, criterion, threshold, seed)
    worst = Errors(np.zeros(len(cloud), np.float32), np.zeros(len(cloud), np.float32))
    for number, pose in enumerate(poses):
        errors, sizes = judge.judged(pose, _within(progress, number / len(poses), 1 / len(poses)))
        np.maximum(worst.quantiles, errors, out=worst.quantiles)
        overshoots = np.where(errors > threshold, errors, 0) / np.where(sizes > 0, sizes, np.inf)
        np.maximum(worst.overshoots, overshoots, out=worst.overshoots)
    return worst


def _within(progress: Progress, start: float, size: float) -> Progress:
    return lambda stage, fraction: progress(stage, start + size * fraction)


class _Judge:
    """Judges one cloud under one pose after another."""

    def __init__(
        self,
        cloud: GaussianCloud,
        skin: Skin,
        field: WeightField,
        rows: Ints,
        criterion: CriterionName,
        threshold: float,
        seed: int,
    ) -> None:
        self.cloud, self.skin, self.field, self.rows = cloud, skin, field, rows
        self.criterion, self.threshold, self.seed = criterion, threshold, seed
        self.stored = isinstance(field, StoredField)
        counts = {"paper": 512, "sampled": 128, "hybrid": 0 if self.stored else 128}
        self.samples = counts.get(criterion, 0)
        finite = cloud.positions[np.isfinite(cloud.positions).all(axis=1)]
        self.centre = finite.mean(axis=0, dtype=np.float64) if len(finite) else np.zeros(3)

    def judged(self, pose: Floats, progress: Progress) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the quantiles under one pose, 0 where it is not finite, and the largest posed deviations."""
        bones = Bones.of(pose, self.centre)
        with np.errstate(all="ignore"):
            found, sizes = self._first_look(bones, progress)
            found = np.nan_to_num(found, nan=0, posinf=0)
            if not self.stored:  # other bones may come in beside the centre, of which the splat knows nothing
                doubtful = np.arange(len(found))
            else:
                doubtful = np.flatnonzero(found > (0 if self.samples else self.threshold))
            if self.samples:
                found[doubtful] = self._sampled(bones, doubtful, found[doubtful], progress)
            else:
                found[doubtful] = np.minimum(found[doubtful], self._closed_form(bones, doubtful, progress))
            found = np.nan_to_num(found, nan=0, posinf=0)
            return found.astype(np.float32), np.nan_to_num(sizes, nan=0, posinf=0).astype(np.float32)

    def _axes(self, rows: slice | Ints) -> Floats:
        turns = quaternion_to_matrix(self.cloud.rotations[rows].astype(np.float64))
        return turns * self.cloud.scales[rows, None, :]

    def _motion(self, bones: Bones, rows: slice | Ints) -> LocalMotion:
        skin = self.skin
        positions = self.cloud.positions[rows].astype(np.float64)
        return LocalMotion.at(bones, positions, skin.indices[rows], skin.weights[rows])

    def _first_look(self, bones: Bones, progress: Progress) -> tuple[F64, F64]:
        """Return cautious errors (N,) from what each splat knows itself, and its posed size (N,).

        The error is 0 where all bones of a splat move as one.
        """
        found, sizes = np.zeros(len(self.cloud)), np.zeros(len(self.cloud))
        bend = _steepest(self.skin) ** 2
        for rows in _chunks(len(self.cloud)):
            progress("Find bent splats", rows.start / len(self.cloud))
            motion = self._motion(bones, rows)
            gradients = self.skin.gradients[rows].astype(np.float64)
            axes = self._axes(rows)
            spreads, _ = spread(quadratic_forms(motion, axes, gradients))
            sizes[rows] = _largest_deviation(motion, self.skin.weights[rows], gradients, axes)
            reach = self.cloud.scales[rows].max(axis=1).astype(np.float64) ** 2
            used = (self.skin.weights[rows] > 0) | (gradients != 0).any(axis=2)
            apart = np.where(used, np.linalg.norm(motion.apart, axis=2), 0).sum(axis=1)
            found[rows] = bound(spreads) + 0.5 * CHI2[2] * bend * reach * apart
        return found, sizes

    def _closed_form(self, bones: Bones, rows: Ints, progress: Progress) -> F64:
        field, found = self.field, np.empty(len(rows))
        hessians = field.hessians(self.rows[rows], progress) if isinstance(field, StoredField) else None
        for part in _chunks(len(rows)):
            progress("Find bent splats", part.start / max(len(rows), 1))
            own = rows[part]
            gradients = self.skin.gradients[own].astype(np.float64)
            second = None if hessians is None else hessians[part].astype(np.float64)
            forms = quadratic_forms(self._motion(bones, own), self._axes(own), gradients, second)
            spreads, mean_square = spread(forms)
            found[part] = bound(spreads) if self.criterion == "bound" else estimate(spreads, mean_square)
        return found

    def _sampled(self, bones: Bones, rows: Ints, first: F64, progress: Progress) -> F64:
        """Sample splats ``rows``; with the hybrid criterion only where the field shows cause to."""
        found = np.empty(len(rows))
        for part in _chunks(len(rows)):
            progress("Sample bent splats", part.start / max(len(rows), 1))
            positions, axes = self.cloud.positions[rows[part]].astype(np.float64), self._axes(rows[part])
            own = self.rows[rows[part]]
            look = np.full(len(own), np.inf)
            if self.criterion == "hybrid":
                look = residuals(bones, positions, axes, own, self.field, PROBES).max(axis=1)
                look = np.maximum(look, first[part]) / CAUTION
            go = np.flatnonzero(look > self.threshold)
            seed = self.seed + part.start if self.criterion == "paper" else None
            sampled = sampled_quantiles(
                bones, positions[go], axes[go], own[go], self.field, self.samples, seed
            )
            look[go] = np.minimum(look[go], sampled)
            found[part] = look
        return found


def _largest_deviation(motion: LocalMotion, weights: Floats, gradients: Floats, axes: Floats) -> F64:
    """Return the largest standard deviation of each posed splat, (C,)."""
    posed = axes + motion.jacobians(weights, gradients) @ axes
    return np.sqrt(np.maximum(eigenvalues(np.swapaxes(posed, 1, 2) @ posed)[:, 0], 0))


def _chunks(count: int) -> Iterator[slice]:
    return (slice(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK))


def _steepest(skin: Skin) -> float:
    """Return a gradient, 1/m, that hardly any splat exceeds, twice: second derivatives of a soft step are at
    most four times the square of the steepest first."""
    norms = np.linalg.norm(skin.gradients[:: max(len(skin) // 20000, 1)], axis=2).max(axis=1, initial=0)
    return 2 * float(np.quantile(norms, 0.999)) if len(norms) else 0.0
