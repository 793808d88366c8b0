"""What the joint threshold and the rest pose do to joints that are found in the motion, and to answers.

    python benchmarks/skeleton_sweeps.py SEQUENCE.npz [--bones 50] [--plots FOLDER]

One fold of a fifth of the clips is held out. Each rig is built on the other frames; told are its joints, the
error of the replay by its skeleton alone, and those on the held-out frames: RMSE in % of the rest diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from plots import save_plot
from sweeps import sweep_start

from gaussianimate.core.capture import Capture
from gaussianimate.core.evaluate.methods import method_fits
from gaussianimate.core.evaluate.protocol import Split
from gaussianimate.core.evaluate.run import evaluate_split, rest_diagonal
from gaussianimate.core.evaluate.subject import training_rig
from gaussianimate.core.rigging.build import RigOptions

THRESHOLDS = (0.2, 0.25, 0.3, 0.35, 0.4)
METHODS = ("lbs", "bob", "auto")


@dataclass(frozen=True)
class Row:
    """Joints of a rig, and errors: of the replay by the skeleton, then of methods on held-out frames."""

    joints: int
    errors: dict[str, float]


def main() -> None:
    """Run both sweeps on one sequence."""
    options, capture, split = sweep_start(__doc__)
    base = RigOptions(max_bones=options.bones, skeleton="extracted")
    known: dict[RigOptions, Row] = {}

    def row(setting: RigOptions) -> Row:
        if setting not in known:
            known[setting] = measured(capture, split, setting)
        return known[setting]

    thresholds = {tau: replace(base, joint_threshold=tau) for tau in THRESHOLDS}
    frames = canonical_frames(capture.take_frames(split.train))
    poses = {name: replace(base, canonical_frame=frame) for name, frame in frames.items()}
    for title, settings in (("joint threshold", thresholds), ("rest pose", poses)):
        rows = [row(setting) for setting in settings.values()]
        print("\n" + table(title, list(settings), rows), flush=True)
        errors = {name: [one.errors[name] for one in rows] for name in rows[0].errors}
        save_plot(options.plots, title, list(settings), errors, prefix="skeleton")
        joints = {"joints": [float(one.joints) for one in rows]}
        save_plot(options.plots, f"{title} joints", list(settings), joints, "number", prefix="skeleton")


def canonical_frames(capture: Capture) -> dict[str, int]:
    """The candidates for the rest pose, all of them frames of the capture."""
    usable = np.flatnonzero(capture.frame_valid)
    sizes = np.linalg.norm(np.ptp(capture.positions[usable].astype(np.float64), axis=1), axis=-1)
    chosen = usable[0], usable[len(usable) // 2], usable[-1], usable[sizes.argmax()]
    return dict(zip(("first", "middle", "last", "largest box"), map(int, chosen), strict=True))


def measured(capture: Capture, split: Split, options: RigOptions) -> Row:
    """Build a rig on the training frames and measure it."""
    built = training_rig(capture, split, options)
    rig, report = built.rig, built.report
    found = evaluate_split(capture, split, rig, method_fits(METHODS))
    own = float(np.linalg.norm(np.ptp(rig.rest.astype(np.float64), axis=0)))  # what the report's % are of
    errors = {"skeleton alone": report.skeleton_rmse_percent * own / rest_diagonal(capture)}
    return Row(
        rig.joint_count, errors | {name: one.rmse_percent_diagonal for name, one in found.methods.items()}
    )


def table(title: str, settings: list, rows: list[Row]) -> str:
    """Markdown: a column a setting."""
    lines = [f"| {title} | " + " | ".join(map(str, settings)) + " |", "| --- " * (len(rows) + 1) + "|"]
    lines.append("| joints | " + " | ".join(str(row.joints) for row in rows) + " |")
    for name in rows[0].errors:
        lines.append(f"| {name} | " + " | ".join(f"{row.errors[name]:.3f}" for row in rows) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
