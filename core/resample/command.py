"""``python -m gaussianimate resample`` and ``train-dictionary``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..bone_poses import add_secondary, bone_poses
from ..errors import FormatError, RigError
from ..progress import Progress

if TYPE_CHECKING:
    from ..rigging.rig import Rig
    from .resample import Resampled, ResampleOptions


def add_resample(commands: argparse._SubParsersAction, console: Callable[[], Progress]) -> None:
    """Add the verb to the command line; `console` makes what shows progress."""
    parser = commands.add_parser("resample", help="split the splats that a motion would stretch out of shape")
    parser.add_argument("cloud", metavar="CLOUD.ply", help="splats of the rest pose")
    parser.add_argument("--rig", required=True, metavar="RIG.npz")
    parser.add_argument(
        "--motion", metavar="MOTION.npz", help="the poses that matter (default: the capture's)"
    )
    add_secondary(parser)
    parser.add_argument("-o", "--output", required=True, metavar="OUT.ply")
    parser.add_argument(
        "--rig-output", metavar="RIG.npz", help="write the rig with these splats and their own weights too"
    )
    parser.add_argument(
        "--mode",
        choices=("adaptive", "uniform"),
        default="adaptive",
        help="split where the motion asks for it (default), or every splat once",
    )
    add_epsilon(parser, "--epsilon", "auto")
    parser.add_argument(
        "--criterion",
        choices=("hybrid", "estimate", "bound", "sampled", "paper"),
        default="hybrid",
        help="how the error is found: in closed form (hybrid, default), or by samples (paper: 512)",
    )
    parser.add_argument("--lookup", choices=("nearest", "trilinear"), default="nearest")
    parser.add_argument(
        "--budget",
        type=float,
        default=3.0,
        help="most splats in adaptive mode, times the given (default 3)",
    )
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")
    parser.set_defaults(run=lambda options: _resample(options, console()))


def add_epsilon(parser: argparse.ArgumentParser, name: str, default: str | None) -> None:
    """Add an option that takes an error in metres, or "auto"."""
    parser.add_argument(
        name,
        type=epsilon,
        default=default,
        metavar="auto|METRES",
        help="largest error of a splat under the motion; auto tries 1, 0.5, 0.2 and so on to 0.001 until "
        "hardly anything sticks out" + (" (default)" if default else ""),
    )


def epsilon(text: str) -> float | str:
    """Return "auto", or an error above 0 that single precision can hold."""
    if text == "auto":
        return text
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= float(np.finfo(np.float32).max):
        raise argparse.ArgumentTypeError(f"{text!r} is neither auto nor a length above 0, such as 0.01")
    return value


def resample_options(value: float | str, **others: object) -> ResampleOptions:
    """Return the options of an ``epsilon`` from the command line."""
    from .resample import ResampleOptions

    return ResampleOptions(epsilon=None if value == "auto" else float(value), **others)  # type: ignore[arg-type]


def _resample(options: argparse.Namespace, progress: Progress) -> None:
    from ..cli_output import require_output
    from ..formats import read_cloud
    from ..rigging.motion_file import load_motion
    from ..rigging.posing import rows_for_cloud
    from ..rigging.rig_file import load_rig
    from ..skinning.skin import make_skin
    from .resample import resample, split_all

    inputs = list(filter(None, (options.cloud, options.rig, options.motion)))
    require_output(options.output, ".ply", inputs)
    if options.rig_output:
        require_output(options.rig_output, ".npz", inputs)
    chosen = resample_options(
        options.epsilon, criterion=options.criterion, lookup=options.lookup, budget=options.budget
    )
    chosen.check()
    rig = load_rig(options.rig)
    cloud, notes = read_cloud(options.cloud)
    rows = rows_for_cloud(rig, cloud.positions, options.cloud)
    skin = make_skin(cloud.positions, rig.indices[rows], rig.weights[rows], bone_count=rig.bone_count)
    if options.mode == "uniform":
        found = split_all(cloud, skin, lookup=options.lookup)
    else:
        poses = rig.bone_transforms
        if options.motion:
            motion = load_motion(options.motion, rig)
            poses = bone_poses(rig, motion, options.secondary, progress)
        found = resample(cloud, skin, poses, chosen, progress=progress)
    _write(found, rig, options)
    for note in (*notes, *found.notes):
        print(f"note: {note}", file=sys.stderr)
    _report(found, len(cloud), options)


def _write(found: Resampled, rig: Rig, options: argparse.Namespace) -> None:
    """Write the splats, and their rig where it is asked for: both or none."""
    from ..atomic_file import replacing
    from ..formats import write_cloud

    if not options.rig_output:
        write_cloud(found.cloud, options.output)
        return
    with replacing(Path(options.output)) as whole:
        try:
            write_cloud(found.cloud, whole)
        except FormatError as error:  # the name it was written under is nobody's business
            raise FormatError(options.output, error.problem) from error
        _save_rig(rig, found, options.rig_output)


def _save_rig(rig: Rig, found: Resampled, path: str) -> None:
    from dataclasses import replace

    from ..rigging.rig_file import save_rig

    skin = found.skin
    save_rig(replace(rig, rest=found.cloud.positions, indices=skin.indices, weights=skin.weights), path)


def _report(found: Resampled, before: int, options: argparse.Namespace) -> None:
    if options.json:
        depths = np.bincount(found.depths, minlength=1).tolist()
        figures = {
            "before": before,
            "after": len(found.cloud),
            "epsilon": found.epsilon,
            "passes": list(found.passes),
            "left": found.left,
            "depths": depths,
        }
        print(json.dumps(figures))
        return
    reached = "" if found.epsilon is None else f", epsilon {found.epsilon:g} m"
    print(f"{before} splats became {len(found.cloud)}{reached}, written to {options.output}", file=sys.stderr)


def add_train_dictionary(commands: argparse._SubParsersAction, console: Callable[[], Progress]) -> None:
    """Add the verb to the command line; `console` makes what shows progress."""
    parser = commands.add_parser(
        "train-dictionary",
        help="compute the dictionary of splits anew (needs torch)",
        description="Compute the dictionary that says how splats of every shape and opacity are split. A "
        "training that was interrupted is taken up when the same command is given again.",
    )
    parser.add_argument("-o", "--output", required=True, metavar="DICTIONARY.npz")
    parser.add_argument(
        "--conditioning",
        type=float,
        default=0.002,
        metavar="TAU",
        help="higher: smaller children (default 0.002)",
    )
    parser.add_argument(
        "--loss",
        choices=("relative", "absolute"),
        default="relative",
        help="errors relative to the parent's opacity (default), or absolute as published",
    )
    parser.add_argument("--iterations", type=int, default=700, help="steps for every entry (default 700)")
    parser.add_argument("--rays", type=int, default=1024, help="rays of every step (default 1024)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="CPU threads (default: all)")
    parser.set_defaults(run=lambda options: _train(options, console()), needs=("torch",))


def _train(options: argparse.Namespace, progress: Progress) -> None:
    import torch

    from ..cli_output import require_output
    from .trainer import train_dictionary
    from .training_state import TrainingSettings

    require_output(options.output, ".npz")
    if options.threads is not None:
        if options.threads < 1:
            raise RigError(f"There cannot be {options.threads} threads; use 1 or more.")
        torch.set_num_threads(options.threads)
    settings = TrainingSettings(
        conditioning=options.conditioning,
        loss=options.loss,
        iterations=options.iterations,
        rays=options.rays,
        seed=options.seed,
    )
    dictionary = train_dictionary(options.output, settings, progress)
    ratios = dictionary.table("diameter_ratio")
    print(
        f"Children have {100 * ratios.mean():.1f} % of their parent's diameter on average, and differ from "
        f"it by {100 * dictionary.rendering_error.mean():.1f} % of its opacity (root mean square), "
        f"{100 * dictionary.largest_error.max():.0f} % at most; written to {options.output}",
        file=sys.stderr,
    )
