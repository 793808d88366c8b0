"""Time reading splats: one binary PLY against Blender's own importer, and sequences against their frames.

Both readers take the same file in the same process, in turns, so that a busy machine slows both; the ratio of
the medians is what counts. Run: ``python benchmarks/bench_import.py [--splats N ...] [--repeats R]``.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.formats import read_capture, read_cloud, write_cloud, write_sequence


def make_cloud(count: int, degree: int = 3, seed: int = 0) -> GaussianCloud:
    """Return a cloud of `count` random splats in a unit box."""
    rng = np.random.default_rng(seed)
    rotations = rng.standard_normal((count, 4), np.float32)
    rotations /= np.linalg.norm(rotations, axis=1, keepdims=True)
    return GaussianCloud(
        rng.random((count, 3), np.float32),
        rotations,
        np.exp(rng.standard_normal((count, 3), np.float32) * 0.3 - 6),
        rng.random(count, np.float32),
        rng.standard_normal((count, (degree + 1) ** 2, 3), np.float32) * 0.2,
    )


def seconds(action: Callable[[], object]) -> float:
    """Return how long `action` takes; what it returns is freed outside the time."""
    start = time.perf_counter()
    result = action()
    elapsed = time.perf_counter() - start
    del result
    return elapsed


def against_native(path: Path, repeats: int) -> tuple[float, float | None]:
    """Return the median seconds of our reader and of Blender's, None where this Blender has no splats."""
    try:
        import bpy
    except ImportError:
        bpy = None
    native = bpy is not None and bpy.app.version >= (5, 3)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(repeats):
        ours.append(seconds(lambda: read_cloud(path)))
        if native:
            bpy.ops.wm.read_homefile(app_template="", use_empty=True)
            theirs.append(seconds(lambda: bpy.ops.wm.ply_import(filepath=str(path))))
    return statistics.median(ours), statistics.median(theirs) if native else None


def bench_files(folder: Path, counts: list[int], repeats: int) -> None:
    """Print a line for each number of splats."""
    print(f"{'splats':>10} {'write s':>8} {'read s':>8} {'native s':>9} {'ratio':>6}")
    for count in counts:
        path = folder / f"splats_{count}.ply"
        cloud = make_cloud(count)
        written = seconds(lambda cloud=cloud, path=path: write_cloud(cloud, path))
        del cloud
        ours, theirs = against_native(path, repeats)
        native = f"{theirs:9.3f} {ours / theirs:6.2f}" if theirs else f"{'-':>9} {'-':>6}"
        print(f"{count:10,} {written:8.3f} {ours:8.3f} {native}")
        path.unlink()


def bench_sequences(folder: Path, count: int, frames: list[int]) -> None:
    """Print what a sequence costs to open and a frame of it to load."""
    print(f"\n{'frames':>10} {'splats':>10} {'open s':>8} {'frame s':>8}")
    cloud = make_cloud(count)
    for number in frames:
        target = folder / f"sequence_{number}"
        write_sequence((cloud for _ in range(number)), target, "frame", 1, number)
        start = time.perf_counter()
        capture = read_capture(target)
        opened = time.perf_counter() - start
        assert capture.load_cloud is not None
        loaded = seconds(lambda capture=capture: capture.load_cloud(0))
        print(f"{number:10,} {count:10,} {opened:8.3f} {loaded:8.3f}")


def main() -> None:
    """Parse the command line and run both benchmarks in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splats", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--frames", type=int, nargs="+", default=[2, 8, 32])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench_files(Path(folder), options.splats, options.repeats)
        bench_sequences(Path(folder), min(options.splats[-1], 20_000), options.frames)


if __name__ == "__main__":
    main()
