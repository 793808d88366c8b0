"""What captures of all kinds share: rows usable in every frame, and colours as harmonics."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from ..capture import Capture
from ..errors import FormatError

UP_AXES = ("x", "y", "z", "-x", "-y", "-z")
# Y_0^0, the constant real spherical harmonic: colour = 0.5 + SH_C0 f_dc (Kerbl et al. 2023).
SH_C0 = 0.28209479177387814


def sh_from_colors(colors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return harmonics (N, 1, 3) of degree 0 for display (sRGB) colours (N, 3) in 0..1.

    Splats are fitted to photographs as displayed, so their colours are sRGB values and need no curve.
    """
    return ((colors - 0.5) / SH_C0).astype(np.float32)[:, None]


def finite_rows(
    positions: NDArray[np.float32], path: str | PathLike[str], usable: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], tuple[str, ...]]:
    """Find the rows that are finite in every frame, leaving out the frames in which none is.

    Parameters
    ----------
    positions : (F, N, 3) float32
    path : for messages
    usable : (N,) bool, rows that may be kept at all

    Returns
    -------
    keep : (N,) bool
    valid : (F,) bool, frames in which any row is finite
    notes : one sentence each on rows and frames left out
    """
    keep = np.ones(positions.shape[1], bool) if usable is None else usable.copy()
    valid = np.ones(len(positions), bool)
    for frame, points in enumerate(positions):
        finite = np.isfinite(points).all(axis=1)
        valid[frame] = finite.any()
        if valid[frame]:
            keep &= finite
    if not valid.any() or not keep.any():
        raise FormatError(path, "no point has finite positions in every frame")
    notes = []
    if not keep.all():
        notes.append(
            f"{np.count_nonzero(~keep):,} of {len(keep):,} points were dropped: not finite in some frame."
        )
    if not valid.all():
        notes.append(f"{np.count_nonzero(~valid)} of {len(valid)} frames are empty and skipped by fits.")
    return keep, valid, tuple(notes)


def drop_rows(capture: Capture, keep: NDArray[np.bool_]) -> Capture:
    """Return the capture of the rows `keep` (N,); faces lose the triangles of dropped points.

    `load_cloud` is the caller's to change. Invalid frames become NaN throughout.
    """
    positions, faces, colors = capture.positions, capture.faces, capture.colors
    if not keep.all():
        positions = positions[:, keep]
        colors = None if colors is None else colors[keep]
        if faces is not None:
            new_index = np.cumsum(keep, dtype=np.int32) - 1
            faces = new_index[faces[keep[faces].all(axis=1)]]
    if not capture.frame_valid.all():
        positions = positions.copy() if positions is capture.positions else positions
        positions[~capture.frame_valid] = np.nan
    return replace(capture, positions=positions, faces=faces, colors=colors)
