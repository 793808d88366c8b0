"""The nearest captured whole-body poses, their residuals blended."""

from __future__ import annotations

import numpy as np

from ...motion.database import Residuals, repaired_rotations
from ...motion.geodesic import KeySearch
from ...motion.parts import whole_body
from ..fitted import Fitted, residual_method
from ..subject import Query, Training

NEIGHBOURS = 4
TOUCHING = 1e-4  # radians


def fit_neighbours(learned: Training, count: int = NEIGHBOURS) -> Fitted:
    """Blend the residuals of the `count` nearest poses, weighted by inverse distance (Shepard 1968).

    Distance is the root mean square geodesic one over all joints but the root.
    """
    base = learned.database
    keys, values = base.rotations[learned.rows], learned.values
    joints = whole_body(base.joint_count, base.bone_count)[0]
    search = KeySearch(keys, learned.clips, joints, np.zeros(1, np.intp), np.ones(1))

    def answer(query: Query) -> Residuals:
        poses = repaired_rotations(query.rotations)
        near, distances = search.nearest(poses, np.arange(len(poses))[:, None], count)
        weights = 1 / (distances[0] + TOUCHING)
        weights /= weights.sum(axis=1, keepdims=True)
        return learned.space.project(np.einsum("qk,qkv->qv", weights, values[near[0]]))

    return residual_method(learned, answer, keys.nbytes + values.nbytes)
