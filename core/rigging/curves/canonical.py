"""Which frame of a capture to take as the rest pose."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

SAMPLES = 2000


def select_canonical_frame(frames: NDArray[np.floating]) -> int:
    """Choose, among the first, middle, last and largest frame, the one with least self-contact.

    Two points touch in a frame where they are nearer than 2h (h the median spacing of the points)
    although they are further than 6h apart in another of the candidates: such contacts would weld parts
    of the rest pose's surface.

    Parameters
    ----------
    frames : (F, N, 3) metres, one correspondence; frames with NaN are never chosen

    Returns
    -------
    int, index of the frame; the earliest of equals
    """
    usable = np.flatnonzero(np.isfinite(frames[:, :1]).all((1, 2)))
    if len(usable) == 0:
        return 0
    sizes = [float(np.linalg.norm(np.ptp(frames[f], axis=0))) for f in usable]
    chosen = (usable[0], usable[len(usable) // 2], usable[-1], usable[int(np.argmax(np.round(sizes, 6)))])
    candidates = sorted({int(f) for f in chosen})
    rows = np.unique(np.linspace(0, frames.shape[1] - 1, SAMPLES).astype(int))
    poses = np.asarray(frames[candidates][:, rows], np.float64)
    if len(rows) < 2:
        return candidates[0]
    spacing = float(np.median([np.median(KDTree(p).query(p, 2)[0][:, 1]) for p in poses]))
    if spacing == 0:
        return candidates[0]
    contacts = []
    for pose in poses:
        pairs = KDTree(pose).query_pairs(2 * spacing, output_type="ndarray")
        apart = np.linalg.norm(poses[:, pairs[:, 0]] - poses[:, pairs[:, 1]], axis=2).max(0)
        contacts.append(int(np.count_nonzero(apart > 6 * spacing)))
    return candidates[int(np.argmin(contacts))]
