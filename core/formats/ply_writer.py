"""Clouds to standard splat PLY files, each written whole or not at all. Needs numpy only."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..atomic_file import made_folder, replacing
from ..cloud import GaussianCloud
from ..errors import FormatError
from ..progress import Progress, no_progress
from .frame_names import frame_name

BLOCK_ROWS = 16384
# A logit of 0 or 1 is infinite, as is the logarithm of 0: the nearest values with a finite one are written.
MIN_OPACITY, MAX_OPACITY = 1e-7, 1 - 1e-7
MIN_SCALE = np.finfo(np.float32).tiny


def write_cloud(cloud: GaussianCloud, path: str | PathLike[str]) -> int:
    """Write a binary little-endian splat PLY in the order of the reference implementation.

    That is x y z nx ny nz f_dc f_rest (channel-major) opacity (logit) scale (log) rot (wxyz) (Kerbl et al.
    2023), with the harmonics of the cloud's own degree. The file takes its name only when it is complete.

    Parameters
    ----------
    cloud : splats; rows with a value that is not finite, or a zero quaternion, are left out
    path : the file, in an existing folder; overwritten

    Returns
    -------
    left_out : number of rows left out

    Raises
    ------
    FormatError : no row can be written, or the disk refuses
    """
    usable = _usable(cloud)
    left_out = len(cloud) - int(np.count_nonzero(usable))
    if left_out == len(cloud):
        raise FormatError(
            path, "there is no splat to write" + (" whose values are finite" if left_out else "")
        )
    if left_out:
        cloud = cloud.take(usable)
    with replacing(Path(path)) as temporary, temporary.open("xb") as stream:
        _write(cloud, stream)
    return left_out


def write_sequence(
    clouds: Iterable[GaussianCloud],
    folder: str | PathLike[str],
    stem: str,
    first_frame: int,
    frame_count: int,
    progress: Progress = no_progress,
) -> tuple[tuple[Path, ...], int]:
    """Write clouds as ``<stem>_<frame>.ply`` with zero-padded frame numbers; see `write_cloud`.

    Where it ends badly, the files so far are whole and stay; without any, a folder made for them goes again.

    Parameters
    ----------
    clouds : one cloud a frame, made as they are needed
    folder : created where it does not exist
    stem : beginning of the names
    first_frame : number of the first file
    frame_count : number of clouds, for the padding and the progress

    Returns
    -------
    paths : the files in order
    left_out : rows left out, over all frames
    """
    last = first_frame + frame_count - 1
    paths, left_out = [], 0
    with made_folder(Path(folder)):
        for done, cloud in enumerate(clouds):
            progress("Writing frames", done / max(frame_count, 1))
            paths.append(Path(folder) / f"{frame_name(stem, first_frame + done, last)}.ply")
            left_out += write_cloud(cloud, paths[-1])
    progress("Writing frames", 1.0)
    return tuple(paths), left_out


def _usable(cloud: GaussianCloud) -> NDArray[np.bool_]:
    """Return the mask (N,) of rows whose values can all be written: one mask for all arrays."""
    mask = np.isfinite(cloud.opacities) & (np.abs(cloud.rotations).max(axis=1, initial=0) > 0)
    for values in (cloud.positions, cloud.rotations, cloud.scales, cloud.sh):
        mask &= np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
    return mask


def _write(cloud: GaussianCloud, stream: BinaryIO) -> None:
    rest = 3 * (cloud.sh.shape[1] - 1)
    names = ["x", "y", "z", "nx", "ny", "nz"]
    names += [f"f_dc_{i}" for i in range(3)] + [f"f_rest_{i}" for i in range(rest)]
    names += ["opacity", *(f"scale_{i}" for i in range(3)), *(f"rot_{i}" for i in range(4))]
    lines = ["ply", "format binary_little_endian 1.0", f"element vertex {len(cloud)}"]
    lines += [f"property float {name}" for name in names] + ["end_header\n"]
    stream.write("\n".join(lines).encode("ascii"))
    buffer = np.zeros((BLOCK_ROWS, len(names)), "<f4")  # normals stay zero
    for first in range(0, len(cloud), BLOCK_ROWS):
        rows = slice(first, min(first + BLOCK_ROWS, len(cloud)))
        block = buffer[: rows.stop - rows.start]
        block[:, 0:3] = cloud.positions[rows]
        block[:, 6:9] = cloud.sh[rows, 0]
        block[:, 9 : 9 + rest] = cloud.sh[rows, 1:].transpose(0, 2, 1).reshape(len(block), -1)
        # float64, so that 1 - p keeps its digits near 1
        p = np.clip(cloud.opacities[rows].astype(np.float64), MIN_OPACITY, MAX_OPACITY)
        block[:, 9 + rest] = np.log(p / (1 - p))
        block[:, 10 + rest : 13 + rest] = np.log(np.maximum(cloud.scales[rows], MIN_SCALE))
        block[:, 13 + rest :] = cloud.rotations[rows]
        stream.write(block)  # type: ignore[arg-type]
