"""How joints turn, where a source only says where they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import CaptureError

F64 = NDArray[np.float64]
PULL = 1e-3  # share of the parent's rotation in what the children leave open


def mats_from_tracks(
    parents: NDArray[np.integer], rest: NDArray[np.floating], tracks: NDArray[np.floating]
) -> F64:
    """Estimate transforms (F, J, 3, 4), rest to posed, of joints from their positions.

    A joint turns as its children turn about it (Kabsch 1976), pulled a little towards its parent's
    rotation, which decides what they leave open: the twist about an only child, all of an end. A root is
    pulled towards the rotation of all joints together.

    Parameters
    ----------
    parents : (J,) a tree, in any order; rest : (J, 3); tracks : (F, J, 3)

    Raises
    ------
    CaptureError : the shapes do not go together
    """
    from ..rigging.kabsch import fit_rigid, kabsch

    rest, tracks = np.asarray(rest, np.float64), np.asarray(tracks, np.float64)
    if tracks.ndim != 3 or tracks.shape[1:] != rest.shape:
        raise CaptureError(f"the array joints has shape {tracks.shape}, expected (any, {len(rest)}, 3)")
    rotations = np.empty((*tracks.shape[:2], 3, 3))
    whole = fit_rigid(rest, tracks)[..., :3]
    level = np.flatnonzero(parents < 0).tolist()
    while level:
        joint = level.pop()
        children = np.flatnonzero(parents == joint)
        level.extend(children.tolist())
        before = rest[children] - rest[joint]
        after = tracks[:, children] - tracks[:, joint, None]
        moment = np.einsum("ca,fcb->fab", before, after)
        base = whole if parents[joint] < 0 else rotations[:, parents[joint]]
        pull = PULL * (before**2).sum() + 1e-12
        rotations[:, joint] = kabsch(moment + pull * np.swapaxes(base, -1, -2))
    offsets = tracks - np.einsum("fjab,jb->fja", rotations, rest)
    return np.concatenate([rotations, offsets[..., None]], axis=-1)
