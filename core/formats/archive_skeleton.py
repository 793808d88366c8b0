"""Clips and the skeleton of an .npz capture; what of them cannot be used is left out, and said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..capture import Capture
from ..errors import CaptureError
from ..given_skeleton import GivenSkeleton
from .joint_tracks import mats_from_tracks

Arrays = Mapping[str, NDArray[Any]]
SKELETON_ARRAYS = (
    *("joint_names", "joint_parents", "joint_rest", "joint_mats", "joints"),
    *("clip", "clip_names"),
)


def with_clips(capture: Capture, arrays: Arrays) -> Capture:
    """Add ``clip (F,)``, the motion each frame belongs to, and ``clip_names``."""
    if "clip" not in arrays:
        return capture
    clips = arrays["clip"]
    if clips.shape != (capture.frame_count,) or clips.dtype.kind not in "iu":
        note = f"The array clip was left out: it needs one whole number a frame ({capture.frame_count})."
        return replace(capture, notes=(*capture.notes, note))
    names = arrays.get("clip_names", np.empty(0, np.str_))
    known = tuple(str(name) for name in names.ravel()) if names.dtype.kind == "U" else ()
    return replace(capture, clips=clips.astype(np.int32), clip_names=known)


def with_skeleton(capture: Capture, arrays: Arrays) -> Capture:
    """Add the skeleton of ``joint_parents (J,)``, ``joint_rest (J, 3)`` and ``joint_mats (F, J, 3, 4)``.

    Joints without ``joint_names (J,)`` are numbered. Where there are no ``joint_mats`` they are estimated
    from ``joints (F, J, 3)``, posed positions.
    """
    if not any(name.startswith("joint") for name in SKELETON_ARRAYS if name in arrays):
        return capture
    try:
        skeleton, note = _skeleton(arrays, capture.frame_count)
    except (CaptureError, ValueError) as error:
        note = f"The skeleton in the archive was left out: {_reason(error)}."
        return replace(capture, notes=(*capture.notes, note))
    return replace(capture, skeleton=skeleton, notes=(*capture.notes, *note))


def _skeleton(arrays: Arrays, frames: int) -> tuple[GivenSkeleton, tuple[str, ...]]:
    missing = [name for name in ("joint_parents", "joint_rest") if name not in arrays]
    if missing or not {"joint_mats", "joints"} & set(arrays):
        raise CaptureError(f"the array {missing[0] if missing else 'joint_mats'} is missing")
    parents, rest = _numbers(arrays, "joint_parents"), _numbers(arrays, "joint_rest")
    given = arrays.get("joint_names", np.array([f"joint_{j:03d}" for j in range(len(parents))]))
    names, notes = [str(name) for name in given.ravel()], ()
    if "joint_mats" in arrays:
        mats = _numbers(arrays, "joint_mats")
    else:
        still = np.broadcast_to(np.eye(3, 4), (1, len(names), 3, 4))
        GivenSkeleton.make(names, parents, rest, still)  # a tree, before anything is made of it
        mats = mats_from_tracks(parents, rest, _numbers(arrays, "joints"))
        notes = ("The archive has positions of joints only: how they turn was estimated, without twist.",)
    if len(mats) != frames:
        raise CaptureError(f"it has {len(mats)} frames, the capture {frames}")
    return GivenSkeleton.make(names, parents, rest, mats), notes


def _numbers(arrays: Arrays, name: str) -> NDArray[Any]:
    array = arrays[name]
    if array.dtype.kind not in "fiu" or not array.ndim:
        raise CaptureError(f"the array {name} does not hold numbers")
    return array


def _reason(error: Exception) -> str:
    text = str(error).rstrip(".")
    return text.removeprefix("The skeleton of the capture is not usable: ")
