"""``python -m gaussianimate refine``: a rig file and more captures to a better rig file."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..progress import Progress

if TYPE_CHECKING:
    from ..capture import Capture


def add_refine(commands: Any, progress: Callable[[], Progress]) -> None:
    """Add the command to the parser of the program.

    progress : makes what tells the user how far it is
    """
    refine = commands.add_parser("refine", help="refine a rig by more captures of its asset")
    refine.add_argument("rig", metavar="RIG.npz")
    refine.add_argument("capture", metavar="CAPTURE", help="what the rig was built from")
    refine.add_argument("more", nargs="+", metavar="NEW", help="further captures of the same points")
    refine.add_argument("-o", "--output", required=True, metavar="RIG2.npz")
    refine.add_argument("--max-bones", type=int, default=50, help="most outer bones (default 50)")
    refine.add_argument("--no-new-joints", action="store_true", help="leave the skeleton as it is")
    refine.add_argument("--keep-joints", action="store_true", help="remove no joint, whatever is shown")
    refine.add_argument("--json", action="store_true", help="print the report as one JSON object, last line")
    refine.set_defaults(run=lambda options: _refine(options, progress()), needs=("scipy",))


def _refine(options: argparse.Namespace, progress: Progress) -> None:
    from ..cli_output import require_output
    from ..formats.sources import find_files
    from ..rigging.rig_file import load_rig, save_rig
    from .refine import RefineOptions, refine_rig

    chosen = RefineOptions(options.max_bones, not options.no_new_joints, options.keep_joints)
    chosen.check()
    sources = [path for source in (options.capture, *options.more) for path in find_files(source)[0]]
    require_output(options.output, ".npz", [Path(options.rig), *sources])
    rig = load_rig(options.rig)
    result = refine_rig(rig, _joined(options.capture, options.more), chosen, progress)
    save_rig(result.rig, options.output)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    for note in result.report.notes:
        print(f"note: {note}", file=sys.stderr)
    if options.json:
        print(json.dumps(asdict(result.report)))
    else:
        for sentence in result.report.sentences():
            print(sentence)


def _joined(first: str, more: list[str]) -> Capture:
    from ..formats import read_capture
    from ..joined_capture import join_captures

    capture = read_capture(first)
    for source in more:
        capture = join_captures(capture, read_capture(source))
    return capture
