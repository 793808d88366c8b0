"""A method of answering new poses, fitted and ready to be measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion.database import Residuals, bone_transforms
from .subject import Query, Training

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Fitted:
    """A method fitted to a training, ready to answer: all of them skin points by some bones.

    indices, weights : (N, K) bones of each point
    transforms : query -> (Q, B, 3, 4) rest -> posed
    nbytes : memory of what was learned
    earlier_seconds : spent before on what the method shares with others
    note : what the reader should know; "" for nothing
    """

    indices: NDArray[np.int32]
    weights: NDArray[np.floating]
    transforms: Callable[[Query], F64]
    nbytes: int
    earlier_seconds: float = 0.0
    note: str = ""


def residual_method(
    learned: Training, answer: Callable[[Query], Residuals], nbytes: int, **more: object
) -> Fitted:
    """A method that answers with residuals of the outer bones."""

    def transforms(query: Query) -> F64:
        residuals = answer(query)
        return bone_transforms(learned.database, residuals, query.rotations, query.root_translations)

    return Fitted(learned.rig.indices, learned.rig.weights, transforms, nbytes, **more)  # type: ignore[arg-type]
