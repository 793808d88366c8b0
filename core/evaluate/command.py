"""``python -m gaussianimate evaluate``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

from ..capture import Capture
from ..errors import CaptureError
from ..progress import Progress

DEFAULT_METHODS = "lbs,bob,knn,ridge,fullmm,partmm"


def add_evaluate(commands: argparse._SubParsersAction, console: Callable[[], Progress]) -> None:
    """Add the verb to the command line; `console` makes what shows progress."""
    parser = commands.add_parser("evaluate", help="measure how well poses that were held out are answered")
    parser.add_argument("capture", metavar="CAPTURE", help="folder, pattern or file of a sequence")
    parser.add_argument(
        "--skeleton",
        choices=("given", "extracted"),
        help="the capture's own joints (default where it brings some), or joints found in the training "
        "frames, whose poses are then fitted to the held-out ones",
    )
    held_out = parser.add_mutually_exclusive_group()
    held_out.add_argument(
        "--test-fraction", type=float, metavar="SHARE", help="hold out this share of the clips (default 0.2)"
    )
    held_out.add_argument("--test-clips", type=_names, metavar="A,B", help="hold out these clips")
    held_out.add_argument(
        "--folds", type=int, metavar="N", help="hold out a fifth of the clips, N times, never the same twice"
    )
    held_out.add_argument("--every", type=int, metavar="N", help="hold out every N-th frame")
    parser.add_argument(
        "--methods",
        type=_names,
        default=_names(DEFAULT_METHODS),
        metavar="A,B",
        help="of lbs, bob, knn, ridge, mlp, gru (poses), mlp+, gru+ (poses, velocities, root motion), "
        f"fullmm, partmm, match, kernel, auto (default {DEFAULT_METHODS})",
    )
    parser.add_argument(
        "--partmm", choices=("match", "kernel", "auto"), default="auto", help="what partmm is (default auto)"
    )
    parser.add_argument("--max-bones", type=int, default=50, help="most outer bones (default 50)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.set_defaults(run=lambda options: _run(options, console()), needs=("scipy",))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _run(options: argparse.Namespace, progress: Progress) -> None:
    from ..formats import read_capture
    from ..rigging.build import RigOptions
    from .methods import method_fits
    from .report import as_object, table
    from .run import evaluate

    fits = method_fits(options.methods, options.partmm)
    capture = read_capture(options.capture)
    skeleton = options.skeleton or ("extracted" if capture.skeleton is None else "given")
    rig_options = RigOptions(max_bones=options.max_bones, skeleton=skeleton)
    rig_options.check()
    if skeleton == "given" and capture.skeleton is None:
        raise CaptureError(f"{capture.name} brings no skeleton; evaluate it with --skeleton extracted.")
    reports = evaluate(capture, _splits(options, capture), fits, rig_options, progress)
    given = skeleton == "given"
    if options.json:
        print(json.dumps(as_object(capture, reports, given, options.partmm)))
    else:
        print(table(reports, given))


def _splits(options: argparse.Namespace, capture: Capture) -> list:
    from .protocol import FIFTH, clip_split, every_split, fold_splits, fraction_split

    if options.folds is not None:
        return fold_splits(capture, options.folds)
    if options.every is not None:
        return [every_split(capture, options.every)]
    if options.test_clips is not None:
        return [clip_split(capture, options.test_clips)]
    return [fraction_split(capture, FIFTH if options.test_fraction is None else options.test_fraction)]
