"""Captures kept as numpy archives: animated vertices, moving Gaussians, Dynamic3DGaussians' parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atomic_npz import array_of, in_short
from ..capture import Capture
from ..cloud import GaussianCloud
from ..errors import FormatError
from .archive_skeleton import SKELETON_ARRAYS, with_clips, with_skeleton
from .cleaning import clamp_scales
from .points import UP_AXES, drop_rows, finite_rows, sh_from_colors

Arrays = Mapping[str, NDArray[Any]]


def read_archive(path: Path, name: str, notes: tuple[str, ...] = ()) -> Capture:
    """Read an .npz capture, told by the arrays in it.

    ``vertices (F, N, 3)``, optionally ``faces (M, 3)``, ``colors (N, 3)`` (uint8, or 0..1), ``fps``, ``up``,
    ``rest (N, 3)``, of which only the size is used; with ``quat_wxyz (F, N, 4)`` and ``scales (N, 3)`` every
    frame is a cloud. ``means3D (T, N, 3)`` marks the output of Dynamic3DGaussians (Luiten et al. 2024), whose
    other parameters are unnormalised quaternions, logit opacities, log scales and RGB colours. Either may
    bring clips and a skeleton, see `archive_skeleton`.

    Raises
    ------
    FormatError : the archive is damaged, holds pickles, or arrays of other shapes
    """
    arrays = _load(path)
    if "means3D" in arrays:
        return with_skeleton(with_clips(_dynamic_gaussians(arrays, path, name, notes), arrays), arrays)
    if "vertices" in arrays:
        capture = replace(_animated_vertices(arrays, path, name, notes), rest_diagonal=_rest_diagonal(arrays))
        return with_skeleton(with_clips(capture, arrays), arrays)
    held = ", ".join(sorted(arrays)[:8]) or "nothing"
    raise FormatError(path, f"the archive has neither vertices nor means3D, it holds {held}")


WANTED = (
    *("vertices", "faces", "colors", "fps", "up", "rest", "quat_wxyz", "scales", "opacities"),
    *("means3D", "rgb_colors", "unnorm_rotations", "logit_opacities", "log_scales"),
    *SKELETON_ARRAYS,
)


def _load(path: Path) -> Arrays:
    """Return the arrays that are understood; of the others only their names count."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {key: array_of(archive, key) if key in WANTED else np.empty(0) for key in archive.files}
    except Exception as error:  # zipfile, zlib and numpy meet damage with a dozen exception types
        raise FormatError(
            path, f"the archive is damaged, or holds pickles, which are not read ({in_short(error)})"
        ) from error


def _array(
    arrays: Arrays, key: str, path: Path, *shapes: tuple[int | None, ...], dtype: type = np.float32
) -> NDArray[Any]:
    """Return a numeric array of one of the shapes (None: any length)."""
    if key not in arrays:
        raise FormatError(path, f"the array {key} is missing")
    value = arrays[key]
    fits = any(
        len(shape) == value.ndim and all(s in (None, v) for s, v in zip(shape, value.shape, strict=True))
        for shape in shapes
    )
    if not fits or value.dtype.kind not in "fiub":
        wanted = " or ".join(str(s).replace("None", "any") for s in shapes)
        raise FormatError(
            path, f"the array {key} has shape {value.shape} and type {value.dtype}, not {wanted}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        return value.astype(dtype, copy=False)


def _animated_vertices(arrays: Arrays, path: Path, name: str, notes: tuple[str, ...]) -> Capture:
    positions = _array(arrays, "vertices", path, (None, None, 3))
    frames, count = positions.shape[:2]
    if frames == 0 or count == 0:
        raise FormatError(path, f"the array vertices holds {frames} frames of {count} points")
    faces = colors = None
    if "faces" in arrays and arrays["faces"].size:
        faces = _array(arrays, "faces", path, (None, 3), dtype=np.int64)
        if faces.min() < 0 or faces.max() >= count:
            raise FormatError(path, f"the array faces names vertices that are not among the {count:,}")
        faces = faces.astype(np.int32)
    if "colors" in arrays:
        raw = _array(arrays, "colors", path, (count, 3), (count, 4))[:, :3]
        colors = np.clip(raw / 255 if arrays["colors"].dtype.kind in "iu" else raw, 0, 1).astype(np.float32)
        colors = np.nan_to_num(colors, nan=0.5)
    if "quat_wxyz" in arrays and "scales" in arrays:
        return _moving_gaussians(arrays, positions, colors, path, name, notes)
    keep, valid, row_notes = finite_rows(positions, path)
    capture = Capture(
        name, positions, valid, None, faces, colors, _fps(arrays), _up(arrays), (*notes, *row_notes)
    )
    return drop_rows(capture, keep)


def _rest_diagonal(arrays: Arrays) -> float | None:
    """Diagonal of the box of ``rest (N, 3)``; None where there is no such array, or one of no use."""
    rest = arrays.get("rest")
    if rest is None or rest.ndim != 2 or rest.shape[1] != 3 or not len(rest) or rest.dtype.kind not in "fiu":
        return None
    diagonal = float(np.linalg.norm(np.ptp(rest.astype(np.float64), axis=0)))
    return diagonal if np.isfinite(diagonal) and diagonal > 0 else None


def _moving_gaussians(
    arrays: Arrays,
    positions: NDArray[np.float32],
    colors: NDArray[np.float32] | None,
    path: Path,
    name: str,
    notes: tuple[str, ...],
) -> Capture:
    frames, count = positions.shape[:2]
    quaternions = _array(arrays, "quat_wxyz", path, (frames, count, 4), dtype=np.float32)
    scales = _array(arrays, "scales", path, (count, 3), (frames, count, 3))
    opacities = np.ones(count, np.float32)
    if "opacities" in arrays:
        opacities = _array(arrays, "opacities", path, (count,), (count, 1)).reshape(count)
    else:
        notes += ("The archive has no opacities: its splats are opaque.",)
    if colors is None:
        notes += ("The archive has no colours: its splats are grey.",)
    sh = sh_from_colors(np.full((count, 3), 0.5, np.float32) if colors is None else colors)
    good = (scales >= 0) & np.isfinite(scales)

    def load(frame: int) -> GaussianCloud:
        size = scales if scales.ndim == 2 else scales[frame]
        return GaussianCloud(positions[frame], quaternions[frame], size, np.clip(opacities, 0, 1), sh)

    usable = good.reshape(-1, count, 3).all(axis=(0, 2)) & np.isfinite(opacities)
    return _splat_capture(
        Capture(name, positions, np.ones(frames, bool), None, None, None, _fps(arrays), _up(arrays), notes),
        load,
        quaternions,
        usable,
        path,
    )


def _dynamic_gaussians(arrays: Arrays, path: Path, name: str, notes: tuple[str, ...]) -> Capture:
    positions = _array(arrays, "means3D", path, (None, None, 3), (None, 3))
    positions = positions.reshape(-1, positions.shape[-2], 3)
    frames, count = positions.shape[:2]
    if frames == 0 or count == 0:
        raise FormatError(path, f"the array means3D holds {frames} frames of {count} points")

    def moving(key: str, width: int) -> NDArray[np.float32]:
        value = _array(arrays, key, path, (frames, count, width), (count, width))
        return np.broadcast_to(value, (frames, count, width))

    quaternions, colors = moving("unnorm_rotations", 4), moving("rgb_colors", 3)
    logits, log_scales = moving("logit_opacities", 1), moving("log_scales", 3)

    def load(frame: int) -> GaussianCloud:
        with np.errstate(over="ignore"):
            opacities = (1 / (1 + np.exp(-logits[frame, :, 0]))).astype(np.float32)
            scales = np.exp(log_scales[frame])
        return GaussianCloud(
            positions[frame], quaternions[frame], scales, opacities, sh_from_colors(colors[frame])
        )

    usable = np.ones(count, bool)
    for values in (colors, log_scales):
        usable &= _finite_over_frames(values)
    usable &= ~np.isnan(logits).any(axis=(0, 2)) & (log_scales < 88).all(axis=(0, 2))
    notes += (f"Dynamic3DGaussians parameters: {frames} frames of {count:,} splats.",)
    capture = Capture(name, positions, np.ones(frames, bool), notes=notes)
    return _splat_capture(capture, load, quaternions, usable, path)


def _finite_over_frames(values: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return the mask (N,) of rows of (F, N, width) that are finite in all frames, frame by frame."""
    return functools.reduce(np.logical_and, (np.isfinite(frame).all(axis=1) for frame in values))


def _splat_capture(
    capture: Capture,
    load: Callable[[int], GaussianCloud],
    quaternions: NDArray[np.float32],
    usable: NDArray[np.bool_],
    path: Path,
) -> Capture:
    """Drop the rows that some frame has unusable, and normalise the quaternions of what is loaded."""
    keep, valid, notes = finite_rows(capture.positions, path, usable)
    for frame in np.flatnonzero(valid):
        norm = np.abs(quaternions[frame].astype(np.float64)).max(axis=1)
        keep &= np.isfinite(norm) & (norm > 1e-12)
    if not keep.any():
        raise FormatError(path, "no splat is usable in every frame")
    if not keep.all():
        dropped = int(np.count_nonzero(~keep))
        notes = tuple(n for n in notes if "dropped" not in n)
        notes += (f"{dropped:,} of {len(keep):,} splats were dropped: unusable values in some frame.",)
    notes += clamp_scales(load(int(np.argmax(valid))).take(keep))[1]
    load_kept = functools.partial(_load_frame, load, valid, keep, path)
    capture = replace(capture, frame_valid=valid, load_cloud=load_kept, notes=(*capture.notes, *notes))
    return drop_rows(capture, keep)


def _load_frame(
    load: Callable[[int], GaussianCloud],
    valid: NDArray[np.bool_],
    keep: NDArray[np.bool_],
    path: Path,
    frame: int,
) -> GaussianCloud:
    if not valid[frame]:
        raise FormatError(path, "the frame is empty", frame)
    cloud, _ = clamp_scales(load(frame).take(keep))
    norm = np.linalg.norm(cloud.rotations.astype(np.float64), axis=1, keepdims=True)
    return replace(cloud, rotations=(cloud.rotations / norm).astype(np.float32))


def _fps(arrays: Arrays) -> float | None:
    value = arrays.get("fps")
    if value is None or value.size != 1 or value.dtype.kind not in "fiu":
        return None
    fps = float(value.reshape(()))
    return fps if 0 < fps < 1e4 else None


def _up(arrays: Arrays) -> str | None:
    value = arrays.get("up")
    text = str(value.reshape(())).lower() if value is not None and value.size == 1 else ""
    return text if text in UP_AXES else None
