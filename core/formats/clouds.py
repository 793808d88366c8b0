"""One splat file of any format to a clean GaussianCloud."""

from __future__ import annotations

from os import PathLike

import numpy as np
from numpy.typing import NDArray

from ..cloud import GaussianCloud
from ..errors import FormatError
from ..progress import Progress, no_progress
from .cleaning import clamp_scales, fault_notes
from .detection import detect
from .ply_reader import RawCloud, read_ply, scan_ply


def read_cloud(
    path: str | PathLike[str], progress: Progress = no_progress
) -> tuple[GaussianCloud, tuple[str, ...]]:
    """Read one splat file: PLY, compressed PLY, .splat, .ksplat, .spz or .sog, told by its content.

    Rows that cannot be drawn (a value that is not finite, a zero quaternion) are dropped, splats larger than
    the scene are limited to it. Axes and units stay those of the file.

    Parameters
    ----------
    path : the file
    progress : called with the stage and its fraction; may raise `Cancelled`

    Returns
    -------
    cloud : the usable splats, activated; at least one
    notes : one sentence each on what was dropped, limited or looks wrong

    Raises
    ------
    FormatError : the file is not of a known format, damaged, empty, or has no usable splat
    MissingDependencyError : a compressed format needs gaussforge
    """
    raw = read_raw(path, progress)
    if raw.faults.all():
        raise FormatError(path, f"none of its splats is usable: {fault_notes(raw.faults)[0]}".rstrip("."))
    cloud = raw.cloud.take(raw.faults == 0) if raw.faults.any() else raw.cloud
    cloud, notes = clamp_scales(cloud)
    return cloud, raw.notes + fault_notes(raw.faults) + notes


def read_raw(path: str | PathLike[str], progress: Progress = no_progress) -> RawCloud:
    """Read one splat file of any format with every row it has, usable or not."""
    kind = detect(path)
    if kind == "ply":
        return read_ply(path, progress)
    if kind == "mesh":
        raise FormatError(path, "this is a mesh, not splats: import it as a capture")
    if kind == "npz":
        raise FormatError(path, "this is an array archive, not a splat file: import it as a capture")
    from .compressed import read_compressed

    return read_compressed(path, kind)


def scan(
    path: str | PathLike[str], progress: Progress = no_progress
) -> tuple[NDArray[np.float32], NDArray[np.uint8], int]:
    """Read positions (N, 3), faults (N,) and the degree of one splat file of any format."""
    if detect(path) == "ply":
        return scan_ply(path, progress)
    raw = read_raw(path)
    return raw.cloud.positions, raw.faults, raw.cloud.sh_degree
