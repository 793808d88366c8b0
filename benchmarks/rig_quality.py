"""How good rigs are, where the truth is known.

    python benchmarks/rig_quality.py SEQUENCE.npz ... [--bones 50]

Prints a row a sequence: bones, joints, ends; SSDR and skeleton-only replay RMSE and the latter's limit (twice
the former plus 1); medians of the distance of true joints to the nearest of ours and back; joints outside the
surface; seconds of each stage. Errors and distances: % of the rest pose's box diagonal. Root and IK targets
are no true joints; fingers need not be found, but may be.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

from gaussianimate.core.formats import read_capture
from gaussianimate.core.rigging.build import RigOptions, build_rig
from gaussianimate.core.rigging.curves.inside import inside
from gaussianimate.core.rigging.curves.surface import closed_surface

NO_JOINT = re.compile(r"^_?(root|bone$|b_root)|IK|control|slot|pole", re.IGNORECASE)
FINGER = re.compile(r"thumb|index|middle|ring|pinky|palm|hand\.[lr]$", re.IGNORECASE)
STAGES = ("ssdr", "surface", "curve", "joints")


def main() -> None:
    """Rig each sequence and print its row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sequences", nargs="+", type=Path)
    parser.add_argument("--bones", type=int, default=50)
    options = parser.parse_args()
    print(
        f"{'sequence':<20}{'bones':>6}{'joints':>7}{'ends':>5}{'SSDR':>8}{'skeleton':>9}{'limit':>7}"
        f"{'true>ours':>10}{'ours>true':>10}{'outside':>8}  seconds {' '.join(STAGES)}"
    )
    for path in options.sequences:
        print(row(path, options.bones), flush=True)


def row(path: Path, bones: int) -> str:
    """Rig one sequence and return its row."""
    capture = read_capture(path)
    built = build_rig(capture, RigOptions(max_bones=bones, skeleton="extracted"))
    rig, report = built.rig, built.report
    ours = rig.joint_positions
    there, back = joint_distances(path, rig.canonical_frame, ours, rig.rest)
    surface = closed_surface(rig.rest, capture.faces)
    ends = len(ours) - len(np.unique(rig.joint_parents[1:]))
    seconds = " ".join(f"{report.seconds.get(stage, 0):.1f}" for stage in STAGES)
    return (
        f"{path.stem:<20}{rig.bone_count:>6}{len(ours):>7}{ends:>5}{report.rmse_percent:>8.4f}"
        f"{report.skeleton_rmse_percent:>9.3f}{1 + 2 * report.rmse_percent:>7.2f}{there:>10.2f}{back:>10.2f}"
        f"{(~inside(surface, ours)).sum():>8}  {seconds}"
    )


def joint_distances(path: Path, frame: int, ours: np.ndarray, rest: np.ndarray) -> tuple[float, float]:
    """Return the medians (true to ours, ours to true) in % of the diagonal; NaN without a truth."""
    with np.load(path, allow_pickle=False) as data:
        if "joints" not in data:
            return np.nan, np.nan
        names = [str(name) for name in data["joint_names"]]
        moving = np.array([not NO_JOINT.search(name) for name in names])
        limbs = moving & [not FINGER.search(name) for name in names]
        true = data["joints"][frame]
    percent = 100 / np.linalg.norm(np.ptp(rest, axis=0))
    there = np.median(KDTree(ours).query(true[limbs])[0])
    back = np.median(KDTree(true[moving]).query(ours)[0])
    return percent * float(there), percent * float(back)


if __name__ == "__main__":
    main()
