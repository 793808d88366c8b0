"""Time of the deformation against the number of splats and of influences.

Run: ``python benchmarks/bench_deform.py [--splats 10000 100000 1000000] [--influences 1 2 4] [--torch]``.
Prints microseconds a splat (the smallest of the runs), and what one frame of a bake takes.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.deform.deform import deform_cloud, deform_points
from gaussianimate.core.deform.elastic import elastic_limits
from gaussianimate.core.rotations import normalize_quaternions, quaternion_to_matrix
from gaussianimate.core.skinning.gradients import weight_gradients
from gaussianimate.core.skinning.skin import Skin

BONES = 50


def scene(count: int, influences: int) -> tuple[GaussianCloud, Skin, np.ndarray]:
    """Return a random cloud of degree 3 on a sphere, its skin, and a pose of 50 bones."""
    rng = np.random.default_rng(0)
    positions = rng.normal(size=(count, 3)).astype(np.float32)
    positions /= np.linalg.norm(positions, axis=1, keepdims=True)
    cloud = GaussianCloud(
        positions,
        normalize_quaternions(rng.normal(size=(count, 4))).astype(np.float32),
        rng.uniform(0.001, 0.02, (count, 3)).astype(np.float32),
        rng.random(count, dtype=np.float32),
        rng.normal(size=(count, 16, 3)).astype(np.float32),
    )
    indices = rng.integers(0, BONES, (count, influences)).astype(np.int32)
    weights = rng.dirichlet(np.ones(influences), count).astype(np.float32)
    gradients = rng.normal(size=(count, influences, 3)).astype(np.float32)
    gradients -= gradients.mean(axis=1, keepdims=True)
    turns = quaternion_to_matrix(normalize_quaternions(rng.normal(size=(BONES, 4)) * 0.3 + [1, 0, 0, 0]))
    pose = np.concatenate([turns, 0.1 * rng.normal(size=(BONES, 3, 1))], axis=-1)
    return cloud, Skin(indices, weights, gradients), pose


def seconds(task: Callable[[], object], runs: int) -> float:
    """Return the shortest of ``runs`` times."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def peak(task: Callable[[], object]) -> float:
    """Return the most memory a task holds at once, MB, its result included."""
    tracemalloc.start()
    task()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 2**20


def main() -> None:
    """Print one row for every number of splats and influences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splats", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--influences", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--torch", action="store_true")
    options = parser.parse_args()
    columns = ["points", "points DQ", "shape", "bake SH3", "limits", "gradients"] + ["torch"] * options.torch
    print(
        f"{'splats':>9} {'K':>2} " + " ".join(f"{name:>10}" for name in columns) + "   us/splat; bake s, MB"
    )
    for count in options.splats:
        for influences in options.influences:
            cloud, skin, pose = scene(count, influences)
            tasks: list[Callable[[], object]] = [
                lambda: deform_points(cloud.positions, skin, pose),  # noqa: B023
                lambda: deform_points(cloud.positions, skin, pose, blend="dual_quaternion"),  # noqa: B023
                lambda: deform_cloud(cloud, skin, pose, rotate_sh=False),  # noqa: B023
                lambda: deform_cloud(cloud, skin, pose),  # noqa: B023
                lambda: elastic_limits(cloud, skin, pose),  # noqa: B023
                lambda: weight_gradients(cloud.positions, skin.indices, skin.weights),  # noqa: B023
            ]
            if options.torch:
                from gaussianimate.core.deform import torch_deform

                tasks.append(lambda: torch_deform.deform_cloud(cloud, skin, pose))  # noqa: B023
            spent = [seconds(task, options.runs) for task in tasks]
            row = " ".join(f"{1e6 * t / count:10.2f}" for t in spent)
            print(f"{count:9d} {influences:2d} {row}   {spent[3]:.2f} s, {peak(tasks[3]):.0f} MB")


if __name__ == "__main__":
    main()
