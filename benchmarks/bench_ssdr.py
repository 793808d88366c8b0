"""Motion clusters and SSDR: error and time against points, frames and bones, and against Dem Bones.

    python benchmarks/bench_ssdr.py SEQUENCE.npz ... [--bones 10 20 50] [--threads 1]
        [--dem-python ~/dem/bin/python] [--frame-step 1] [--canonical FRAME]
    python benchmarks/bench_ssdr.py     (a made sheet against points, frames and bones, then the sample)

A sequence is an .npz with ``vertices`` [F,N,3], ``faces`` (may be empty) and, unless ``--canonical`` is
given, ``rest`` [N,3]. Dem Bones runs on the same arrays and threads right after ours, in an environment of
its own (Python 3.11 with ``benchmarks/dem_bones/requirements.txt``), once on the faces and once with
neighbours bridged; the better of the two is what we are held against. Errors are in % of the box diagonal.
The variable DEM_BONES_PYTHON stands for --dem-python.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
RUNNER = Path(__file__).parent / "dem_bones" / "run.py"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sequences", nargs="*", type=Path)
    parser.add_argument("--bones", nargs="+", type=int, default=[10, 20, 50])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--dem-python",
        type=Path,
        default=os.environ.get("DEM_BONES_PYTHON"),
        help="Python of the environment with py-dem-bones",
    )
    parser.add_argument("--frame-step", type=int, default=1)
    parser.add_argument(
        "--canonical", type=int, help="frame that is the rest pose, instead of the file's own"
    )
    options = parser.parse_args()
    if any(
        os.environ.get(name) != str(options.threads) for name in THREADS
    ):  # read when numpy is first imported
        environment = {**os.environ, **dict.fromkeys(THREADS, str(options.threads))}
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode)
    import scipy.spatial  # noqa: F401  (loading it is no part of the first measurement)

    if not options.sequences:
        scaling()
        mesh = load_sample()
        print(line("sample", mesh[0][0], *mesh, 20, options.dem_python), flush=True)
    for path in options.sequences:
        rest, frames, faces = load(path, options.frame_step, options.canonical)
        for bones in options.bones:
            print(line(path.stem, rest, frames, faces, bones, options.dem_python), flush=True)


def load(path, step, canonical):
    import numpy as np

    data = np.load(path)
    frames = data["vertices"][::step]
    return data["rest"] if canonical is None else frames[canonical], frames, data["faces"]


def load_sample():
    """Return every second frame of the sample capture, and its faces."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    from sample import load_sample

    mesh = load_sample()
    return mesh.positions[::2], mesh.faces


def line(name, rest, frames, faces, bones, dem_python):
    """Return one row of the table."""
    import numpy as np

    from gaussianimate.core.rigging.decomposition.ssdr import decompose

    start = time.perf_counter()
    ours = decompose(rest, frames, bones)
    seconds = time.perf_counter() - start
    percent = 100 * ours.rmse / float(np.linalg.norm(np.ptp(rest, axis=0)))
    row = f"{name:18s} F={len(frames):4d} N={len(rest):6d} B={bones:3d} ({ours.transforms.shape[1]:2d} found)"
    row += f"  ours {percent:8.4f} % {seconds:6.2f} s"
    if dem_python is None:
        return row
    runs = [run_dem_bones(dem_python, rest, frames, faces, bones, bridge) for bridge in (False, True)]
    best = min(runs, key=lambda run: run["rmse_percent_diagonal"])
    row += f"  Dem Bones {best['rmse_percent_diagonal']:8.4f} % {best['seconds']:6.2f} s"
    return f"{row}  ratio {percent / best['rmse_percent_diagonal']:.3f}, time {seconds / best['seconds']:.2f}"


def run_dem_bones(python, rest, frames, faces, bones, bridge):
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sequence.npz"
        np.savez(path, rest=rest, frames=frames, faces=faces)
        command = [python, RUNNER, path, "--bones", str(bones), *(["--bridge"] if bridge else [])]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def scaling():
    """Time a waving sheet: points, frames and bones one at a time."""
    import numpy as np

    from gaussianimate.core.rigging.decomposition.clustering import cluster_motion
    from gaussianimate.core.rigging.decomposition.ssdr import decompose

    for points, frames, bones in [
        *((n, 60, 20) for n in (1_000, 5_000, 20_000, 100_000)),
        *((5_000, f, 20) for f in (15, 120, 300)),
        *((5_000, 60, b) for b in (5, 50)),
    ]:
        rng = np.random.default_rng(0)
        rest = np.c_[rng.uniform(0, 4, points), rng.uniform(0, 2, points), np.zeros(points)].astype(
            np.float32
        )
        moved = np.repeat(rest[None], frames, 0)
        phase = np.linspace(0, 6, frames, dtype=np.float32)[:, None]
        moved[..., 2] += 0.3 * np.sin(2 * rest[:, 0] + phase) * np.cos(rest[:, 1] - 2 * phase)
        start = time.perf_counter()
        cluster_motion(rest, moved, bones)
        middle = time.perf_counter()
        rmse = decompose(rest, moved, bones).rmse
        clusters, seconds = middle - start, time.perf_counter() - middle
        print(
            f"N={points:6d} F={frames:3d} B={bones:2d}  clusters {clusters:6.2f} s"
            f"  SSDR with its own {seconds:6.2f} s  rmse {rmse:.5f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
