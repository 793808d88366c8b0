"""How far a pose is from all captured ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .database import MotionDatabase, repaired_rotations
from .geodesic import KeySearch


@dataclass(frozen=True)
class Coverage:
    """Distance of Q poses to the nearest captured pose of each part.

    parts : (Q, P) radians, root mean square over the part's joints; 0: captured
    """

    parts: NDArray[np.float32]

    @property
    def overall(self) -> NDArray[np.float32]:
        """(Q,) radians, that of the part farthest from what was captured."""
        return self.parts.max(axis=1)


def pose_search(database: MotionDatabase) -> KeySearch:
    """Search of single poses."""
    return KeySearch(database.rotations, database.clips, database.parts, np.zeros(1, np.intp), np.ones(1))


def coverage(
    database: MotionDatabase, rotations: NDArray[np.floating], search: KeySearch | None = None
) -> Coverage:
    """Coverage of poses by a database: the smallest geodesic distance of each part's joint rotations.

    Parameters
    ----------
    rotations : (Q, J, 4) local joint rotations wxyz
    search : `pose_search` of the same database, where many calls are made
    """
    search = search or pose_search(database)
    poses = repaired_rotations(rotations)
    return Coverage(search.nearest(poses, np.arange(len(poses))[:, None], 1)[1][..., 0].T)
