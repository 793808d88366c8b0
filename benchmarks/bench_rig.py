"""Seconds of each stage of rigging against the number of splats and of frames, on the sample capture.

    python benchmarks/bench_rig.py [--bones 20]

The smallest run is the unit: read the columns as ratios, as machines differ.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from sample import load_sample

from gaussianimate.core.formats import mesh_to_splats
from gaussianimate.core.rigging.build import RigOptions, build_rig

SPLATS = (5_000, 20_000, 80_000)
FRAME_STEPS = (4, 2, 1)
STAGES = ("ssdr", "surface", "curve", "joints")


def main() -> None:
    """Print two tables: more splats at a quarter of the frames, more frames at the fewest splats."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bones", type=int, default=20)
    options = RigOptions(max_bones=parser.parse_args().bones)
    print(f"{'splats':>8}{'frames':>8}" + "".join(f"{stage:>10}" for stage in STAGES) + f"{'error %':>10}")
    runs = [(count, FRAME_STEPS[0]) for count in SPLATS] + [(SPLATS[0], step) for step in FRAME_STEPS[1:]]
    for count, step in runs:
        mesh = load_sample()
        mesh = replace(mesh, positions=mesh.positions[::step], frame_valid=mesh.frame_valid[::step])
        report = build_rig(mesh_to_splats(mesh, count), options).report
        seconds = "".join(f"{report.seconds[stage]:>10.2f}" for stage in STAGES)
        print(f"{count:>8}{mesh.frame_count:>8}{seconds}{report.rmse_percent:>10.3f}", flush=True)


if __name__ == "__main__":
    main()
