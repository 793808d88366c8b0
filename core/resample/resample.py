"""Dictionary resampling: splats that poses bend too much are split, at rest, until all follow (GradRig)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ..cloud import GaussianCloud
from ..errors import RigError
from ..progress import Progress, no_progress
from ..skinning.skin import Skin
from .chunks import each_chunk
from .criterion import CriterionName, worst_errors
from .dictionary import Dictionary, load_dictionary
from .grid import CHILDREN
from .lookup import LookupMode
from .split import split_cloud, split_skin
from .weight_fields import StoredField, WeightField

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

# The paper's 1, 0.1, 0.01 and 0.001, and between: a tenth splits several times what hardly less would.
SEARCH = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
# The search ends when splats stick out by more than half their size so rarely (opacity-weighted mean).
CLEAN = 1e-3
MOST = 2**31 - 1  # splats, whatever the budget: origins are int32


@dataclass(frozen=True)
class ResampleOptions:
    """What to split.

    epsilon : largest error of a splat, metres (`criterion.py`); None tries 1, 0.5, 0.2, 0.1 and so on to
        0.001 (and further for clouds of less than 10 cm) until hardly anything sticks out
    relative : epsilon and min_size are relative to the radius of the cloud
    unit : length of a metre in the cloud's own space, where that is scaled
    criterion : how the error is found
    lookup : nearest entry of the dictionary, or between entries
    max_depth : a splat is split and its children again at most so often
    budget : the result has at most so many times the splats
    min_size : splats whose largest standard deviation is below stay whole, metres; tenths of it for clouds of
        less than 10 cm
    min_opacity : fainter splats stay whole
    """

    epsilon: float | None = None
    relative: bool = False
    unit: float = 1.0
    criterion: CriterionName = "hybrid"
    lookup: LookupMode = "nearest"
    max_depth: int = 4
    budget: float = 3.0
    min_size: float = 1e-4
    min_opacity: float = 0.05

    def check(self) -> None:
        """Raise `RigError` where an option is out of range."""
        if self.epsilon is not None and not self.epsilon > 0:
            raise RigError(f"Epsilon is {self.epsilon:g}, but an error must be above 0 metres.")
        for name, value, known in (
            ("criterion", self.criterion, get_args(CriterionName)),
            ("lookup", self.lookup, get_args(LookupMode)),
        ):
            if value not in known:
                raise RigError(f"There is no {name} '{value}'; use one of {', '.join(known)}.")
        if not (self.min_size >= 0 and self.min_opacity >= 0):
            raise RigError("The smallest size and opacity that are split must be 0 or more.")
        if not 0 < self.unit < float("inf"):
            raise RigError(
                f"A metre cannot be {self.unit:g} long in the cloud's space; use a length above 0."
            )
        if not 0 <= self.max_depth <= 255:
            raise RigError(f"The depth is {self.max_depth}, but must lie between 0 and 255.")
        if not self.budget >= 1:
            raise RigError(
                f"The budget is {self.budget:g}, but a cloud cannot become smaller; use 1 or more."
            )


@dataclass(frozen=True, eq=False)
class Resampled:
    """A resampled cloud and where it came from.

    cloud, skin : M splats; those not split stand bit by bit, children in their parent's place
    origins : (M,) int32, row of the first cloud each comes from
    depths : (M,) uint8, how often it was split, 0 for splats of the first cloud
    quantiles : (M,) float32, the errors that are left, metres (upper bounds where below epsilon)
    epsilon : the one that was reached, metres; None where nothing was asked of a pose
    left : splats that still fail
    passes : number of splats split in each pass
    spent : whether splats that fail stayed whole because the budget was spent
    held_back : whether splats still stick out, but the budget was too small for the next epsilon to be tried
    """

    cloud: GaussianCloud
    skin: Skin
    origins: NDArray[np.int32]
    depths: NDArray[np.uint8]
    quantiles: NDArray[np.float32]
    epsilon: float | None
    left: int
    passes: tuple[int, ...]
    spent: bool = False
    held_back: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know."""
        notes = []
        if self.left:
            if self.spent:
                why = "the budget is spent; a larger one splits more"
            else:
                why = "they are too small or too faint to be split, or were split often enough"
            notes.append(f"{self.left:,} splats still bend by more than {self.epsilon:g} m: {why}")
        if self.held_back:
            notes.append(
                f"Some splats still stick out; a larger budget, or an epsilon below {self.epsilon:g} m, "
                "splits more"
            )
        return tuple(notes)


@dataclass(frozen=True, eq=False)
class _State:
    cloud: GaussianCloud
    skin: Skin
    origins: NDArray[np.int32]
    depths: NDArray[np.uint8]
    quantiles: NDArray[np.float32]
    overshoots: NDArray[np.float32]
    passes: tuple[int, ...] = ()


def split_all(
    cloud: GaussianCloud,
    skin: Skin,
    field: WeightField | None = None,
    dictionary: Dictionary | None = None,
    lookup: LookupMode = "nearest",
    min_opacity: float = 0.05,
    budget: float = float("inf"),
) -> Resampled:
    """Split every splat once, whatever the pose ("uniform resampling").

    Parameters
    ----------
    cloud, skin : N splats at rest
    field : weights between splats; None takes what the skin implies, to first order
    dictionary : None: the shipped one
    lookup, min_opacity, budget : as in `ResampleOptions`

    Raises
    ------
    RigError : the budget is too small for that, or cloud and skin do not fit
    """
    _check_fit(cloud, skin)
    rows = np.flatnonzero(_splittable(cloud, 0, min_opacity))
    after = len(cloud) + (CHILDREN - 1) * len(rows)
    if after > budget * len(cloud):
        raise RigError(
            f"Splitting every splat once makes {after:,} of {len(cloud):,}, but a budget of {budget:g} "
            f"allows {int(budget * len(cloud)):,}; set it to {CHILDREN}, or split for poses"
        )
    field = StoredField(cloud.positions, skin) if field is None else field
    nothing = np.zeros(len(cloud), np.float32)
    origins, depths = np.arange(len(cloud), dtype=np.int32), np.zeros(len(cloud), np.uint8)
    state = _State(_without_colour(cloud), skin, origins, depths, nothing, nothing)
    state, _ = _split(state, rows, field, dictionary or load_dictionary(), lookup)
    return _result(state, cloud, None, 0)


def resample(
    cloud: GaussianCloud,
    skin: Skin,
    transforms: Floats,
    options: ResampleOptions | None = None,
    field: WeightField | None = None,
    dictionary: Dictionary | None = None,
    progress: Progress = no_progress,
) -> Resampled:
    """Split the splats that poses bend by more than epsilon, and their children, until all follow.

    The result is a rest cloud with its skin: it may be posed like the first one, and stays right for milder
    poses and what lies between. Weights that are edited afterwards call for a new one.

    Parameters
    ----------
    cloud, skin : N splats at rest
    transforms : (B, 3, 4) one pose, or (F, B, 3, 4) all poses that matter, rest -> pose
    options : None: the defaults
    field : weights between splats (a stack of selection layers); None takes what the skin implies
    dictionary : None: the shipped one
    progress : told several times a second

    Raises
    ------
    RigError : an option is out of range, or cloud, skin and transforms do not fit
    """
    options = options or ResampleOptions()
    options.check()
    _check_fit(cloud, skin)
    _check_poses(transforms)
    unit = radius(cloud.positions) if options.relative else options.unit
    finer = 0 if options.relative else finer_steps(radius(cloud.positions) / unit)
    search = (*SEARCH, *(step * 0.1 ** (k + 1) for k in range(finer) for step in SEARCH[-3:]))
    steps = [epsilon * unit for epsilon in (search if options.epsilon is None else (options.epsilon,))]
    loop = _Loop(
        transforms,
        options,
        StoredField(cloud.positions, skin) if field is None else field,
        dictionary or load_dictionary(),
        steps[-1],
        unit * options.min_size * 0.1**finer,
        int(min(MOST, options.budget * len(cloud))),
        progress,
    )
    state = loop.start(cloud, skin)
    reached, spent, held_back = steps[0], False, False
    for epsilon in steps:
        tried, whole = loop.run(state, epsilon)
        if not whole and epsilon != steps[0]:
            held_back = True
            break  # over budget: what the larger epsilon gave stands
        state, reached, spent = tried, epsilon, not whole
        if options.epsilon is None and _artefacts(state) < CLEAN:
            break
    left = int((state.quantiles > reached).sum())
    found = _result(state, cloud, reached if options.relative else reached / options.unit, left)
    return replace(found, spent=spent, held_back=held_back)


def finer_steps(reach: float) -> int:
    """Return how many powers of ten a cloud of that radius, metres, is smaller than 10 cm."""
    return max(int(np.ceil(-np.log10(reach) - 1e-9)) - 1, 0)


def radius(positions: Floats) -> float:
    """Return the largest distance of finite positions (N, 3) from the middle of their box; 1 for none."""
    finite = positions[np.isfinite(positions).all(axis=1)].astype(np.float64)
    if not len(finite):
        return 1.0
    middle = (finite.min(axis=0) + finite.max(axis=0)) / 2
    return float(np.linalg.norm(finite - middle, axis=1).max()) or 1.0


@dataclass(frozen=True, eq=False)
class _Loop:
    transforms: Floats
    options: ResampleOptions
    field: WeightField
    dictionary: Dictionary
    threshold: float
    min_size: float
    limit: int
    progress: Progress

    def start(self, cloud: GaussianCloud, skin: Skin) -> _State:
        """Return the cloud as it comes, judged."""
        origins, depths = np.arange(len(cloud), dtype=np.int32), np.zeros(len(cloud), np.uint8)
        cloud = _without_colour(cloud)
        quantiles, overshoots = self._judged(cloud, skin, origins)
        return _State(cloud, skin, origins, depths, quantiles, overshoots)

    def run(self, state: _State, epsilon: float) -> tuple[_State, bool]:
        """Split until nothing fails or may be split; say whether the budget was enough."""
        whole = True
        while True:
            rows = np.flatnonzero(
                (state.quantiles > epsilon)
                & (state.depths < self.options.max_depth)
                & _splittable(state.cloud, self.min_size, self.options.min_opacity)
            )
            room = max(self.limit - len(state.cloud), 0) // (CHILDREN - 1)
            if len(rows) > room:
                whole = False
                worst = np.argsort(-state.quantiles[rows], kind="stable")[:room]
                rows = np.sort(rows[worst])
            if not len(rows):
                return state, whole
            state = self._pass(state, rows)

    def _pass(self, state: _State, rows: Ints) -> _State:
        """Split splats and judge their children."""
        self.progress("Split splats", 0)
        state, new = _split(state, rows, self.field, self.dictionary, self.options.lookup)
        judged = self._judged(state.cloud.take(new), state.skin.take(new), state.origins[new])
        state.quantiles[new], state.overshoots[new] = judged
        return state

    def _judged(self, cloud: GaussianCloud, skin: Skin, origins: Ints) -> tuple[Floats, Floats]:
        found = worst_errors(
            cloud,
            skin,
            self.transforms,
            self.field,
            origins,
            self.options.criterion,
            self.threshold,
            overshoots=self.options.epsilon is None,
            progress=self.progress,
        )
        return found.quantiles, found.overshoots


def _split(
    state: _State, rows: Ints, field: WeightField, dictionary: Dictionary, lookup: LookupMode
) -> tuple[_State, Ints]:
    """Return the state with splats ``rows`` split, their children not judged yet, and the children's rows."""
    cloud, parents = split_cloud(state.cloud, rows, dictionary, lookup)
    origins = state.origins[parents]
    skin = split_skin(state.skin, field, cloud.positions, parents, origins)
    is_new = np.zeros(len(state.cloud), bool)
    is_new[rows] = True
    new = np.flatnonzero(is_new[parents])
    depths = state.depths[parents]
    depths[new] += 1
    quantiles, overshoots = state.quantiles[parents], state.overshoots[parents]
    passes = (*state.passes, len(rows))
    return _State(cloud, skin, origins, depths, quantiles, overshoots, passes), new


def _splittable(cloud: GaussianCloud, min_size: float, min_opacity: float) -> NDArray[np.bool_]:
    """Say which splats may be split: finite, not too small, not too faint."""
    finite = np.isfinite(cloud.positions).all(axis=1) & np.isfinite(cloud.rotations).all(axis=1)
    finite &= np.isfinite(cloud.scales).all(axis=1) & np.isfinite(cloud.opacities)
    largest = cloud.scales.max(axis=1, initial=0)
    return finite & (largest > 0) & (largest >= min_size) & (cloud.opacities >= min_opacity)


def _artefacts(state: _State) -> float:
    """Return the opacity-weighted mean of what sticks out of splats by more than half their size."""
    weights = np.nan_to_num(state.cloud.opacities.astype(np.float64))
    total = weights.sum()
    return float((weights * np.maximum(state.overshoots - 0.5, 0)).sum() / total) if total > 0 else 0.0


def _without_colour(cloud: GaussianCloud) -> GaussianCloud:
    """Return the cloud with nothing to carry from pass to pass that children share with their origin."""
    return replace(cloud, sh=np.zeros((len(cloud), 1, 3), np.float32))


def _rows(array: NDArray, rows: Ints) -> NDArray:
    """Return ``array[rows]``, on all cores."""
    result = np.empty((len(rows), *array.shape[1:]), array.dtype)

    def work(part: slice) -> None:
        result[part] = array[rows[part]]

    each_chunk(work, len(rows), 1 << 16)
    return result


def _result(state: _State, source: GaussianCloud, epsilon: float | None, left: int) -> Resampled:
    return Resampled(
        replace(state.cloud, sh=_rows(source.sh, state.origins)) if state.passes else source,
        state.skin,
        state.origins,
        state.depths,
        state.quantiles,
        epsilon,
        left,
        state.passes,
    )


def _check_poses(transforms: Floats) -> None:
    shape = np.shape(transforms)
    if len(shape) not in (3, 4) or shape[-2:] != (3, 4):
        raise RigError(f"Poses are (3, 4) matrices of bones, or frames of them; these are {shape}")
    if not np.isfinite(transforms).all():
        raise RigError("A pose holds values that are not finite; mend it, or leave its frame out")


def _check_fit(cloud: GaussianCloud, skin: Skin) -> None:
    if len(cloud) != len(skin):
        raise RigError(
            f"The skin has {len(skin)} rows but the cloud {len(cloud)} splats; build the rig for this cloud"
        )
