"""Held-out poses: every method on every sequence, as the tables of docs/evaluation.md.

    python benchmarks/evaluate.py SEQUENCE.npz ... [--methods lbs,bob,...] [--skeleton given|extracted]

Three folds of a fifth of the clips, whole, then every fifth frame; RMSE in % of the rest pose's diagonal, and
of the mean fold the 95th percentile, milliseconds a frame, seconds to learn, and memory. Where a sequence has
too few clips, only every fifth frame is held out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gaussianimate.core.errors import CaptureError
from gaussianimate.core.evaluate.measure import Measurement
from gaussianimate.core.evaluate.methods import method_fits
from gaussianimate.core.evaluate.protocol import every_split, fold_splits
from gaussianimate.core.evaluate.run import SplitReport, evaluate
from gaussianimate.core.formats import read_capture
from gaussianimate.core.rigging.build import RigOptions

METHODS = "lbs,bob,knn,ridge,mlp,gru,mlp+,gru+,fullmm,match,kernel,auto"
FOLDS = 3


def main() -> None:
    """Measure each sequence and print its table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sequences", nargs="+", type=Path)
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--skeleton", choices=("given", "extracted"))
    parser.add_argument("--bones", type=int, default=50)
    options = parser.parse_args()
    fits = method_fits(tuple(options.methods.split(",")))
    for path in options.sequences:
        capture = read_capture(path)
        skeleton = options.skeleton or ("extracted" if capture.skeleton is None else "given")
        try:
            splits = fold_splits(capture, FOLDS)
        except CaptureError as error:
            print(error, file=sys.stderr)
            splits = []
        rig_options = RigOptions(max_bones=options.bones, skeleton=skeleton)
        reports = evaluate(capture, [*splits, every_split(capture, 5)], fits, rig_options, _show)
        print(f"\n{path.stem}, skeleton {skeleton}\n\n{table(reports)}", flush=True)
        print("\n".join(f"{r.split}: {note}" for r in reports for note in r.notes))


def table(reports: list[SplitReport]) -> str:
    """Markdown: a row a method, a column a fold, then their mean, and the frames held out singly."""
    folds, single = reports[:-1], reports[-1]
    names = [report.split for report in folds]
    lines = [
        "| method | " + " | ".join([*names, "mean", "p95", "ms/frame", "build s", "MB", single.split]) + " |",
        "| --- " * (len(names) + 7) + "|",
    ]
    for name in ("floor", *single.methods):
        several = [_of(report, name) for report in folds] or [_of(single, name)]
        mean = Measurement.mean(several)
        cells = [
            *(f"{one.rmse_percent_diagonal:.3f}" for one in several[: len(folds)]),
            f"{mean.rmse_percent_diagonal:.3f}",
            f"{mean.p95_percent_diagonal:.2f}",
            f"{mean.ms_per_frame:.2f}",
            f"{mean.build_seconds:.1f}",
            f"{mean.memory_mb:.1f}",
            f"{_of(single, name).rmse_percent_diagonal:.3f}",
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _of(report: SplitReport, name: str) -> Measurement:
    return report.floor if name == "floor" else report.methods[name]


def _show(stage: str, fraction: float) -> None:
    if ": " in stage:
        print(stage, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
