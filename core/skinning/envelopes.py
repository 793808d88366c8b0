"""Weights of bone envelopes, as Blender has them, and their exact gradients."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.floating]
F64 = NDArray[np.float64]


def envelope_weights(
    points: Floats,
    heads: ArrayLike,
    tails: ArrayLike,
    head_radii: ArrayLike,
    tail_radii: ArrayLike,
    distances: ArrayLike,
    strengths: ArrayLike = 1.0,
) -> tuple[F64, F64]:
    """Return what the envelopes of bones weigh points.

    A weight is the bone's strength within the radius about the bone (which goes evenly from head to tail),
    and falls with the square of the distance beyond it to 0 at ``distances``.

    Parameters
    ----------
    points : (N, 3) metres, in the space of the bones
    heads, tails : (M, 3) metres
    head_radii, tail_radii, distances : (M,) metres, >= 0; in Blender `bone.head_radius`, `bone.tail_radius`,
        `bone.envelope_distance`
    strengths : (M,) or one for all; in Blender `bone.envelope_weight`

    Returns
    -------
    weights : (N, M)
    gradients : (N, M, 3) 1/m; 0 within the radius and beyond the envelope
    """
    points, heads, tails = (np.asarray(a, dtype=np.float64) for a in (points, heads, tails))
    count = len(heads)
    start, end, reach, strength = (
        np.broadcast_to(np.asarray(a, dtype=np.float64), count)
        for a in (head_radii, tail_radii, distances, strengths)
    )
    weights, gradients = np.zeros((len(points), count)), np.zeros((len(points), count, 3))
    for bone in range(count):
        away, direction, slope = _beyond(points, heads[bone], tails[bone], start[bone], end[bone])
        weights[:, bone] = strength[bone] * (away <= 0)
        if reach[bone] == 0:
            continue
        fades = np.flatnonzero((away > 0) & (away < reach[bone]))
        share = away[fades] / reach[bone]
        weights[fades, bone] = strength[bone] * (1 - share * share)
        rate = -2 * strength[bone] / reach[bone] * share
        gradients[fades, bone] = rate[:, None] * (
            direction[fades] - slope[fades, None] * _axis(heads, tails, bone)
        )
    return weights, gradients


def _axis(heads: F64, tails: F64, bone: int) -> F64:
    length = np.linalg.norm(tails[bone] - heads[bone])
    return (tails[bone] - heads[bone]) / (length if length > 0 else 1)


def _beyond(points: F64, head: F64, tail: F64, start: float, end: float) -> tuple[F64, F64, F64]:
    """Return distances beyond the radius, unit directions from the bone, and the radius' slope along it."""
    along, length = tail - head, float(np.linalg.norm(tail - head))
    t = (points - head) @ along / max(length, 1e-300) ** 2 if length > 0 else np.zeros(len(points))
    inside = (t > 0) & (t < 1)
    t = np.clip(t, 0, 1)
    offset = points - head - t[:, None] * along
    distance = np.linalg.norm(offset, axis=1)
    slope = np.where(inside, (end - start) / (length if length > 0 else 1), 0)
    direction = offset / np.where(distance > 0, distance, 1)[:, None]
    return distance - (start + t * (end - start)), direction, slope
