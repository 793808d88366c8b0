"""What a resampling starts from, as plain data, and the computation itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import bpy
import numpy as np
from numpy.typing import NDArray

from ...core.cloud import GaussianCloud
from ...core.errors import RigError
from ...core.progress import Progress
from ...core.selection.skin import SkinField, stack_to_skin
from ...core.skinning.skin import Skin
from ..attributes import read_attribute, splats
from ..bind import bind_is_stale
from ..point_cloud import point_cloud_to_cloud
from ..skin_attributes import influence_count
from ..weights.layers import padded, stored_stack
from .checks import world_scale
from .digest import weights_digest
from .start import whole_skin, whole_start
from .whole import whole_of

if TYPE_CHECKING:
    from ...core.resample.resample import Resampled
    from ...core.selection.layer import LayerStack

F64 = NDArray[np.floating]
Mode = Literal["POSE", "ACTION", "LIMITS", "UNIFORM"]


@dataclass(frozen=True, eq=False)
class WholeSplats:
    """N whole splats at rest with their weights as they are now.

    name : of the object
    base : the weights that layers start from, None where they start from nothing or there are none
    stack : the layers, None where there are none
    metre : length of a metre of the world in the object's space
    digest : of the weights, to see whether they changed meanwhile
    """

    name: str
    cloud: GaussianCloud
    skin: Skin
    base: Skin | None
    stack: LayerStack | None
    metre: float
    digest: str

    @property
    def field(self) -> SkinField | None:
        """The weights anywhere, None where nothing but the stored ones is known."""
        if self.stack is None or all(layer.muted for layer in self.stack.layers):
            return None
        positions = self.cloud.positions.astype(np.float64)
        return SkinField(self.stack, self.skin.influences, self.base, positions)


@dataclass(frozen=True, eq=False)
class Request:
    """What is to be resampled.

    transforms : (F, B, 3, 4) of the poses that matter, rest to posed; None splits every splat once
    epsilon : largest error, metres of the world; 0 finds one
    budget : most splats, times those there are
    """

    splats: WholeSplats
    transforms: F64 | None
    epsilon: float = 0.0
    budget: float = 3.0


@dataclass(frozen=True, eq=False)
class Answer:
    """Splats after resampling: what `apply` needs, and figures for reports.

    skin, base : weights of the M splats, and what their layers start from
    """

    request: Request
    found: Resampled
    skin: Skin
    base: Skin | None

    @property
    def counts(self) -> tuple[int, int, int]:
        """Splats before, how many of them are split, splats after."""
        before = len(self.request.splats.cloud)
        split = np.bincount(self.found.origins, minlength=before) > 1
        return before, int(split.sum()), len(self.found.cloud)

    def summary(self, verb: str) -> str:
        """Return "1,234 of 30,000 splats (4 %) split, 34,936 after, epsilon 0.01 m", or that none is."""
        before, split, after = self.counts
        if not split and (self.found.left or self.request.transforms is None):
            return f"None of {before:,} splats can be split"
        if not split and self.request.epsilon:
            return f"None of {before:,} splats is bent by more than {self.request.epsilon:.3g} m"
        if not split:
            return f"None of {before:,} splats sticks out enough to be split"
        share = f"{100 * split / before:.0f}" if 100 * split >= before or not split else "< 1"
        reached = "" if self.found.epsilon is None else f", epsilon {self.found.epsilon:.3g} m"
        return f"{split:,} of {before:,} splats ({share} %) {verb}, {after:,} after{reached}"


def read_whole(object: bpy.types.Object) -> WholeSplats:
    """Read what a resampling of a rigged object starts from: its whole splats, where it was resampled before.

    Raises
    ------
    RigError : no splats or weights, they do not fit the rig any more, or stand nowhere
    """
    data = splats(object)
    if not len(data.points):
        raise RigError(f"'{object.name}' has no splats to resample")
    if (stale := bind_is_stale(object)) is not None:
        raise RigError(stale)
    whole = whole_of(data)
    if not influence_count(data):
        raise RigError(f"'{object.name}' carries no skin weights; build a rig for it or bind it first")
    stack, start = stored_stack(data), whole_start(data)
    layered = stack is not None and bool(stack.layers)
    scale = world_scale(object)
    return WholeSplats(
        object.name,
        point_cloud_to_cloud(data if whole is None else whole),
        whole_skin(data, start),
        start if layered else None,
        stack if layered else None,
        1 / scale,
        weights_digest(data),
    )


def check_unchanged(object: bpy.types.Object, asked: WholeSplats, when: str) -> None:
    """Raise where splats or weights are not those any more that were read.

    Parameters
    ----------
    when : ends the sentence: while what was done, and what to do about it

    Raises
    ------
    RigError
    """
    data = splats(object)
    now = read_attribute(whole_of(data) or data, "position")
    same = np.array_equal(now, asked.cloud.positions, equal_nan=True)
    if not same or weights_digest(data) != asked.digest:
        raise RigError(f"The splats or weights of '{object.name}' changed {when}")


def solve(request: Request, progress: Progress) -> Answer:
    """Resample; touches no Blender data."""
    from ...core.resample.resample import ResampleOptions, resample, split_all

    whole = request.splats
    if request.transforms is None:
        found = split_all(whole.cloud, whole.skin, whole.field, budget=request.budget)
    else:
        options = ResampleOptions(request.epsilon or None, unit=whole.metre, budget=request.budget)
        poses = distinct(request.transforms)
        found = resample(whole.cloud, whole.skin, poses, options, whole.field, progress=progress)
    return Answer(request, found, *_weights(whole, found))


def distinct(poses: F64) -> F64:
    """Return the poses (F, B, 3, 4) without those that an earlier one repeats, as where a motion is held."""
    rows = np.round(np.reshape(poses, (len(poses), -1)), 6)
    _, first = np.unique(rows, axis=0, return_index=True)
    return poses[np.sort(first)]


def _weights(whole: WholeSplats, found: Resampled) -> tuple[Skin, Skin | None]:
    """Return the weights of the splats and of their base, as layers evaluate them afterwards too."""
    from ...core.resample.split import split_skin
    from ...core.resample.weight_fields import StoredField

    base = whole.base
    if base is not None:
        field = StoredField(whole.cloud.positions, base)
        base = split_skin(base, field, found.cloud.positions, found.origins, found.origins)
    if whole.stack is None:
        return found.skin, base
    positions = found.cloud.positions.astype(np.float64)
    return padded(stack_to_skin(whole.stack, positions, base=base)), base
