"""Splat PLY files to clouds, one pass over the file in blocks that fit the cache. Needs numpy only."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..cloud import GaussianCloud
from ..errors import FormatError
from ..progress import Progress, no_progress
from .memory import cloud_bytes, require_memory
from .ply_body import check_size, element_blocks
from .ply_header import Element, Header, read_header
from .splat_layout import SplatLayout, splat_layout

# Why a row is unusable; 0 is usable.
NOT_FINITE, ZERO_QUATERNION = 1, 2


@dataclass(frozen=True)
class RawCloud:
    """A cloud as it stands in the file, unusable rows included.

    cloud : N splats; rows with a fault hold anything
    faults : (N,) uint8, 0 where the row is usable, else NOT_FINITE or ZERO_QUATERNION
    notes : what the reader left out or noticed
    """

    cloud: GaussianCloud
    faults: NDArray[np.uint8]
    notes: tuple[str, ...] = ()


class EmptyCloudError(FormatError):
    """The file is in order and holds no splats: an error alone, an empty frame in a sequence."""


def read_ply(path: str | PathLike[str], progress: Progress = no_progress) -> RawCloud:
    """Read a splat PLY: ASCII or binary of either byte order, any property order and type, degree 0-3."""
    with Path(path).open("rb") as stream:
        return read_ply_stream(stream, path, progress)


def read_ply_stream(
    stream: BinaryIO, path: str | PathLike[str], progress: Progress = no_progress
) -> RawCloud:
    """Read a splat PLY from an open stream; `path` is for messages."""
    header, vertices, layout = _open(stream, path)
    count, coefficients = vertices.count, (layout.degree + 1) ** 2
    check_size(stream, header, vertices)
    require_memory(path, count, cloud_bytes(layout.degree))
    positions, scales = np.empty((count, 3), np.float32), np.empty((count, 3), np.float32)
    rotations, opacities = np.empty((count, 4), np.float32), np.empty(count, np.float32)
    sh, faults = np.empty((count, coefficients, 3), np.float32), np.empty(count, np.uint8)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for first, block in element_blocks(stream, header, vertices):
            progress("Reading splats", first / count)
            rows = slice(first, first + len(block))
            faults[rows] = _faults(block, layout)
            positions[rows] = block[:, layout.position]
            sh[rows, 0] = block[:, layout.base_color]
            if layout.degree:
                sh[rows, 1:] = layout.rest_of(block)
            np.exp(block[:, layout.scale], out=scales[rows])
            opacities[rows] = 1 / (1 + np.exp(-block[:, layout.opacity]))
            rotation = block[:, layout.rotation]
            norm = np.sqrt(np.einsum("ij,ij->i", rotation, rotation))
            np.divide(rotation, norm[:, None], out=rotations[rows])
    cloud = GaussianCloud(positions, rotations, scales, opacities, sh)
    return RawCloud(cloud, faults, layout.notes + _render_mode_notes(header))


def scan_ply(
    path: str | PathLike[str], progress: Progress = no_progress
) -> tuple[NDArray[np.float32], NDArray[np.uint8], int]:
    """Read positions (N, 3), faults (N,) and degree only: what a sequence needs of every frame."""
    with Path(path).open("rb") as stream:
        header, vertices, layout = _open(stream, path)
        check_size(stream, header, vertices)
        require_memory(path, vertices.count, cloud_bytes(layout.degree))
        positions = np.empty((vertices.count, 3), np.float32)
        faults = np.empty(vertices.count, np.uint8)
        with np.errstate(over="ignore", invalid="ignore"):
            for first, block in element_blocks(stream, header, vertices):
                progress("Reading splats", first / vertices.count)
                positions[first : first + len(block)] = block[:, layout.position]
                faults[first : first + len(block)] = _faults(block, layout)
    return positions, faults, layout.degree


def _open(stream: BinaryIO, path: str | PathLike[str]) -> tuple[Header, Element, SplatLayout]:
    header = read_header(stream, path)
    vertices = header.element("vertex")
    if vertices is None:
        raise FormatError(path, "the PLY has no vertices, so it holds no splats")
    layout = splat_layout(vertices.names, path)
    if vertices.count == 0:
        raise EmptyCloudError(path, "the file holds 0 splats")
    return header, vertices, layout


def _faults(block: NDArray[np.float32], layout: SplatLayout) -> NDArray[np.uint8]:
    """Return the fault (n,) of each row of a block (n, P).

    An infinite opacity is a valid one (0 or 1), an infinite scale after exp is not.
    """
    rotation, scale = block[:, layout.rotation], block[:, layout.scale]
    norm2 = np.einsum("ij,ij->i", rotation, rotation)
    # A row sum is finite only if all its terms are: one pass finds the rows worth a closer look.
    suspects = ~np.isfinite(block @ np.ones(block.shape[1], np.float32))
    suspects |= ~np.isfinite(norm2) | (scale.max(axis=1) > 88)
    faults = np.where(norm2 < 1e-24, ZERO_QUATERNION, 0).astype(np.uint8)
    if suspects.any():
        rows = block[suspects]
        good = np.isfinite(rows[:, layout.used(block.shape[1])]).all(axis=1)
        good &= ~np.isnan(rows[:, layout.opacity]) & np.isfinite(norm2[suspects])
        good &= (rows[:, layout.scale] <= 88).all(axis=1)
        faults[suspects] = np.where(good, faults[suspects], NOT_FINITE)
    return faults


def _render_mode_notes(header: Header) -> tuple[str, ...]:
    modes = [c.split(None, 1)[1] for c in header.comments if c.lower().startswith("splatrendermode ")]
    return tuple(
        f"The file asks for the render mode {mode!r}, which Blender does not have." for mode in modes
    )
