"""``python -m gaussianimate info | rig | refine | pose | bake | evaluate``: the product without Blender."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .bone_poses import add_secondary, bone_poses
from .cli_needs import needed
from .errors import GaussiAnimateError, RigError
from .evaluate.command import add_evaluate
from .peak_memory import peak_memory_mb
from .progress import Progress
from .refine.command import add_refine
from .resample.command import add_epsilon, add_resample, add_train_dictionary, resample_options

if TYPE_CHECKING:
    from .rigging.rig import Rig


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code: 0, or 1 after an error (one sentence on stderr)."""
    _prepare_streams()
    parser = _parser()
    options = parser.parse_args(arguments)
    _refuse_empty(parser, options)
    try:
        with needed(options.needs if "needs" in options else ()):
            options.run(options)
    except GaussiAnimateError as error:
        print(f"gaussianimate: {_printable(str(error))}", file=sys.stderr)
        return 1
    except MemoryError:
        print("gaussianimate: not enough memory; use fewer frames or splats.", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader (head, less) has seen enough
        sys.stdout = None
        return 0
    except OSError as error:  # a disk that fails, a name no file can have
        where = f"{error.filename}: " if error.filename else ""
        print(f"gaussianimate: {_printable(f'{where}{error.strerror or error}')}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("gaussianimate: cancelled.", file=sys.stderr)
        return 1
    return 0


def _prepare_streams() -> None:
    """Have somewhere to write to, whatever is written: started without streams, Python has None there."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files may hold what a terminal has no letters for
        sys.stdout.reconfigure(errors="backslashreplace")


def _printable(text: str) -> str:
    """Return a text that quotes a damaged file without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _refuse_empty(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Stop where a name is empty, as that of an unset variable is: it would stand for the current folder."""
    for name, value in vars(options).items():
        if value == "" or (isinstance(value, list) and "" in value):
            parser.error(f"{name.replace('_', ' ')} is empty; name a file")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m gaussianimate",
        description="Turn 4D captures of Gaussian splats or meshes into posable rigs.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    info = commands.add_parser("info", help="say what a capture, cloud or rig file holds")
    info.add_argument("file", metavar="FILE")
    info.set_defaults(run=_info)

    rig = commands.add_parser("rig", help="build a rig from a capture")
    rig.add_argument("capture", metavar="CAPTURE", help="folder, pattern or file of a sequence")
    rig.add_argument("-o", "--output", required=True, metavar="RIG.npz")
    rig.add_argument("--max-bones", type=int, default=50, help="most outer bones (default 50)")
    rig.add_argument("--max-influences", type=int, default=4, help="most bones a point, 1-4 (default 4)")
    rig.add_argument("--canonical", type=int, default=0, metavar="FRAME", help="rest pose (default 0)")
    rig.add_argument(
        "--joint-threshold", type=float, default=0.3, metavar="TAU", help="lower: more joints (default 0.3)"
    )
    rig.add_argument(
        "--skeleton",
        choices=("auto", "given", "extracted"),
        default="extracted",
        help="joints found in the motion (extracted, default), the capture's own (given), or its own where "
        "they do nothing but turn (auto)",
    )
    rig.add_argument("--json", action="store_true", help="print the report as one JSON object, last line")
    rig.set_defaults(run=_rig, needs=("scipy",))

    pose = commands.add_parser("pose", help="write a rig's points under captured or new poses")
    pose.add_argument("rig", metavar="RIG.npz")
    source = pose.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--frames",
        type=_frame_range,
        metavar="A:B",
        help="replay frames A to B - 1 of the capture, as in Python",
    )
    source.add_argument("--motion", metavar="MOTION.npz", help="rotations [F,J,4], root_translation [F,3]")
    add_secondary(pose)
    pose.add_argument("-o", "--output", required=True, metavar="OUT.npz")
    pose.set_defaults(run=_pose)

    bake = commands.add_parser("bake", help="write splat PLY files of a cloud under new poses")
    bake.add_argument("rig", metavar="RIG.npz")
    bake.add_argument("--cloud", required=True, metavar="CLOUD.ply", help="splats of the rest pose")
    bake.add_argument("--motion", required=True, metavar="MOTION.npz")
    add_secondary(bake)
    add_epsilon(bake, "--resample", None)
    bake.add_argument("-o", "--output", required=True, metavar="DIR")
    bake.set_defaults(run=_bake)

    add_refine(commands, _console_progress)
    add_evaluate(commands, _console_progress)
    add_resample(commands, _console_progress)
    add_train_dictionary(commands, _console_progress)
    return parser


def _frame_range(text: str) -> tuple[int | None, int | None]:
    first, colon, last = text.partition(":")
    try:
        bounds = (int(first) if first else None, int(last) if last else None)
    except ValueError:
        bounds = None
    if not colon or bounds is None or min(bounds[0] or 0, bounds[1] or 0) < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a frame range such as 0:24, 10: or :24")
    return bounds


def _console_progress() -> Progress:
    """Progress on stderr: one line a stage, on a terminal with its per cents rewritten in place."""
    live = sys.stderr.isatty()
    shown, at = "", 0.0

    def show(stage: str, fraction: float) -> None:
        nonlocal shown, at
        if stage == shown and (not live or time.monotonic() - at < 0.1):
            return
        start = "\r" if stage == shown else "\n" if live and shown else ""
        end = f" {100 * fraction:3.0f} %" if live else "\n"
        print(f"{start}{stage}", end=end, file=sys.stderr, flush=True)
        shown, at = stage, time.monotonic()

    return show


def _rig(options: argparse.Namespace) -> None:
    from .cli_output import require_output
    from .formats import read_capture
    from .formats.sources import find_files
    from .rigging.build import RigOptions, build_rig
    from .rigging.rig_file import save_rig

    chosen = RigOptions(
        options.max_bones,
        options.max_influences,
        options.joint_threshold,
        options.canonical,
        options.skeleton,
    )
    chosen.check()
    require_output(options.output, ".npz", find_files(options.capture)[0])
    start = time.perf_counter()
    capture = read_capture(options.capture)
    read = time.perf_counter() - start
    result = build_rig(capture, chosen, _console_progress())
    rig, report = result.rig, result.report
    save_rig(rig, options.output)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    for note in report.notes:
        print(f"note: {note}", file=sys.stderr)
    figures = {
        "points": rig.point_count,
        "frames": rig.frame_count,
        "bones": rig.bone_count,
        "joints": rig.joint_count,
        "rmse": report.rmse,
        "rmse_percent_diagonal": report.rmse_percent,
        "skeleton_rmse_percent_diagonal": report.skeleton_rmse_percent,
        "seconds": {"read": read, **report.seconds},
        "peak_memory_mb": peak_memory_mb(),
    }
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            if isinstance(value, dict):
                value = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in value.items())
            if name == "joints":
                value = _joints_text(rig)
            print(
                f"{name.replace('_', ' ')}: {value:.4g}" if isinstance(value, float) else f"{name}: {value}"
            )


def _pose(options: argparse.Namespace) -> None:
    from .atomic_npz import write_npz
    from .cli_output import require_output
    from .rigging.motion_file import load_motion
    from .rigging.posing import posed_points
    from .rigging.rig_file import load_rig

    require_output(options.output, ".npz", filter(None, (options.rig, options.motion)))
    rig = load_rig(options.rig)
    arrays: dict[str, NDArray] = {}
    if options.motion:
        motion = load_motion(options.motion, rig)
        transforms = bone_poses(rig, motion, options.secondary, _console_progress())
        fps = motion.fps or rig.fps
    else:
        rows = _rows_of_frames(rig.frames, options.frames)
        transforms, fps = rig.bone_transforms[rows], rig.fps
        arrays["frames"] = rig.frames[rows]
    vertices = np.empty((len(transforms), rig.point_count, 3), dtype=np.float32)
    for row, pose in enumerate(transforms):
        vertices[row] = posed_points(rig, pose)
    write_npz(
        options.output, {"vertices": vertices, "fps": np.array(fps, np.float64), **arrays}, compress=False
    )
    print(
        f"{_frames_text(len(vertices))} of {rig.point_count} points written to {options.output}",
        file=sys.stderr,
    )


def _rows_of_frames(frames: NDArray[np.int32], bounds: tuple[int | None, int | None]) -> NDArray[np.intp]:
    """Rows of a rig whose capture frame lies in A <= frame < B."""
    first = 0 if bounds[0] is None else bounds[0]
    last = int(frames.max()) + 1 if bounds[1] is None else bounds[1]
    rows = np.flatnonzero((frames >= first) & (frames < last))
    if not len(rows):
        raise RigError(
            f"No captured frame lies in {first}:{last}; the rig holds {frames.min()} to {frames.max()}."
        )
    return rows


def _bake(options: argparse.Namespace) -> None:
    from .cli_output import require_output_folder
    from .deform.deform import deform_cloud
    from .formats import read_cloud, write_sequence
    from .rigging.motion_file import load_motion
    from .rigging.posing import rows_for_cloud
    from .rigging.rig_file import load_rig
    from .skinning.skin import make_skin

    require_output_folder(options.output, ".ply", [options.cloud])
    rig = load_rig(options.rig)
    motion = load_motion(options.motion, rig)
    cloud, notes = read_cloud(options.cloud)
    rows = rows_for_cloud(rig, cloud.positions, options.cloud)
    skin = make_skin(cloud.positions, rig.indices[rows], rig.weights[rows], bone_count=rig.bone_count)
    transforms = bone_poses(rig, motion, options.secondary, _console_progress())
    if options.resample is not None:
        from .resample.resample import resample

        found = resample(
            cloud, skin, transforms, resample_options(options.resample), progress=_console_progress()
        )
        cloud, skin, notes = found.cloud, found.skin, notes + found.notes
    count = len(transforms)
    posed = (deform_cloud(cloud, skin, pose) for pose in transforms)
    _, left_out = write_sequence(
        posed, options.output, Path(options.cloud).stem, 0, count, _console_progress()
    )
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if left_out:
        print(f"note: {left_out} splats could not be written and were left out", file=sys.stderr)
    print(
        f"{_frames_text(count)} of {len(cloud)} splats written to {options.output}",
        file=sys.stderr,
    )


def _frames_text(count: int) -> str:
    return f"{count} frame" + "s" * (count != 1)


def _joints_text(rig: Rig) -> str:
    """Return how many joints there are, and how many of them move something, which is what Blender counts."""
    from .rigging.moving_joints import moving_joints

    moving = int(moving_joints(rig).sum())
    ends = rig.joint_count - moving
    return f"{rig.joint_count}" + f", {moving} that move and {ends} that end a chain" * (ends > 0)


def _info(options: argparse.Namespace) -> None:
    from .rigging.rig_file import is_rig

    for name, value in (_rig_facts if is_rig(options.file) else _capture_facts)(options.file):
        print(f"{name}: {value}")


def _rig_facts(path: str) -> list[tuple[str, object]]:
    from .rigging.rig_file import load_rig

    rig = load_rig(path)
    parents = ["" if parent < 0 else f" < {rig.joint_names[parent]}" for parent in rig.joint_parents]
    return [
        ("rig", path),
        ("points", rig.point_count),
        ("frames", f"{rig.frame_count} ({rig.frames.min()} to {rig.frames.max()}) at {rig.fps:g} a second"),
        ("rest pose", f"frame {rig.canonical_frame}"),
        ("bones", rig.bone_count),
        ("influences", rig.indices.shape[1]),
        ("joints", _joints_text(rig)),
        *(
            (f"  {name}{parent}", np.round(x, 4))
            for name, parent, x in zip(rig.joint_names, parents, rig.joint_positions, strict=True)
        ),
    ]


def _capture_facts(path: str) -> list[tuple[str, object]]:
    from .formats import read_capture

    capture = read_capture(path)
    valid = np.flatnonzero(capture.frame_valid)
    first = capture.positions[valid[0]]
    low, high = first.min(axis=0), first.max(axis=0)
    facts: list[tuple[str, object]] = [
        ("capture", capture.name),
        ("points", capture.point_count),
        (
            "frames",
            f"{capture.frame_count}" + (f", {len(valid)} usable" * (len(valid) < capture.frame_count)),
        ),
        ("frame rate", "unknown" if capture.fps is None else f"{capture.fps:g} a second"),
        ("up axis", capture.up or "unknown"),
        ("size", " x ".join(f"{side:.4g}" for side in high - low)),
    ]
    if capture.clips is not None:
        facts.append(("clips", len(np.unique(capture.clips))))
    if capture.skeleton is not None:
        facts.append(("given joints", len(capture.skeleton)))
    if capture.faces is not None:
        facts.append(("triangles", len(capture.faces)))
    if capture.load_cloud is not None:
        facts.append(("SH degree", capture.load_cloud(int(valid[0])).sh_degree))
    return facts + [("note", note) for note in capture.notes]
