"""Which bones move a splat, how strongly, and how that strength changes in space."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import RigError
from ..progress import Progress, no_progress
from .weights import complete, merge_duplicates, normalize, truncate

STATIC = -1  # the bone that never moves
MAX_INFLUENCES = 4


@dataclass(frozen=True)
class Skin:
    """K influences on each of N splats.

    indices : (N, K) int32, bones, strongest first; -1 is the static bone, whose transform is the identity
    weights : (N, K) float32, >= 0, rows sum to 1 (unused slots: index 0, weight 0, gradient 0)
    gradients : (N, K, 3) float32, spatial gradients of the *normalised* weights at the rest positions, 1/m;
        they sum to 0 over K
    notes : one sentence each on what was repaired, for the user's report
    """

    indices: NDArray[np.int32]
    weights: NDArray[np.float32]
    gradients: NDArray[np.float32]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = self.indices.shape
        if len(shape) != 2 or self.weights.shape != shape or self.gradients.shape != (*shape, 3):
            raise ValueError(
                f"skin arrays disagree: indices {shape}, weights {self.weights.shape}, "
                f"gradients {self.gradients.shape}"
            )

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def influences(self) -> int:
        """Number of influences K."""
        return self.indices.shape[1]

    def take(self, rows: NDArray[np.bool_] | NDArray[np.integer]) -> Skin:
        """Return the skin of the given rows (mask (N,) or indices (M,))."""
        return replace(
            self, indices=self.indices[rows], weights=self.weights[rows], gradients=self.gradients[rows]
        )


def make_skin(
    positions: NDArray[np.floating],
    indices: NDArray[np.integer],
    weights: NDArray[np.floating],
    gradients: NDArray[np.floating] | None = None,
    *,
    bone_count: int | None = None,
    max_influences: int = MAX_INFLUENCES,
    completion: Literal["static", "none"] = "none",
    root: int = STATIC,
    neighbours: int = 16,
    progress: Progress = no_progress,
) -> Skin:
    """Make a valid skin from weights of any origin.

    In this order: rows with a value that is not finite go to ``root``, negative weights count as 0,
    repeated bones are merged, missing weight is completed, the ``max_influences`` strongest are kept,
    weights are normalised and gradients with them (so that they sum to 0).

    Parameters
    ----------
    positions : (N, 3) rest positions, metres
    indices : (N, K) bones, -1 for none; slots without weight may hold any index in range
    weights : (N, K) >= 0, any sum
    gradients : (N, K, 3) gradients of ``weights`` as given, 1/m; None estimates them from the final weights
        by moving least squares (`weight_gradients`, needs scipy)
    bone_count : check indices against it
    max_influences : K of the result at most
    completion : "static" gives what a row's weights lack to 1 to ``root``, so that a small weight is a small
        influence; "none" normalises, so that one bone however weak takes the splat wholly
    root : bone that takes unweighted splats and, with "static", missing weight; -1 stays where it is
    neighbours : nearest points used to estimate gradients
    progress : told of the estimate's progress

    Raises
    ------
    RigError : arrays disagree, or an index is out of range
    """
    indices, weights = np.asarray(indices, dtype=np.int32), np.asarray(weights, dtype=np.float64)
    given = None if gradients is None else np.asarray(gradients, dtype=np.float64)
    _check(positions, indices, weights, given, bone_count, root)
    notes: list[str] = []
    dw = np.zeros((*weights.shape, 3)) if given is None else given
    broken = ~(np.isfinite(weights).all(axis=1) & np.isfinite(dw).all(axis=(1, 2)))
    weights, dw = np.where(broken[:, None], 0, weights), np.where(broken[:, None, None], 0, dw)
    if broken.any():
        notes.append(f"{broken.sum()} splats had weights that are not finite and stay with the root")
    negative = weights < 0
    if negative.any():
        notes.append(f"{negative.sum()} negative weights were set to 0")
        weights, dw = np.where(negative, 0, weights), np.where(negative[..., None], 0, dw)
    indices, weights, dw = merge_duplicates(indices, weights, dw)
    unweighted = weights.sum(axis=1) < 1e-6
    if (unweighted & ~broken).any():
        what = "stay at rest" if root == STATIC else "follow the root"
        notes.append(f"{(unweighted & ~broken).sum():,} splats without weights {what}")
    indices, weights, dw = complete(
        indices, weights, dw, root, rows=unweighted if completion == "none" else None
    )
    weights, dw = normalize(weights, dw)
    indices, weights, dw, lost = truncate(indices, weights, dw, max_influences)
    if lost.max(initial=0) > 1e-6:
        notes.append(
            f"{(lost > 1e-6).sum():,} splats had more than {max_influences} influences; the strongest stay "
            f"and take over up to {100 * lost.max():.1f} % of a splat's weight"
        )
    if given is None and len(indices):
        from .gradients import weight_gradients

        dw = weight_gradients(positions, indices, weights, neighbours, progress=progress)
    f32 = np.float32
    return Skin(indices, unit_sum(weights.astype(f32)), np.ascontiguousarray(dw, dtype=f32), tuple(notes))


def unit_sum(weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Give what rounding took to the strongest influence, the first."""
    weights = np.ascontiguousarray(weights)
    if weights.size:
        weights[:, 0] = 1 - weights[:, 1:].sum(axis=1)
    return weights


def _check(
    positions: NDArray[np.floating],
    indices: NDArray[np.int32],
    weights: NDArray[np.float64],
    gradients: NDArray[np.float64] | None,
    bone_count: int | None,
    root: int,
) -> None:
    n = len(positions)
    if indices.ndim != 2 or len(indices) != n or weights.shape != indices.shape:
        raise RigError(
            f"The weights do not fit the cloud: {n} splats, indices {indices.shape}, weights "
            f"{weights.shape}; build the rig again for this cloud"
        )
    if gradients is not None and gradients.shape != (*indices.shape, 3):
        raise RigError(f"The weight gradients have shape {gradients.shape}, expected {(*indices.shape, 3)}")
    limit = np.iinfo(np.int32).max if bone_count is None else bone_count
    wrong = (indices < STATIC) | (indices >= limit)
    if wrong.any():
        row = int(np.argmax(wrong.any(axis=1)))
        raise RigError(
            f"Splat {row} is weighted to bone {indices[row][wrong[row]][0]}, but the rig has bones 0 to "
            f"{limit - 1}; build the rig again for this cloud"
        )
    if root >= limit or root < STATIC:
        raise RigError(f"The root bone {root} does not exist; the rig has bones 0 to {limit - 1}")
