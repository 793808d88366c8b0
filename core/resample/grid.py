"""The axes of the splitting dictionary, and the few problems that fill it.

A splat with eigenvalues l1 >= l2 >= l3 of its covariance and opacity o is looked up by (l1 / l3, l2 / l3, o):
40 ratios evenly spaced in the logarithm from 1 to 10^4, twice, and 10 opacities.

Seen in coordinates in which the parent is the unit sphere, all parents of one opacity are one picture; their
shape enters only the question which child is the widest, through l2 / l1 and l3 / l1. An axis so short that
no child could be widest along it has no say at all. So 78 pairs of ratios answer for all 1600.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

CHILDREN = 5
RATIO_COUNT, OPACITY_COUNT = 40, 10
DECADES = 4.0  # the ratios end at 10^DECADES
STEP = DECADES / (RATIO_COUNT - 1)  # decades between two ratios
# Steps from the longest axis at which an axis has lost its say: eigenvalues apart by 10^(11 STEP) = 13.4,
# diameters by 3.7, while no best child is less than 0.3 of its parent.
REACH = 11
OPACITIES = np.arange(1, OPACITY_COUNT + 1) / OPACITY_COUNT
# Targets of the training. Children of finite logit never add up to an opaque splat.
TARGETS = np.minimum(OPACITIES, 0.999)

F64 = NDArray[np.float64]


def _pairs() -> NDArray[np.intp]:
    return np.array([(near, far) for near in range(REACH + 1) for far in range(near, REACH + 1)])


# Steps of the second and third axis below the first, (78, 2).
PAIRS = _pairs()


def problems() -> tuple[F64, F64]:
    """Return axes (780, 3), standard deviations relative to the largest, and opacities (780,)."""
    eigenvalues = 10.0 ** (-STEP * np.column_stack([np.zeros(len(PAIRS)), PAIRS]))
    return np.repeat(np.sqrt(eigenvalues), OPACITY_COUNT, axis=0), np.tile(TARGETS, len(PAIRS))


def expand(values: NDArray) -> NDArray:
    """Return the table (40, 40, 10, ...) of values (780, ...), one for each of `problems`.

    Where the second ratio is above the first, the entry is that of the two exchanged.
    """
    number = np.zeros((REACH + 1, REACH + 1), dtype=np.intp)
    number[tuple(PAIRS.T)] = np.arange(len(PAIRS))
    first, second = np.indices((RATIO_COUNT, RATIO_COUNT))
    near = np.minimum(abs(first - second), REACH)
    far = np.minimum(np.maximum(first, second), REACH)
    return values.reshape(len(PAIRS), OPACITY_COUNT, *values.shape[1:])[number[near, far]]
