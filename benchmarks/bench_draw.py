"""Drawing with the deformation against drawing without it, and what a new pose costs before it is drawn.

    python benchmarks/bench_draw.py [--splats 100000 500000 1000000] [--runs 5] [--size 640 480] [--ball]

The splats cover the sample capture, as many as asked for; with ``--ball`` they fill a ball in random order,
which no cache likes. Both draws use the same splats in the same order, one after the other, and end with
reading a pixel back. Of the ratios, the first is that of the shortest times, the second the median of the
pairs and the third that of the processor's time, which other work on the machine disturbs least; on a
graphics card, only the first two say anything. "Python" is the time of the calling thread from new bone
matrices to the submitted draw.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import bpy  # noqa: F401, I001  (makes gpu importable)
import gpu
import numpy as np
from scipy.spatial import cKDTree

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.formats import mesh_to_splats
from gaussianimate.core.render.camera import Camera
from gaussianimate.core.rotations import axis_angle_to_quaternion, normalize_quaternions, quaternion_to_matrix
from gaussianimate.core.skinning.skin import Skin
from gaussianimate.gaussianimate_addon.drawer import draw
from gaussianimate.gaussianimate_addon.drawer.atlas import Atlas, Source, build_atlas
from gaussianimate.gaussianimate_addon.drawer.order import order_key, sort

BONES = 50
HEADER = "   splats  K  layout SH | deformed     rest    ratio   median      CPU | Python sort order | upload"
POSED, REST = draw.Shading(), draw.Shading(deform=False)


def body(count: int) -> GaussianCloud:
    """Return splats on the sample capture, of degree 0, Z up."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    from sample import load_sample

    cloud = mesh_to_splats(load_sample(), count).load_cloud(0)
    return replace(cloud, positions=np.ascontiguousarray(cloud.positions[:, [0, 2, 1]]))


def ball(count: int) -> GaussianCloud:
    """Return splats of random shape in a ball 2 m wide, smaller the more there are."""
    rng = np.random.default_rng(0)
    positions = rng.normal(size=(count, 3))
    positions *= rng.random((count, 1)) ** (1 / 3) / np.linalg.norm(positions, axis=1, keepdims=True)
    size = 0.5 * count ** (-1 / 3)
    return GaussianCloud(
        positions.astype(np.float32),
        normalize_quaternions(rng.normal(size=(count, 4))).astype(np.float32),
        (size * rng.uniform(0.2, 1, (count, 3))).astype(np.float32),
        rng.random(count, dtype=np.float32),
        rng.normal(size=(count, 1, 3)).astype(np.float32),
    )


def with_degree(cloud: GaussianCloud, degree: int) -> GaussianCloud:
    """Return the cloud with random coefficients above degree 0."""
    sh = 0.1 * np.random.default_rng(1).normal(size=(len(cloud), (degree + 1) ** 2, 3))
    sh[:, 0] = cloud.sh[:, 0]
    return replace(cloud, sh=sh.astype(np.float32))


def make_skin(cloud: GaussianCloud, influences: int) -> tuple[Skin, np.ndarray]:
    """Return a skin that falls off smoothly from bones among the splats, and the bones' places (B, 3)."""
    points = cloud.positions.astype(np.float64)
    places = points[np.random.default_rng(2).choice(len(points), BONES, replace=False)]
    distances, indices = cKDTree(places).query(points, influences)
    near = distances**2
    reach = 0.5 * np.median(near[:, -1])
    weights = np.exp((near[:, :1] - near) / (2 * reach))
    weights /= weights.sum(axis=1, keepdims=True)
    slopes = (places[indices] - points[:, None]) / reach
    gradients = weights[..., None] * (slopes - np.einsum("nk,nki->ni", weights, slopes)[:, None])
    parts = (indices.astype(np.int32), weights.astype(np.float32), gradients.astype(np.float32))
    return Skin(*parts), places


def pose(places: np.ndarray, angle: float) -> np.ndarray:
    """Return (B, 3, 4): every bone turned about its place, about an axis of its own."""
    axes = np.random.default_rng(3).normal(size=(len(places), 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    turns = quaternion_to_matrix(axis_angle_to_quaternion(axes, np.full(len(places), angle)))
    offsets = places - np.einsum("bij,bj->bi", turns, places)
    return np.concatenate([turns, offsets[..., None]], axis=2)


def look_at(cloud: GaussianCloud, width: int, height: int) -> Camera:
    """Return a camera that sees all of the cloud."""
    low, high = cloud.positions.min(axis=0), cloud.positions.max(axis=0)
    centre, radius = (low + high) / 2, float(np.linalg.norm(high - low)) / 2
    eye = centre + 2.6 * radius * np.array([0.35, -0.92, 0.17])
    return Camera.perspective(eye, centre, (0.0, 0.0, 1.0), 0.8, width, height, 0.01, 10 * radius)


class View:
    """One view of one skinned cloud, drawn off-screen."""

    def __init__(self, atlas: Atlas, places: np.ndarray, camera: Camera) -> None:
        self.atlas, self.places, self.camera = atlas, places, camera
        self.target = gpu.types.GPUOffScreen(camera.width, camera.height, format="RGBA16F")
        self.order = self._sort()
        self.texture = draw.upload_order(self.order)

    def items(self, angle: float = 0.15) -> list[draw.Item]:
        """Return the object in a pose."""
        return [draw.Item(0, np.eye(4), pose(self.places, angle))]

    def _sort(self) -> np.ndarray:
        items = self.items()
        key = order_key(self.atlas, items, draw.bone_moves(self.atlas, items), self.camera)
        return sort([self.atlas.spans[0]], key)

    def frame(self, items: list[draw.Item], shading: draw.Shading) -> draw.Frame:
        """Return all uniforms of the view, new."""
        moves = draw.bone_moves(self.atlas, items)
        return draw.Frame(
            camera=draw.upload_camera(self.camera, shading, len(items)),
            items=draw.upload_items(self.atlas, items, moves, self.camera),
            order=self.texture,
            count=len(self.order),
            bones=draw.upload_bones(moves, items) if shading.deform else None,
        )

    def draw(self, task: Callable[[], None]) -> tuple[float, float, float]:
        """Return seconds of a task's own thread, seconds until its draws are done, and of the processor."""
        with self.target.bind():
            buffer = gpu.state.active_framebuffer_get()
            buffer.clear(color=(0.0, 0.0, 0.0, 0.0), depth=1.0)
            buffer.read_color(0, 0, 1, 1, 4, 0, "FLOAT")
            start, busy, own = time.perf_counter(), time.process_time(), time.thread_time()
            task()
            own = time.thread_time() - own
            buffer.read_color(0, 0, 1, 1, 4, 0, "FLOAT")
            return own, time.perf_counter() - start, time.process_time() - busy

    def compare(self, runs: int) -> str:
        """Return milliseconds with and without the deformation, and their ratios."""
        items = self.items()
        frames = [(self.frame(items, shading), shading) for shading in (POSED, REST)]

        def times() -> list[tuple[float, float, float]]:
            return [
                self.draw(lambda: draw.draw_frame(self.atlas, frame, shading))  # noqa: B023
                for frame, shading in frames
            ]

        times()  # compiles
        spent = np.array([times() for _ in range(runs)])[..., 1:]  # run, deformed or not, wall or processor
        best = spent.min(axis=0)
        median = np.median(spent[:, 0, 0] / spent[:, 1, 0])
        ratios = best[0] / best[1]
        return (
            f"{1e3 * best[0, 0]:8.0f} {1e3 * best[1, 0]:8.0f} {ratios[0]:8.2f} {median:8.2f} {ratios[1]:8.2f}"
        )

    def submit(self, runs: int) -> float:
        """Return the shortest time of this thread from new bone matrices to the submitted draw, seconds."""

        def task(items: list[draw.Item]) -> None:
            draw.draw_frame(self.atlas, self.frame(items, POSED), POSED)

        poses = [self.items(0.01 * run) for run in range(runs + 1)]
        return min([self.draw(lambda: task(items))[0] for items in poses][1:])  # noqa: B023

    def sort_time(self, runs: int) -> tuple[float, float]:
        """Return the shortest times of sorting by posed depth, and of uploading the order, seconds."""
        return shortest(self._sort, runs), shortest(lambda: draw.upload_order(self.order), runs)


def shortest(task: Callable[[], object], runs: int) -> float:
    """Return the shortest of ``runs`` times."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print one row for each number of splats, layout, degree and number of influences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splats", type=int, nargs="+", default=[100_000, 500_000, 1_000_000])
    parser.add_argument("--influences", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--layouts", nargs="+", default=["exact", "compact"])
    parser.add_argument("--degrees", type=int, nargs="+", default=[0, 3])
    parser.add_argument("--size", type=int, nargs=2, default=[640, 480])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--ball", action="store_true")
    options = parser.parse_args()
    try:
        gpu.init()
    except SystemError as error:
        print(f"no graphics driver here: {error}")
        return
    device = f"{gpu.platform.renderer_get()}, {gpu.platform.backend_type_get()}"
    print(f"{device}, {options.size} px, {BONES} bones; times in ms, uploading in s and MB")
    print(HEADER)
    for count in options.splats:
        plain = (ball if options.ball else body)(count)
        camera = look_at(plain, *options.size)
        for degree, influences in itertools.product(options.degrees, options.influences):
            cloud = with_degree(plain, degree)
            skin, places = make_skin(cloud, influences)
            for layout in options.layouts:
                start = time.perf_counter()
                atlas = build_atlas([Source(cloud, skin)], layout)
                upload = time.perf_counter() - start
                view = View(atlas, places, camera)
                sorting, sending = view.sort_time(3)
                print(
                    f"{count:9d} {influences:2d} {layout:>7} {degree:2d} | {view.compare(options.runs)} |"
                    f" {1e3 * view.submit(options.runs):6.2f} {1e3 * sorting:4.0f} {1e3 * sending:5.1f} |"
                    f" {upload:6.2f} {atlas.memory / 1e6:5.0f}",
                    flush=True,
                )
                view.target.free()
                del atlas, view


if __name__ == "__main__":
    main()
