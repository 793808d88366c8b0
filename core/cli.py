"""``python -m gaussianimate COMMAND``: the product without Blender.

Here are rig, pose and bake; the others lie beside what they call.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .bone_poses import add_secondary, bone_poses
from .cli_console import console_progress, prepare_streams, printable
from .cli_info import add_info, joints_text
from .cli_needs import needed
from .errors import GaussiAnimateError, RigError
from .evaluate.command import add_evaluate
from .peak_memory import peak_memory_mb
from .refine.command import add_refine
from .resample.command import add_epsilon, add_resample, add_train_dictionary, resample_options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code: 0, or 1 after an error (one sentence on stderr)."""
    prepare_streams()
    parser = _parser()
    options = parser.parse_args(arguments)
    _refuse_empty(parser, options)
    try:
        with needed(options.needs if "needs" in options else ()):
            options.run(options)
    except GaussiAnimateError as error:
        print(f"gaussianimate: {printable(str(error))}", file=sys.stderr)
        return 1
    except MemoryError:
        print("gaussianimate: not enough memory; use fewer frames or splats.", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader (head, less) has seen enough
        sys.stdout = None
        return 0
    except OSError as error:  # a disk that fails, a name no file can have
        where = f"{error.filename}: " if error.filename else ""
        print(f"gaussianimate: {printable(f'{where}{error.strerror or error}')}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("gaussianimate: cancelled.", file=sys.stderr)
        return 1
    return 0


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

    add_info(commands)

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

    add_refine(commands, console_progress)
    add_evaluate(commands, console_progress)
    add_resample(commands, console_progress)
    add_train_dictionary(commands, console_progress)
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
    result = build_rig(capture, chosen, console_progress())
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
                value = joints_text(rig)
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
        transforms = bone_poses(rig, motion, options.secondary, console_progress())
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
    transforms = bone_poses(rig, motion, options.secondary, console_progress())
    if options.resample is not None:
        from .resample.resample import resample

        found = resample(
            cloud, skin, transforms, resample_options(options.resample), progress=console_progress()
        )
        cloud, skin, notes = found.cloud, found.skin, notes + found.notes
    count = len(transforms)
    posed = (deform_cloud(cloud, skin, pose) for pose in transforms)
    _, left_out = write_sequence(
        posed, options.output, Path(options.cloud).stem, 0, count, console_progress()
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
