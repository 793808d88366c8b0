"""Which files a bake writes, and writing them; touches no Blender data but names."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import bpy
import numpy as np

from ..core.atomic_file import made_folder, require_writable_folder
from ..core.cloud import GaussianCloud
from ..core.errors import FormatError
from ..core.formats.frame_names import frame_name
from ..core.formats.ply_writer import write_cloud
from ..core.progress import Progress
from ..gaussianimate_addon.bake import Pose, RestSplats
from ..gaussianimate_addon.frame_range import range_problem
from ..gaussianimate_addon.resampling.task import Request, solve

MOST_NAMED = 10  # frames in a sentence


@dataclass(frozen=True)
class Written:
    """What was written.

    paths : the files
    empty : frames without splats, which got none
    left_out : splats that could not be written, over all frames
    resting : frames in which bones have no pose that is finite, so that their splats rest, as in viewports
    notes : on what was done before
    """

    paths: list[Path]
    empty: list[int]
    left_out: int
    resting: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Order:
    """What is to be written: a rigged object's splats in each frame's pose, to each frame's file.

    resample : what is split first, in these poses; None: nothing
    """

    rest: RestSplats
    poses: dict[int, Pose]
    space: str
    paths: dict[int, Path]
    resample: Request | None = None

    def resampled(self, progress: Progress) -> tuple[Order, tuple[str, ...]]:
        """Return the order with the splats split that its poses bend too much, and notes on that."""
        if self.resample is None:
            return self, ()
        transforms = np.stack([pose.transforms for pose in self.poses.values()])
        answer = solve(replace(self.resample, transforms=transforms), progress)
        rest = RestSplats(answer.found.cloud, answer.skin)
        return replace(self, rest=rest, resample=None), (answer.summary("split"), *answer.found.notes)

    def resting(self) -> tuple[int, ...]:
        """Return the frames in which not all bones have a pose that is finite."""
        return tuple(frame for frame, pose in self.poses.items() if not np.isfinite(pose.transforms).all())

    def clouds(self, progress: Progress) -> Iterator[tuple[int, GaussianCloud]]:
        """Yield frame and posed splats; cancelling takes effect within a frame, too."""
        for done, (frame, pose) in enumerate(self.poses.items()):

            def within(stage: str, fraction: float, done: int = done) -> None:
                progress("Writing frames", (done + fraction) / len(self.poses))

            yield frame, self.rest.posed(pose, self.space, within)


def targets(path: str, name: str, start: int, end: int) -> dict[int, Path]:
    """Return the file of each frame.

    Parameters
    ----------
    path : a file, which takes one frame or lends its name to many, or a folder
    name : beginning of the file names in a folder

    Raises
    ------
    FormatError : no path, no frames, or the folder cannot be made or written to
    """
    if not path:
        raise FormatError("(no file)", "no file or folder was given to write to")
    if (problem := range_problem(start, end)) is not None:
        raise FormatError(path, problem)
    file = Path(path)
    is_folder = (
        os.path.isdir(file) or path.endswith(("/", os.sep)) or (end > start and file.suffix.lower() != ".ply")
    )
    folder, stem = (file, bpy.path.clean_name(name)) if is_folder else (file.parent, file.stem)
    require_writable_folder(folder)
    if start == end and not is_folder:
        return {start: file.with_name(bpy.path.ensure_ext(file.name, ".ply"))}
    return {frame: folder / f"{frame_name(stem, frame, end)}.ply" for frame in range(start, end + 1)}


def keep_source(folder: str, paths: dict[int, Path]) -> None:
    """Refuse to write among the files of the capture itself, whose sequence they would join.

    Raises
    ------
    FormatError : one of the paths would lie in the folder the capture was imported from
    """
    for path in paths.values():
        if folder and path.parent.resolve() == Path(folder).resolve():
            raise FormatError(path, "it lies in the folder of the imported capture; choose another folder")


def write_frames(
    frames: Iterator[tuple[int, GaussianCloud]], paths: dict[int, Path]
) -> Generator[tuple[str, float], None, Written]:
    """Write each frame's cloud to its file, in a folder made for them; yield the progress after each."""
    written, empty, left_out = [], [], 0
    with made_folder(paths[min(paths)].parent):
        for frame, cloud in frames:
            if len(cloud):
                left_out += write_cloud(cloud, paths[frame])
                written.append(paths[frame])
            else:
                empty.append(frame)
            yield "Writing frames", (len(written) + len(empty)) / len(paths)
        if not written:
            raise FormatError(paths[min(paths)], "there is no splat to write in any frame")
    return Written(written, empty, left_out)


def named(frames: Sequence[int]) -> str:
    """Return frames as words of a sentence, of many only the first."""
    more = len(frames) - MOST_NAMED
    return ", ".join(map(str, frames[:MOST_NAMED])) + f" and {more:,} more" * (more > 0)
