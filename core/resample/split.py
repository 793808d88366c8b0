"""Splats replaced by their children: shapes, colours and weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..cloud import GaussianCloud
from ..rotations import quaternion_to_matrix
from ..skinning.skin import Skin
from ..skinning.weights import truncate
from .chunks import each_chunk
from .dictionary import Dictionary
from .grid import CHILDREN
from .lookup import LookupMode, look_up
from .weight_fields import WeightField

F32 = NDArray[np.float32]
Ints = NDArray[np.integer]
CHUNK = 8192


@dataclass(frozen=True, eq=False)
class Shapes:
    """Children of R splats, the five of each one after the other.

    positions, scales : (5 R, 3); opacities : (5 R,)
    """

    positions: F32
    scales: F32
    opacities: F32


def child_shapes(
    cloud: GaussianCloud, rows: Ints, dictionary: Dictionary, mode: LookupMode = "nearest"
) -> Shapes:
    """Return the children of splats ``rows`` (R,).

    A child stands at p + Q diag(s) x and has the scales s c along its parent's axes, for offset x and
    deviations c of the dictionary, so that it is in every direction as large as its parent asks for.
    """
    positions, scales = (
        np.empty((len(rows), CHILDREN, 3), np.float32),
        np.empty((len(rows), CHILDREN, 3), np.float32),
    )
    opacities = np.empty((len(rows), CHILDREN), np.float32)

    def work(part: slice) -> None:
        own = rows[part]
        order = np.argsort(-cloud.scales[own], axis=1, kind="stable")
        sorted_scales = np.take_along_axis(cloud.scales[own], order, axis=1)
        found = look_up(dictionary, sorted_scales, cloud.opacities[own], mode)
        # Back to the order in which the splat names its axes.
        place = np.argsort(order, axis=1)[:, None, :]
        offsets = np.take_along_axis(found.offsets, place, axis=2) * cloud.scales[own, None]
        turns = quaternion_to_matrix(cloud.rotations[own])
        positions[part] = cloud.positions[own, None] + offsets @ np.swapaxes(turns, 1, 2)
        scales[part] = np.take_along_axis(found.deviations, place, axis=2) * cloud.scales[own, None]
        opacities[part] = found.opacities

    each_chunk(work, len(rows), CHUNK)
    return Shapes(positions.reshape(-1, 3), scales.reshape(-1, 3), opacities.reshape(-1))


def split_cloud(
    cloud: GaussianCloud, rows: Ints, dictionary: Dictionary, mode: LookupMode = "nearest"
) -> tuple[GaussianCloud, NDArray[np.int32]]:
    """Return the cloud with splats ``rows`` replaced by their children, and each splat's parent.

    Children take their parent's place in the order, and its rotation and colours; all others stay bit by bit.

    Parameters
    ----------
    rows : (R,) ascending, each once

    Returns
    -------
    cloud : N + 4 R splats
    parents : (N + 4 R,) row of the splat each comes from
    """
    shapes = child_shapes(cloud, rows, dictionary, mode)
    repeats = np.ones(len(cloud), np.int64)
    repeats[rows] = CHILDREN
    parents = np.repeat(np.arange(len(cloud), dtype=np.int32), repeats)
    children = np.flatnonzero(repeats[parents] > 1)
    result = cloud.take(parents)
    for name in ("positions", "scales", "opacities"):
        getattr(result, name)[children] = getattr(shapes, name)
    return result, parents


def split_skin(
    skin: Skin, field: WeightField, positions: F32, parents: NDArray[np.int32], origins: Ints
) -> Skin:
    """Return the skin of a split cloud: children get the field's weights and gradients at their own centres.

    Parameters
    ----------
    skin : of the cloud before
    positions : (M, 3) of the cloud after; parents : (M,) from `split_cloud`
    origins : (M,) the field's row of each splat
    """
    result = skin.take(parents)
    counts = np.bincount(parents, minlength=len(skin))
    new = np.flatnonzero(counts[parents] > 1)

    def work(part: slice) -> None:
        rows = new[part]
        indices, weights, gradients = field(positions[rows], origins[rows])
        indices, weights, gradients = _fitted(indices, weights, gradients, skin.influences)
        result.indices[rows], result.weights[rows], result.gradients[rows] = indices, weights, gradients

    each_chunk(work, len(new), CHUNK)
    return result


def _fitted(indices: Ints, weights: NDArray, gradients: NDArray, count: int) -> tuple[Ints, NDArray, NDArray]:
    """Return the strongest ``count`` influences, strongest first, padded with none."""
    indices = np.asarray(indices, np.int32)
    if indices.shape[1] > count:
        indices, weights, gradients, _ = truncate(indices, weights, gradients, count)
    unsorted = np.flatnonzero((weights[:, 1:] > weights[:, :-1]).any(axis=1))
    if len(unsorted):
        order = np.argsort(-weights[unsorted], axis=1, kind="stable")
        indices, weights, gradients = indices.copy(), weights.copy(), gradients.copy()
        indices[unsorted] = np.take_along_axis(indices[unsorted], order, axis=1)
        weights[unsorted] = np.take_along_axis(weights[unsorted], order, axis=1)
        gradients[unsorted] = np.take_along_axis(gradients[unsorted], order[..., None], axis=1)
    lack = ((0, 0), (0, count - indices.shape[1]))
    return np.pad(indices, lack), np.pad(weights, lack), np.pad(gradients, (*lack, (0, 0)))
