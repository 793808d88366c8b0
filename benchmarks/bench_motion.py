"""Time of answering poses from a motion database, live and offline, and of building one.

Run: ``python benchmarks/bench_motion.py [--frames 650 2600] [--runs 200]``. A body of 20 joints in 15 parts
and 50 outer bones swings in clips of 50 frames; queries are motions that were not captured. Prints the median
and the slowest twentieth in milliseconds. Set OPENBLAS_NUM_THREADS to the number of cores meant.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from gaussianimate.core.motion.coverage import coverage, pose_search
from gaussianimate.core.motion.database import MotionDatabase, build_database, full_body
from gaussianimate.core.motion.live import LiveMatcher
from gaussianimate.core.motion.match import MatchOptions, match_motion
from gaussianimate.core.motion.so3 import quaternion_exp
from gaussianimate.core.rigging.rig import Rig
from gaussianimate.core.rigging.skeleton.kinematics import joint_transforms

BONES, CLIP, FPS = 50, 50, 24.0
# Pelvis, three spine joints, neck, head, and four limbs of three or four.
PARENTS = np.array([-1, 0, 1, 2, 3, 4, 3, 6, 7, 3, 9, 10, 0, 12, 13, 14, 0, 16, 17, 18], np.int32)


def motion(frames: int, seed: int) -> np.ndarray:
    """Return smooth random local rotations (F, J, 4)."""
    rng = np.random.default_rng(seed)
    phase = np.arange(frames)[:, None, None] / FPS * rng.uniform(1, 6, (1, len(PARENTS), 1))
    swing = rng.normal(size=(1, len(PARENTS), 3)) * np.sin(phase + rng.uniform(0, 6, (1, len(PARENTS), 1)))
    return quaternion_exp(0.5 * swing)


def body_rig(frames: int) -> Rig:
    """Return a rig of `frames` poses whose bones sway about their joints."""
    rng = np.random.default_rng(0)
    count = frames // CLIP
    rotations = np.concatenate([motion(CLIP, seed) for seed in range(count)])
    joints = rng.normal(size=(len(PARENTS), 3)).cumsum(axis=0) * 0.1
    carriers = rng.permutation(np.arange(BONES) % len(PARENTS)).astype(np.int32)
    roots = np.zeros((len(rotations), 3))
    transforms = joint_transforms(PARENTS, joints, rotations, roots)[:, carriers]
    transforms[..., 3] += 0.02 * rng.normal(size=transforms[..., 3].shape)
    rest = joints[carriers][:, None] + 0.1 * rng.normal(size=(BONES, 30, 3))
    return Rig(
        rest=rest.reshape(-1, 3).astype(np.float32),
        indices=np.repeat(np.arange(BONES), 30)[:, None].astype(np.int32),
        weights=np.ones((30 * BONES, 1), np.float32),
        bone_transforms=transforms,
        joint_names=tuple(map(str, range(len(PARENTS)))),
        joint_parents=PARENTS,
        joint_positions=joints,
        bone_joints=carriers,
        joint_rotations=rotations,
        root_translations=roots,
        frames=np.tile(np.arange(CLIP, dtype=np.int32), count),
        fps=FPS,
        canonical_frame=0,
        clips=np.repeat(np.arange(count, dtype=np.int32), CLIP),
    )


def database(frames: int) -> MotionDatabase:
    """Return the database of `body_rig`."""
    rig = body_rig(frames)
    start = time.perf_counter()
    built = build_database(rig, rig.clips)
    megabytes = built.nbytes / 1e6
    seconds = time.perf_counter() - start
    print(f"{built.frame_count} frames, {len(built.parts)} parts: {seconds:.2f} s, {megabytes:.1f} MB")
    return built


def report(name: str, task: Callable[[int], object], runs: int, frames: int = 1) -> None:
    """Print what a task takes, milliseconds a frame."""
    task(0)
    times = []
    for run in range(runs):
        start = time.perf_counter()
        task(run)
        times.append((time.perf_counter() - start) * 1000 / frames)
    print(f"  {name:34s} median {np.median(times):7.2f} ms   95 % {np.percentile(times, 95):7.2f} ms")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, nargs="+", default=[650, 2600])
    parser.add_argument("--runs", type=int, default=200)
    arguments = parser.parse_args()
    query = motion(arguments.runs + 8, 12345)
    for frames in arguments.frames:
        data = database(frames)
        matcher, search = LiveMatcher(data), pose_search(data)
        report("live, one pose", lambda run, m=matcher: m.pose(query[run]), arguments.runs)
        report("live, with history", lambda run, m=matcher: m.history(query[run : run + 7]), arguments.runs)
        report("coverage", lambda run, d=data, s=search: coverage(d, query[run][None], s), arguments.runs)
        whole = full_body(data)
        for name, keys, options in (
            ("match, a frame", data, MatchOptions()),
            ("whole body, a frame", whole, MatchOptions()),
            ("pyramid of 5, a frame", data, MatchOptions(blend="paper")),
        ):
            report(name, lambda _, k=keys, o=options: match_motion(k, query[:100], options=o), 3, 100)


if __name__ == "__main__":
    main()
