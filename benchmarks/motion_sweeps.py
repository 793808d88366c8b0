"""What the settings of motion matching and the size of the database do, on held-out clips.

    python benchmarks/motion_sweeps.py SEQUENCE.npz [--bones 50] [--plots FOLDER]

One fold of a fifth of the clips is held out, skeleton given where the capture brings one. Tables: patch
length; pyramid levels and step (the published iteration); number of training clips against error, coverage,
seconds to build, milliseconds a frame, and memory. With --plots, each is also drawn as an SVG.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from plots import save_plot
from sweeps import sweep_start

from gaussianimate.core.evaluate.fitted import Fitted, residual_method
from gaussianimate.core.evaluate.measure import Measurement, measure
from gaussianimate.core.evaluate.methods import METHODS
from gaussianimate.core.evaluate.run import rest_diagonal
from gaussianimate.core.evaluate.subject import Query, Training, held_out_query, training, training_rig
from gaussianimate.core.motion.coverage import coverage
from gaussianimate.core.motion.database import Residuals, build_database
from gaussianimate.core.motion.match import MatchOptions, match_motion
from gaussianimate.core.progress import no_progress
from gaussianimate.core.rigging.build import RigOptions

PATCH_LENGTHS = (1, 3, 5, 7, 9, 11, 15)
LEVELS = (1, 2, 3, 4, 5, 6, 7)
STEPS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
CLIPS = (5, 10, 20, 30, 42)


def main() -> None:
    """Run all sweeps on one sequence."""
    options, capture, split = sweep_start(__doc__)
    skeleton = "extracted" if capture.skeleton is None else "given"
    rig = training_rig(capture, split, RigOptions(max_bones=options.bones, skeleton=skeleton)).rig
    learned = training(capture, split, rig)
    query, rows = held_out_query(capture, split, learned)
    test = split.test[np.lexsort((split.test, capture.clips[split.test]))]
    asked = query, rows, rig.rest, capture.positions[test], rest_diagonal(capture)

    def error(setting: MatchOptions) -> Measurement:
        return measure(matching(learned, setting), *asked, build_seconds=0.0)

    for name, values, setting in (
        ("patch length", PATCH_LENGTHS, lambda v: MatchOptions(patch_length=v)),
        ("pyramid levels", LEVELS, lambda v: MatchOptions(blend="paper", levels=v)),
        ("step lambda_alpha", STEPS, lambda v: MatchOptions(blend="paper", step=v)),
    ):
        found = [error(setting(value)) for value in values]
        curve = [one.rmse_percent_diagonal for one in found]
        print(f"\n| {name} | " + " | ".join(map(str, values)) + " |\n" + "| --- " * (len(values) + 1) + "|")
        print("| RMSE % | " + " | ".join(f"{x:.3f}" for x in curve) + " |")
        print("| ms/frame | " + " | ".join(f"{one.ms_per_frame:.2f}" for one in found) + " |", flush=True)
        save_plot(options.plots, name, values, {"match": curve})
    sweep_clips(learned, capture.clips[learned.rig.frames], asked, options.plots)


def matching(learned: Training, setting: MatchOptions) -> Fitted:
    """Partwise matching with other settings."""

    def answer(query: Query) -> Residuals:
        return match_motion(learned.database, query.rotations, query.clips, query.fps, setting)

    return residual_method(learned, answer, 0)


def sweep_clips(learned: Training, clips: np.ndarray, asked: tuple, plots: Path | None) -> None:
    """Databases of the first so many training clips, in random order, under the same outer bones."""
    order = np.random.default_rng(42).permutation(np.unique(clips))
    counts = sorted({min(count, len(order)) for count in CLIPS})
    curves: dict[str, list[float]] = {"match": [], "kernel": [], "auto": []}
    print("\n| clips | coverage, degrees | match | kernel | auto | auto: build s | ms/frame | MB |")
    print("| --- " * 8 + "|")
    for count in counts:
        few = with_clips(learned, clips, order[:count])
        near = np.degrees(coverage(few.database, asked[0].rotations).overall.mean())
        found = {}
        for name in curves:
            start = time.perf_counter()
            fitted = METHODS[name](few, no_progress)
            spent = time.perf_counter() - start
            found[name] = measure(fitted, *asked, build_seconds=spent)
            curves[name].append(found[name].rmse_percent_diagonal)
        auto = found["auto"]
        errors = " | ".join(f"{curves[name][-1]:.3f}" for name in curves)
        costs = f"{auto.build_seconds:.1f} | {auto.ms_per_frame:.2f} | {auto.memory_mb:.1f}"
        print(f"| {count} | {near:.1f} | {errors} | {costs} |", flush=True)
    save_plot(plots, "database clips", counts, curves)


def with_clips(learned: Training, clips: np.ndarray, chosen: np.ndarray) -> Training:
    """What there is to learn from, of some clips only."""
    keep = np.flatnonzero(np.isin(clips, chosen))
    rig = replace(
        learned.rig,
        bone_transforms=learned.rig.bone_transforms[keep],
        joint_rotations=learned.rig.joint_rotations[keep],
        root_translations=learned.rig.root_translations[keep],
        frames=learned.rig.frames[keep],
    )
    start = time.perf_counter()
    database = build_database(rig, clips[keep], learned.database.up)
    return Training(rig, learned.positions[keep], database, time.perf_counter() - start)


if __name__ == "__main__":
    main()
