"""How the sweeps over settings start: one sequence, one fold of its clips held out."""

from __future__ import annotations

import argparse
from pathlib import Path

from gaussianimate.core.capture import Capture
from gaussianimate.core.evaluate.protocol import Split, fold_splits
from gaussianimate.core.formats import read_capture


def sweep_start(description: str | None) -> tuple[argparse.Namespace, Capture, Split]:
    """Read the arguments `bones` and `plots`, and the sequence; split it."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sequence", type=Path)
    parser.add_argument("--bones", type=int, default=50)
    parser.add_argument("--plots", type=Path)
    options = parser.parse_args()
    capture = read_capture(options.sequence)
    (split,) = fold_splits(capture, 1)
    return options, capture, split
