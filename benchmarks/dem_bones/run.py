"""Run Dem Bones on one sequence and print what it reached as one line of JSON.

Needs Python 3.11 with ``requirements.txt`` (an environment of its own); started by ``bench_ssdr.py``.
The process keeps to the threads it is given in ``OMP_NUM_THREADS``.

    python run.py SEQUENCE.npz [--bones 20] [--variant default|pure] [--bridge]

``SEQUENCE.npz`` holds ``rest`` [N,3], ``frames`` [F,N,3] and ``faces`` [M,3] (may be empty).
"""

import argparse
import json
import time

import numpy as np
import py_dem_bones
from scipy.spatial import cKDTree


def neighbour_faces(rest, neighbours=6):
    """Triangles that join each point to its nearest ones: Dem Bones grows its clusters along edges only."""
    near = cKDTree(rest).query(rest, min(neighbours + 1, len(rest)))[1]
    me = np.arange(len(rest))
    triangles = [np.stack([me, near[:, k], near[:, k + 1]], 1) for k in range(1, near.shape[1] - 1)]
    triangles = np.concatenate(triangles)
    a, b, c = triangles.T
    return triangles[(a != b) & (b != c) & (a != c)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sequence")
    parser.add_argument("--bones", type=int, default=20)
    parser.add_argument("--variant", choices=["default", "pure"], default="pure")
    parser.add_argument("--bridge", action="store_true", help="join near points, as a mesh of parts needs")
    options = parser.parse_args()
    data = np.load(options.sequence)
    rest, frames, faces = data["rest"].astype(float), data["frames"].astype(float), data["faces"]
    if options.bridge or len(faces) == 0:
        faces = np.concatenate([faces.reshape(-1, 3), neighbour_faces(rest)])
    solver = py_dem_bones._DemBones()
    if options.variant == "pure":  # plain SSDR: no smoothness of the weights, no affinity of the transforms
        solver.weightsSmooth, solver.transAffine = 0.0, 0.0
    start = time.perf_counter()
    result = py_dem_bones.solve_skinning(
        rest, frames, options.bones, faces=faces.tolist(), max_influences=4, solver=solver
    )
    seconds = time.perf_counter() - start
    weights, transforms = np.asarray(result.weights), np.asarray(result.transforms)
    print(json.dumps(report(rest, frames, weights, transforms, seconds)))


def report(rest, frames, weights, transforms, seconds):
    """Measure the replay ourselves, from the weights (B, N) and transforms (F, B, 4, 4)."""
    total = 0.0
    for pose, frame in zip(transforms, frames, strict=True):
        moved = rest @ np.swapaxes(pose[:, :3, :3], 1, 2) + pose[:, None, :3, 3]  # (B, N, 3)
        total += ((np.einsum("bn,bna->na", weights, moved) - frame) ** 2).sum()
    rmse = float(np.sqrt(total / frames.shape[0] / frames.shape[1]))
    return {
        "bones": int((weights.sum(1) > 0).sum()),
        "influences": int((weights > 1e-6).sum(0).max()),
        "rmse": rmse,
        "rmse_percent_diagonal": 100 * rmse / float(np.linalg.norm(np.ptp(rest, axis=0))),
        "seconds": seconds,
    }


if __name__ == "__main__":
    main()
