"""What can go wrong, each said in one sentence that names the thing and the way out."""

from __future__ import annotations

from os import PathLike


class GaussiAnimateError(Exception):
    """Base of every error a user can mend; ``str(error)`` is one sentence fit for a report."""


class FormatError(GaussiAnimateError):
    """A file cannot be read or written as a cloud or capture.

    Parameters
    ----------
    path : the file (or folder, or pattern) the problem lies in
    problem : what is wrong and, where there is one, the way out
    frame : index of the frame in its sequence, where it is part of one
    """

    def __init__(self, path: str | PathLike[str], problem: str, frame: int | None = None) -> None:
        where = f"{path}" if frame is None else f"{path} (frame {frame})"
        super().__init__(f"{where}: {problem}")
        self.path, self.problem, self.frame = path, problem, frame


class CaptureError(GaussiAnimateError):
    """A capture cannot be rigged (too few points, no usable frames, ...)."""


class RigError(GaussiAnimateError):
    """A rig file or object is incomplete, inconsistent, or does not fit the cloud it is used on."""


class SelectionError(GaussiAnimateError):
    """A selection layer cannot be read, or what it says makes no selection."""


class MissingDependencyError(GaussiAnimateError):
    """An optional library is needed for what was asked; the message says how to get it."""


class Cancelled(GaussiAnimateError):
    """The user cancelled; raised by a progress callback and never swallowed by core."""
