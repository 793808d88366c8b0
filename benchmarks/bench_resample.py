"""Time of dictionary resampling, and how well its criteria agree.

Run: ``python benchmarks/bench_resample.py [--splats 160000] [--epsilon 0.003] [--cloud CLOUD.ply]``.
The cloud is a tube of discs and needles around a chain of bones that a pose bends and twists; weights blend
from bone to bone over a width that is several times the splats'. With ``--cloud``: how much a picture of
that cloud changes where every splat is split, in 20 views, instead.

Exits with 1 where the default criterion is not ten times faster than 512 samples, where with a field of
weights it decides otherwise than they do by more than another 512 (and half a per cent), or where the
pictures keep 38 dB or less on average.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.formats import read_cloud
from gaussianimate.core.render.camera import Camera
from gaussianimate.core.render.reference import psnr, rasterise
from gaussianimate.core.resample.criterion import affine_errors
from gaussianimate.core.resample.dictionary import load_dictionary
from gaussianimate.core.resample.resample import ResampleOptions, resample, split_all
from gaussianimate.core.resample.weight_fields import StoredField
from gaussianimate.core.rotations import axis_angle_to_quaternion, matrix_to_quaternion, quaternion_to_matrix
from gaussianimate.core.selection.feather import Feather
from gaussianimate.core.selection.layer import LayerStack, SelectionLayer
from gaussianimate.core.selection.shapes import Ellipse, Rectangle
from gaussianimate.core.selection.skin import SkinField, stack_to_skin
from gaussianimate.core.selection.viewpoint import Viewpoint
from gaussianimate.core.skinning.skin import Skin

BONES = 12
LENGTH = 2.0  # metres
CLOUD, SKIN = ("positions", "rotations", "scales", "opacities", "sh"), ("indices", "weights", "gradients")


class Chain:
    """Weights of a chain of bones along x: smooth steps about the joints, two bones at most."""

    def __init__(self, feather: float) -> None:
        self.joints = np.linspace(0, LENGTH, BONES + 1)[1:-1]
        self.feather = feather

    def __call__(self, points: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return indices (P, 2), weights (P, 2) and gradients (P, 2, 3)."""
        x = points[:, 0]
        nearest = np.clip(np.rint(x / LENGTH * BONES) - 1, 0, len(self.joints) - 1).astype(int)
        t = np.clip((x - self.joints[nearest]) / self.feather + 0.5, 0, 1)
        after, slope = t * t * (3 - 2 * t), 6 * t * (1 - t) / self.feather
        weights = np.stack([1 - after, after], axis=1)
        gradients = np.zeros((len(x), 2, 3))
        gradients[:, 0, 0], gradients[:, 1, 0] = -slope, slope
        order = np.argsort(-weights, axis=1, kind="stable")
        indices = np.stack([nearest, nearest + 1], axis=1).astype(np.int32)
        take = np.take_along_axis
        return take(indices, order, 1), take(weights, order, 1), take(gradients, order[..., None], 1)


def scene(count: int, feather: float = 0.12) -> tuple[GaussianCloud, Skin, Chain, np.ndarray]:
    """Return a tube of splats, its skin, the field of its weights, and a bent and twisted pose."""
    rng = np.random.default_rng(0)
    x, angle = rng.uniform(0, LENGTH, count), rng.uniform(0, 2 * np.pi, count)
    radial = np.stack([np.zeros(count), np.cos(angle), np.sin(angle)], axis=1)
    positions = 0.15 * radial
    positions[:, 0] = x
    frames = np.stack([np.tile([1.0, 0, 0], (count, 1)), np.cross(radial, [1.0, 0, 0]), radial], axis=2)
    frames[:, :, 1] *= np.sign(np.linalg.det(frames))[:, None]
    size = np.sqrt(2 * np.pi * 0.15 * LENGTH / count)
    scales = size * np.exp(rng.normal(0, 0.4, (count, 1))) * [[1, 1, 0.1]]
    scales[::4] *= [2.5, 0.5, 1]
    f32 = np.float32
    cloud = GaussianCloud(
        positions.astype(f32),
        matrix_to_quaternion(frames).astype(f32),
        scales.astype(f32),
        rng.uniform(0.2, 1, count).astype(f32),
        rng.normal(0, 0.3, (count, 16, 3)).astype(f32),
    )
    field = Chain(feather)
    indices, weights, gradients = field(cloud.positions.astype(float), np.arange(count))
    return cloud, Skin(indices, weights.astype(f32), gradients.astype(f32)), field, bent_pose(25, 20)


def bent_pose(bend: float, twist: float) -> np.ndarray:
    """Return bones (BONES, 3, 4), each bent and twisted by so many degrees against the one before."""
    pose, poses = np.eye(4), []
    turn = axis_angle_to_quaternion(np.array([0, 0, 1.0]), np.radians(bend))
    roll = axis_angle_to_quaternion(np.array([1.0, 0, 0]), np.radians(twist))
    step = quaternion_to_matrix(turn) @ quaternion_to_matrix(roll)
    for bone in range(BONES):
        joint = np.array([LENGTH * bone / BONES, 0, 0])
        if bone:
            local = np.eye(4)
            local[:3, :3], local[:3, 3] = step, joint - step @ joint
            pose = pose @ local
        poses.append(pose[:3].copy())
    return np.stack(poses)


def single_turns(angle: float = 45) -> np.ndarray:
    """Return the poses (6 BONES, BONES, 3, 4) that turn one bone to both sides about each axis, degrees."""
    poses = []
    for bone in range(BONES):
        joint = np.array([LENGTH * bone / BONES, 0, 0])
        for turn in np.concatenate([np.eye(3), -np.eye(3)]):
            step = quaternion_to_matrix(axis_angle_to_quaternion(turn, np.radians(angle)))
            pose = np.tile(np.eye(3, 4), (BONES, 1, 1))
            pose[bone:, :, :3], pose[bone:, :, 3] = step, joint - step @ joint
            poses.append(pose)
    return np.stack(poses)


def drawn() -> SkinField:
    """Return weights much like those of the tube, of layers: a rectangle and an ellipse for each bone."""
    camera = Camera.perspective((1, -3.2, 0.3), (1, 0, 0), (0, 0, 1), 0.7, 1600, 1000, 0.1, 100)
    view = Viewpoint(camera.view, camera.projection, (0, 0, 1600, 1000))  # type: ignore[arg-type]
    ends = view.project(np.linspace((0, 0, 0), (LENGTH, 0, 0), BONES + 1)).x
    names = tuple(f"bone {k}" for k in range(BONES))
    layers = []
    for name, left, right in zip(names, ends[:-1], ends[1:], strict=True):
        about = ((left + right) / 2, 500)
        shapes = (Rectangle.from_corners((left, 200), (right, 800)), Ellipse(about, (30, 100), 0.1))
        for shape, width, strength in zip(shapes, (60, 40), (1, 0.3), strict=True):
            layers.append(SelectionLayer(name, view, shape, Feather(width), strength, "add"))
    return SkinField(LayerStack(names, tuple(layers)))


def picture_change(path: str, views: int = 20, size: int = 512) -> bool:
    """Print the PSNR between pictures of a cloud and of the same with every splat split; whether too low."""
    cloud, _ = read_cloud(path)
    still = np.ones((len(cloud), 1), np.float32)
    skin = Skin(np.zeros((len(cloud), 1), np.int32), still, np.zeros((len(cloud), 1, 3), np.float32))
    fine = split_all(cloud, skin).cloud
    ratio = fine.scales.reshape(-1, 5, 3).max(axis=(1, 2)) / cloud.scales.max(axis=1)
    middle, reach = cloud.positions.mean(axis=0), 1.3 * np.ptp(cloud.positions, axis=0).max()
    found = []
    for view in range(views):
        height, turn = 0.5 * (1 - 2 * (view + 0.5) / views), 2.399963 * view  # along a golden spiral
        level = np.sqrt(1 - height**2)
        eye = middle + reach * np.array([level * np.cos(turn), height, level * np.sin(turn)])
        camera = Camera.perspective(eye, middle, (0, 1, 0), np.radians(45), size, size, 0.01, 100)
        before, after = (rasterise([(each, None)], camera).rgba[..., :3] for each in (cloud, fine))
        found.append(psnr(before, after))
    print(f"{len(cloud)} splats, each split into five of {ratio.mean():.2f} of its diameter, {views} views:")
    print(f"PSNR {np.mean(found):.1f} dB on average, {np.min(found):.1f} to {np.max(found):.1f} dB")
    return bool(np.mean(found) <= 38)


def seconds(task: Callable[[], object], runs: int = 3) -> float:
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


def memory(
    cloud: GaussianCloud, skin: Skin, field: Chain, pose: np.ndarray, options: ResampleOptions
) -> bool:
    """Print what adaptive resampling holds at most beyond cloud and skin, its result included."""
    given = sum(
        getattr(each, name).nbytes for each, names in ((cloud, CLOUD), (skin, SKIN)) for name in names
    )
    print(f"{len(cloud)} splats and their skin: {given / 2**20:.0f} MB")
    for name, weights in (("stored weights", None), ("weights as a field", field)):
        found = []
        most = peak(lambda: found.append(resample(cloud, skin, pose, options, weights)))  # noqa: B023
        after = found.pop()
        print(f"{name:20} {len(after.cloud)} after {after.passes}, {most:.0f} MB more at most")
    return False


def main() -> bool:
    """Print times, ratios and agreements; return whether a target was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splats", type=int, default=160_000)
    parser.add_argument("--epsilon", type=float, default=0.003, help="metres; the tube is 2 m long")
    parser.add_argument("--cloud", help="measure how uniform resampling changes pictures of this cloud")
    parser.add_argument("--memory", action="store_true", help="measure memory only, of adaptive resampling")
    options = parser.parse_args()
    if options.cloud:
        return picture_change(options.cloud)
    load_dictionary()
    cloud, skin, field, pose = scene(options.splats)
    chosen, layers = ResampleOptions(epsilon=options.epsilon), drawn()
    if options.memory:
        return memory(cloud, skin, field, pose, chosen)
    skin_drawn = stack_to_skin(layers.stack, cloud.positions)
    eighth = np.arange(len(cloud) // 8)
    few, few_skin, few_drawn = (each.take(eighth) for each in (cloud, skin, skin_drawn))
    found = resample(cloud, skin, pose, chosen)
    print(f"{len(cloud)} splats, epsilon {options.epsilon:g} m: {len(found.cloud)} after {found.passes}")
    tasks = {
        "adaptive, stored weights": lambda: resample(cloud, skin, pose, chosen),
        "adaptive, weights as a field": lambda: resample(cloud, skin, pose, chosen, field),
        "adaptive, 24 selection layers": lambda: resample(cloud, skin_drawn, pose, chosen, layers),
        "72 poses of one bone, an eighth": lambda: resample(few, few_skin, single_turns(), chosen),
        "the same, with the layers": lambda: resample(few, few_drawn, single_turns(), chosen, layers),
        "uniform": lambda: split_all(cloud, skin),
        "a copy of what uniform makes": lambda: cloud.take(np.repeat(np.arange(len(cloud)), 5)),
    }
    for name, task in tasks.items():
        start = time.process_time()
        task()
        spent = time.process_time() - start
        print(f"{name:31} {seconds(task):.2f} s, {spent:.2f} s of one core, {peak(task):.0f} MB")
    return measure_criteria(cloud, skin, field, pose, options.epsilon)


def measure_criteria(
    cloud: GaussianCloud, skin: Skin, field: Chain, pose: np.ndarray, epsilon: float
) -> bool:
    """Print time and agreement of the criteria; return whether one is too slow, or decides otherwise."""
    few, missed = slice(0, 20_000), False
    part, its = cloud.take(np.arange(few.stop)), skin.take(np.arange(few.stop))
    for kind, weights in (("stored", None), ("field", field)):
        slowest = 0.0
        for name in ("paper", "sampled", "hybrid"):
            time_of = seconds(lambda: affine_errors(part, its, pose, weights, None, name, epsilon), 2)  # noqa: B023
            slowest = slowest or time_of
            missed |= name == "hybrid" and slowest < 10 * time_of
            print(
                f"criterion {name:8} {kind:6} weights {1e6 * time_of / few.stop:8.2f} us/splat, "
                f"{slowest / time_of:6.1f} x faster than 512 samples"
            )
    return missed | measure_agreement(cloud, skin, field, pose)


def measure_agreement(cloud: GaussianCloud, skin: Skin, field: Chain, pose: np.ndarray) -> bool:
    """Print how often criteria decide alike; return whether they do so less than two sampled runs."""
    few, missed = np.arange(20_000), False
    part, its, stored = cloud.take(few), skin.take(few), StoredField(cloud.positions, skin)
    truths = {}
    for name, weights in (("field", field), ("stored", stored)):
        truths[name] = [
            affine_errors(part, its, pose, weights, few, "paper", seed=seed, threshold=0) for seed in (0, 1)
        ]
    print(
        "agreement with 512 samples of the field: epsilon, fails; 512 others, stored weights, field; then of"
    )
    print("stored weights with 512 samples of the same stored weights: 512 others, closed form")
    for small in (0.0003, 0.001, 0.003, 0.01):
        closed = affine_errors(part, its, pose, stored, few, threshold=small)
        mixed = affine_errors(part, its, pose, field, few, threshold=small)
        row = [np.mean(truths["field"][0] > small)]
        for name, others in (("field", (closed, mixed)), ("stored", (closed,))):
            truth, again = truths[name]
            row += [np.mean((each > small) == (truth > small)) for each in (again, *others)]
        missed |= row[3] < row[1] - 0.01 or row[5] < row[4] - 0.01
        print(f"  {small:6g} " + " ".join(f"{value:.4f}" for value in row))
    return missed


if __name__ == "__main__":
    sys.exit(int(main()))
