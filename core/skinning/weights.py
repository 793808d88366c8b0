"""Sparse weights and their gradients: merge, complete, normalise, truncate.

All functions take and return ``indices (N, K)``, ``weights (N, K)`` and ``gradients (N, K, 3)`` and keep the
floating type. The gradient of a normalised weight follows from the quotient rule,

    grad(w_j / W) = (grad w_j - (w_j / W) sum_k grad w_k) / W,    W = sum_k w_k,

and sums to 0 over the bones because the normalised weights sum to 1 everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Floats = NDArray[np.floating]


def merge_duplicates(indices: Ints, weights: Floats, gradients: Floats) -> tuple[Ints, Floats, Floats]:
    """Add up slots of one row that name the same bone; emptied slots get index 0, weight 0, gradient 0."""
    indices, weights, gradients = indices.copy(), weights.copy(), gradients.copy()
    for later in range(1, indices.shape[1]):
        for earlier in range(later):
            rows = np.flatnonzero(indices[:, later] == indices[:, earlier])
            weights[rows, earlier] += weights[rows, later]
            gradients[rows, earlier] += gradients[rows, later]
            weights[rows, later], gradients[rows, later] = 0, 0
    empty = (weights == 0) & (gradients == 0).all(axis=-1)
    indices[empty] = 0
    return indices, weights, gradients


def complete(
    indices: Ints, weights: Floats, gradients: Floats, root: int, rows: NDArray[np.bool_] | None = None
) -> tuple[Ints, Floats, Floats]:
    """Give what the weights of a row lack to 1 to bone ``root`` (-1: the static bone), in one more slot.

    Parameters
    ----------
    rows : (N,) complete only these rows; None completes all
    """
    lack = 1 - weights.sum(axis=1)
    lacking = lack > 0 if rows is None else (lack > 0) & rows
    if not lacking.any():
        return indices, weights, gradients
    slope = np.where(lacking[:, None], -gradients.sum(axis=1), 0)
    return merge_duplicates(
        np.concatenate([indices, np.where(lacking, root, 0).astype(np.int32)[:, None]], axis=1),
        np.concatenate([weights, np.where(lacking, lack, 0)[:, None]], axis=1),
        np.concatenate([gradients, slope[:, None]], axis=1),
    )


def normalize(weights: Floats, gradients: Floats) -> tuple[Floats, Floats]:
    """Return normalised weights and their gradients; rows must have a positive sum."""
    total = weights.sum(axis=1, keepdims=True)
    share = weights / total
    return share, (gradients - share[..., None] * gradients.sum(axis=1, keepdims=True)) / total[..., None]


def truncate(
    indices: Ints, weights: Floats, gradients: Floats, count: int
) -> tuple[Ints, Floats, Floats, Floats]:
    """Keep the ``count`` largest of normalised weights, strongest first (ties: the lower bone), and
    renormalise.

    Returns
    -------
    indices, weights, gradients : with min(K, count) influences; the gradients are projected so that they
        sum to 0
    lost : (N,) weight that was dropped
    """
    order = np.lexsort((indices, -weights), axis=-1)[:, :count]
    indices = np.take_along_axis(indices, order, axis=1)
    weights = np.take_along_axis(weights, order, axis=1)
    gradients = np.take_along_axis(gradients, order[..., None], axis=1)
    lost = np.maximum(1 - weights.sum(axis=1), 0)
    unused = weights == 0
    weights, gradients = normalize(weights, gradients)
    unused &= (gradients == 0).all(axis=-1)
    indices[unused] = 0
    return indices, weights, gradients, lost
