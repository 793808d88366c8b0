"""Which splats a pose bends more than a linear map can follow.

A splat is carried by the linear map J about its centre. What it should follow is the blended motion F of
all its points. The error |F(y) - F(p) - J (y - p)| has a distribution over the splat; its 95 % quantile, a
length, is what these criteria find. A splat whose quantile is above epsilon must be split (GradRig).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..cloud import GaussianCloud
from ..deform.blend import check_fit
from ..progress import Progress, no_progress
from ..rotations import quaternion_to_matrix
from ..skinning.skin import Skin
from .blended_motion import Bones, LocalMotion, quadratic_forms
from .chunks import each_chunk, together
from .quantiles import CHI2, bound, eigenvalues, estimate, spread
from .sampled_error import probed_quantiles, sampled_quantiles
from .surroundings import Surroundings
from .weight_fields import StoredField, WeightField

F64 = NDArray[np.float64]
Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
CriterionName = Literal["hybrid", "estimate", "bound", "sampled", "paper"]

CHUNK = 6144  # splats at once
FEWEST, MOST, TOGETHER = 512, 2048, 1 << 17  # where weights are kept from pose to pose; splats times poses


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
        cloud, skin, transforms, field, origins, criterion, threshold, seed, progress=progress
    ).quantiles


@dataclass(frozen=True, eq=False)
class Errors:
    """How badly linear maps fit, the worst of all poses.

    quantiles : (N,) 95 % quantile of the error over the splat, metres
    overshoots : (N,) that over the largest standard deviation of the posed splat, what sticks out; 0 below
        the threshold and where not asked for
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
    overshoots: bool = False,
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
    overshoots : find these too
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
    centre = judge.centre
    bones = [Bones.of(pose, centre) for pose in poses]
    if judge.draws:
        judge.draw(bones, worst, overshoots, progress)
        return worst
    for number, each in enumerate(bones):
        with np.errstate(all="ignore"):
            errors = judge.quantiles(each, _within(progress, number / len(bones), 1 / len(bones)))
            judge.note(worst, np.arange(len(cloud)), each, errors, overshoots)
    return worst


def _within(progress: Progress, start: float, size: float) -> Progress:
    return lambda stage, fraction: progress(stage, start + size * fraction)


@dataclass(frozen=True, eq=False)
class _Judge:
    """Judges one cloud under one pose after another; parameters as for `worst_errors`."""

    cloud: GaussianCloud
    skin: Skin
    field: WeightField
    rows: Ints
    criterion: CriterionName
    threshold: float
    seed: int

    @property
    def centre(self) -> F64:
        """Return the middle of all finite positions, (3,)."""
        finite = self.cloud.positions[np.isfinite(self.cloud.positions).all(axis=1)]
        return finite.mean(axis=0, dtype=np.float64) if len(finite) else np.zeros(3)

    def quantiles(self, bones: Bones, progress: Progress) -> NDArray[np.float32]:
        """Return the 95 % quantiles of the error, (N,); 0 where it is not finite."""
        found = self._first_look(bones, progress)
        doubtful = np.flatnonzero(found > self.threshold)
        found[doubtful] = np.minimum(found[doubtful], self._closed_form(bones, doubtful, progress))
        return np.nan_to_num(found, nan=0, posinf=0).astype(np.float32)

    @property
    def draws(self) -> bool:
        """Whether errors are found at points of the splats (`draw`), not in closed form (`quantiles`)."""
        if self.criterion == "hybrid":
            return not isinstance(self.field, StoredField)
        return self.criterion in ("sampled", "paper")

    def draw(self, poses: list[Bones], worst: Errors, overshoots: bool, progress: Progress) -> None:
        """Find the errors at points of the splats in all poses; the field is asked once for all of them."""
        if isinstance(self.field, StoredField):
            self.field.hessians(self.rows, progress)
        keep = len(poses) > 1 and self.criterion != "paper"
        order = together(self.cloud.positions)

        def work(part: slice) -> None:
            rows = order[part]
            positions = self.cloud.positions[rows].astype(np.float64)
            around = Surroundings(positions, self._axes(rows), self.rows[rows], self.field, keep)
            with np.errstate(all="ignore"):
                for bones in poses:
                    errors = np.nan_to_num(self._at_points(around, bones, part.start), nan=0, posinf=0)
                    self.note(worst, rows, bones, errors.astype(np.float32), overshoots)

        size = min(max(TOGETHER // len(poses), FEWEST), MOST) if keep else CHUNK
        each_chunk(work, len(self.cloud), size, progress, "Sample bent splats")

    def _at_points(self, around: Surroundings, bones: Bones, start: int) -> F64:
        if self.criterion == "hybrid":
            return probed_quantiles(around, bones, self.threshold)
        if self.criterion == "sampled":
            return sampled_quantiles(around, bones)
        return sampled_quantiles(around, bones, 512, np.random.default_rng((self.seed, start)))

    def note(
        self,
        worst: Errors,
        rows: Ints,
        bones: Bones,
        errors: NDArray[np.float32],
        overshoots: bool,
    ) -> None:
        """Let the worst of some splats follow the errors in one pose, and what sticks out if asked for."""
        worst.quantiles[rows] = np.maximum(worst.quantiles[rows], errors)
        if not overshoots:
            return
        failing = np.flatnonzero(errors > self.threshold)
        own = rows[failing]
        reach = np.nan_to_num(errors[failing] / self._sizes(bones, own))
        worst.overshoots[own] = np.maximum(worst.overshoots[own], reach)

    def _sizes(self, bones: Bones, rows: Ints) -> F64:
        """Return the largest standard deviation of posed splats, (R,)."""
        found = np.empty(len(rows))

        def work(part: slice) -> None:
            own = rows[part]
            axes, weights, gradients = self._axes(own), self.skin.weights[own], self.skin.gradients[own]
            posed = axes + self._motion(bones, own).jacobians(weights, gradients) @ axes
            largest = eigenvalues(np.swapaxes(posed, 1, 2) @ posed)[:, 0]
            found[part] = np.sqrt(np.maximum(largest, 0))

        each_chunk(work, len(found), CHUNK)
        return found

    def _axes(self, rows: slice | Ints) -> F64:
        """Return Q diag(s), (C, 3, 3)."""
        axes = quaternion_to_matrix(self.cloud.rotations[rows]) * self.cloud.scales[rows, None, :]
        return axes.astype(np.float64)

    def _motion(self, bones: Bones, rows: slice | Ints) -> LocalMotion:
        skin = self.skin
        positions = self.cloud.positions[rows].astype(np.float64)
        return LocalMotion.at(bones, positions, skin.indices[rows], skin.weights[rows])

    def _first_look(self, bones: Bones, progress: Progress) -> F64:
        """Return cautious errors (N,) from what each splat knows itself; 0 where its bones move as one."""
        found = np.zeros(len(self.cloud))
        bend = self._steepest**2

        def work(part: slice) -> None:
            rows = part.start + self._bent(bones, part)
            motion = self._motion(bones, rows)
            gradients = self.skin.gradients[rows].astype(np.float64)
            spreads, _ = spread(quadratic_forms(motion, self._axes(rows), gradients))
            reach = self.cloud.scales[rows].max(axis=1).astype(np.float64) ** 2
            used = self.skin.weights[rows] > 0
            apart = np.where(used, np.sqrt((motion.apart**2).sum(axis=2)), 0).sum(axis=1)
            found[rows] = bound(spreads) + 0.5 * CHI2[2] * bend * reach * apart

        each_chunk(work, len(found), CHUNK, progress, "Find bent splats")
        return np.nan_to_num(found, nan=0, posinf=0)

    def _bent(self, bones: Bones, part: slice) -> NDArray[np.intp]:
        """Return which splats of a part have bones that move against each other: a pose often turns few."""
        kinds = bones.kinds[self.skin.indices[part]]
        return np.flatnonzero((self._used[part] & (kinds != kinds[:, :1])).any(axis=1))

    @cached_property
    def _used(self) -> NDArray[np.bool_]:
        """Say which bones (N, K) move a splat."""
        return (self.skin.weights > 0) | self.skin.gradients.any(axis=2)

    @cached_property
    def _steepest(self) -> float:
        """Return a gradient, 1/m, that hardly any splat exceeds, twice: second derivatives of a soft step are
        at most four times the square of the steepest first."""
        few = self.skin.gradients[:: max(len(self.skin) // 20000, 1)]
        norms = np.linalg.norm(few, axis=2).max(axis=1, initial=0)
        return 2 * float(np.quantile(norms, 0.999)) if len(norms) else 0.0

    def _closed_form(self, bones: Bones, rows: Ints, progress: Progress) -> F64:
        """Return the quantiles (R,) of the second-order errors of splats ``rows``."""
        field, found = self.field, np.empty(len(rows))
        hessians = field.hessians(self.rows[rows], progress) if isinstance(field, StoredField) else None

        def work(part: slice) -> None:
            own = rows[part]
            gradients = self.skin.gradients[own].astype(np.float64)
            second = None if hessians is None else hessians[part].astype(np.float64)
            forms = quadratic_forms(self._motion(bones, own), self._axes(own), gradients, second)
            spreads, mean_square = spread(forms)
            found[part] = bound(spreads) if self.criterion == "bound" else estimate(spreads, mean_square)

        each_chunk(work, len(rows), CHUNK, progress, "Find bent splats")
        return found
