"""Draw docs/images/resampling.png and print the figures of docs/resampling.md.

Run with the project's Python: ``.venv/bin/python docs/resampling.py``. A tube of large splats is bent and
twisted about two joints over hardly more than the width of its splats. In the reference every splat is a grid
of 841 tiny ones whose optical depths add up to its own, and whose linear maps are as good as exact.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.deform.deform import deform_cloud
from gaussianimate.core.render.camera import Camera
from gaussianimate.core.render.reference import psnr, rasterise
from gaussianimate.core.resample.criterion import affine_errors
from gaussianimate.core.resample.resample import ResampleOptions, resample
from gaussianimate.core.rotations import axis_angle_to_quaternion, matrix_to_quaternion, quaternion_to_matrix
from gaussianimate.core.skinning.skin import Skin

OUT = Path(__file__).with_name("images") / "resampling.png"
LENGTH, RADIUS = 4.0, 0.45
JOINTS = (1.3, 2.7)  # along the tube
WIDTH, HEIGHT = 480, 400
EPSILON = 0.03
VIEWS = ((1.6, -6.2, 1.9), (5.5, -4.0, 1.0), (1.0, 5.8, 2.5))


def tube(rings: int, around: int) -> GaussianCloud:
    """Return a tube of flat splats, chequered, three times as long as wide."""
    along, turn = np.meshgrid(
        (np.arange(rings) + 0.5) / rings * LENGTH, np.arange(around) / around * 2 * np.pi
    )
    x, angle = along.ravel(), turn.ravel()
    radial = np.stack([np.zeros_like(x), np.cos(angle), np.sin(angle)], axis=1)
    tangent = np.stack([np.zeros_like(x), -np.sin(angle), np.cos(angle)], axis=1)
    frames = np.stack([tangent, np.broadcast_to([1.0, 0, 0], radial.shape), radial], axis=2)
    tile = (np.arange(rings)[None] + np.arange(around)[:, None]).ravel() % 2
    colours = np.where(tile[:, None] == 1, (0.93, 0.55, 0.18), (0.13, 0.35, 0.55))
    step = np.array([2 * np.pi * RADIUS / around, LENGTH / rings]) * 0.45
    return GaussianCloud(
        positions=(radial * RADIUS + np.stack([x, 0 * x, 0 * x], axis=1)).astype(np.float32),
        rotations=matrix_to_quaternion(frames).astype(np.float32),
        scales=np.broadcast_to([*step, 0.01], radial.shape).astype(np.float32),
        opacities=np.full(len(x), 0.95, np.float32),
        sh=((colours - 0.5) / 0.28209479)[:, None].astype(np.float32),
    )


def dense(cloud: GaussianCloud, step: float = 0.25, side: int = 29) -> GaussianCloud:
    """Return the same picture made of grids of side x side tiny splats in the planes of the flat ones.

    Through a splat of opacity o the optical depth is D(r) = -log(1 - o exp(-r^2 / 2)). Its convolution with a
    Gaussian of variance s^2 is undone, to second order, by D - s^2 / 2 times the Laplacian of D; each point
    of the grid gets its share of that as the opacity of a Gaussian as wide as the step.
    """
    axis = (np.arange(side) - side // 2) * step
    u, v = (grid.ravel() for grid in np.meshgrid(axis, axis))

    def depth(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return -np.log1p(-cloud.opacities[:, None].astype(float) * np.exp(-0.5 * (u**2 + v**2)))

    e = 1e-3
    around = depth(u + e, v) + depth(u - e, v) + depth(u, v + e) + depth(u, v - e)
    sharp = depth(u, v) - 0.5 * step**2 * (around - 4 * depth(u, v)) / e**2
    shares = 1 - np.exp(-np.maximum(sharp, 0) / (2 * np.pi))  # step^2 / (2 pi s^2) of the depth
    frames = quaternion_to_matrix(cloud.rotations.astype(float))
    offsets = u[:, None] * (frames[:, None, :, 0] * cloud.scales[:, None, :1])
    offsets = offsets + v[:, None] * (frames[:, None, :, 1] * cloud.scales[:, None, 1:2])
    count = len(u)
    return GaussianCloud(
        (cloud.positions[:, None] + offsets).reshape(-1, 3).astype(np.float32),
        np.repeat(cloud.rotations, count, axis=0),
        np.repeat(cloud.scales * np.array([step, step, 1], np.float32), count, axis=0),
        shares.ravel().astype(np.float32),
        np.repeat(cloud.sh, count, axis=0),
    )


class Chain:
    """Weights of three bones that change smoothly over ``width`` about the joints."""

    def __init__(self, width: float) -> None:
        self.width = width

    def __call__(self, points: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return indices, weights (P, 3) and gradients (P, 3, 3), the strongest bone first."""
        t = np.clip((points[:, :1] - JOINTS) / self.width + 0.5, 0, 1)
        (a, b), (da, db) = (t * t * (3 - 2 * t)).T, (6 * t * (1 - t) / self.width).T
        weights, gradients = np.stack([1 - a, a - b, b], axis=1), np.zeros((len(a), 3, 3))
        gradients[:, :, 0] = np.stack([-da, da - db, db], axis=1)
        order = np.argsort(-weights, axis=1, kind="stable")
        take = np.take_along_axis
        return order.astype(np.int32), take(weights, order, 1), take(gradients, order[..., None], 1)


def pose(twist: float, bend: float) -> np.ndarray:
    """Return the bones (3, 3, 4): the second twists, the third follows and bends too; radians."""
    first = _turn((1, 0, 0), twist, (JOINTS[0], 0, 0))
    return np.stack([np.eye(4), first, first @ _turn((0, 1, 0), -bend, (JOINTS[1], 0, 0))])[:, :3]


def _turn(axis: tuple[float, ...], angle: float, centre: tuple[float, ...]) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = quaternion_to_matrix(axis_angle_to_quaternion(np.array(axis, float), np.array(angle)))
    matrix[:3, 3] = centre - matrix[:3, :3] @ centre
    return matrix


def pictures(cloud: GaussianCloud) -> list[np.ndarray]:
    """Return the cloud over white from every view, (H, W, 3), the top row first."""
    shots = []
    for eye in VIEWS:
        camera = Camera.perspective(eye, (1.75, 0, -0.2), (0, 0, 1), 0.6, WIDTH, HEIGHT, 0.1, 100)
        rgba = rasterise([(cloud, None)], camera).rgba[::-1]
        shots.append(np.clip(rgba[..., :3] + 1 - rgba[..., 3:], 0, 1))
    return shots


def likeness(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    """Return the mean PSNR over the views, dB."""
    return float(np.mean([psnr(x, y) for x, y in zip(a, b, strict=True)]))


def study(name: str, cloud: GaussianCloud, width: float, transforms: np.ndarray) -> list[list[np.ndarray]]:
    """Print one row of the table; return pictures at rest, posed, posed resampled, and of the reference."""
    field = Chain(width)
    indices, weights, gradients = field(cloud.positions.astype(float), np.arange(len(cloud)))
    skin = Skin(indices, weights.astype(np.float32), gradients.astype(np.float32))
    many = dense(cloud)
    many = many.take(many.opacities > 1e-4)
    indices, weights, gradients = field(many.positions.astype(float), np.arange(len(many)))
    many_skin = Skin(indices, weights.astype(np.float32), gradients.astype(np.float32))
    options = ResampleOptions(epsilon=EPSILON, budget=30)
    fine = resample(cloud, skin, transforms, options, field)
    stored = resample(cloud, skin, transforms, options)
    before = affine_errors(cloud, skin, transforms, field)
    rest = pictures(cloud)
    reference = pictures(deform_cloud(many, many_skin, transforms))
    posed = pictures(deform_cloud(cloud, skin, transforms))
    split = pictures(deform_cloud(fine.cloud, fine.skin, transforms))
    split_stored = pictures(deform_cloud(stored.cloud, stored.skin, transforms))
    measured = [
        likeness(rest, pictures(many)),
        likeness(rest, pictures(fine.cloud)),
        *(likeness(each, reference) for each in (posed, split, split_stored)),
    ]
    row = [name, f"{len(cloud)}", f"{np.mean(before > EPSILON):.0%}", f"{len(fine.cloud)}"]
    print("| " + " | ".join([*row, *(f"{value:.1f}" for value in measured)]) + " |", flush=True)
    return [rest, posed, split, reference]


def main() -> None:
    """Print the table, draw and save the picture."""
    print("| pose | splats | fail | after | reference, rest | resampled, rest | posed | resampled | stored |")
    print("|" + " --- |" * 9)
    shown = study("twist and bend", tube(12, 12), 0.35, pose(2.1, 1.5))
    study("twist", tube(12, 12), 0.35, pose(2.1, 0))
    study("bend", tube(12, 12), 0.35, pose(0, 1.8))
    study("soft weights", tube(12, 12), 1.2, pose(2.1, 1.5))
    study("small splats", tube(28, 24), 0.35, pose(2.1, 1.5))
    sheet = Image.new("RGB", (WIDTH * 4, HEIGHT), "white")
    font = ImageFont.load_default(20)
    titles = ("at rest", "posed", "posed, resampled", "reference")
    for i, (title, views) in enumerate(zip(titles, shown, strict=True)):
        sheet.paste(Image.fromarray((views[0] * 255).round().astype(np.uint8)), (i * WIDTH, 0))
        ImageDraw.Draw(sheet).text((i * WIDTH + 12, HEIGHT - 32), title, "black", font)
    sheet.save(OUT)
    print(OUT)


if __name__ == "__main__":
    main()
