"""Frames that are asked for, and those that Blender has."""

from __future__ import annotations

from ..core.errors import RigError

FARTHEST = 1048574  # Blender's last frame, and its first below 0; it shows those instead of frames beyond


def range_problem(start: int, end: int) -> str | None:
    """Return what is wrong with a range of frames, which reads on after a colon; None for a good one."""
    if end < start:
        return f"the last frame, {end}, comes before the first, {start}; swap them"
    for frame in (start, end):
        if abs(frame) > FARTHEST:
            return f"Blender has frames from {-FARTHEST} to {FARTHEST}, and none of number {frame}"
    return None


def check_range(start: int, end: int) -> None:
    """Raise `RigError` where something is wrong with a range of frames."""
    if (problem := range_problem(start, end)) is not None:
        raise RigError(problem[:1].upper() + problem[1:])
