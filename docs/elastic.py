"""Draw docs/images/elastic.png: linear blend skinning without and with the gradients of the weights.

Run with the project's Python: ``.venv/bin/python docs/elastic.py``. A bar wrapped in large flat splats is
twisted by its middle bone and bent by its last; both pictures draw the same splats with the same bones.
"""

from __future__ import annotations

from pathlib import Path

import bpy  # noqa: F401 -- brings the gpu module up
import gpu
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.render.camera import Camera
from gaussianimate.core.rotations import axis_angle_to_quaternion, matrix_to_quaternion, quaternion_to_matrix
from gaussianimate.core.skinning.skin import make_skin
from gaussianimate.gaussianimate_addon.drawer.atlas import Source, build_atlas
from gaussianimate.gaussianimate_addon.drawer.draw import Item, Shading
from gaussianimate.gaussianimate_addon.drawer.offscreen import draw_picture

OUT = Path(__file__).with_name("images") / "elastic.png"
LENGTH, RADIUS = 4.0, 0.45
JOINTS = (1.3, 2.7)  # along the bar
SOFTNESS = 0.45  # of the transition from bone to bone, metres
WIDTH, HEIGHT = 620, 420


def bar() -> GaussianCloud:
    """Return a tube of flat splats, chequered."""
    rings, around = 22, 16
    along, turn = np.meshgrid(
        (np.arange(rings) + 0.5) / rings * LENGTH, np.arange(around) / around * 2 * np.pi
    )
    x, angle = along.ravel(), turn.ravel()
    radial = np.stack([np.zeros_like(x), np.cos(angle), np.sin(angle)], axis=1)
    tangent = np.stack([np.zeros_like(x), -np.sin(angle), np.cos(angle)], axis=1)
    frames = np.stack([tangent, np.broadcast_to([1.0, 0, 0], radial.shape), radial], axis=2)
    tile = (np.arange(rings)[None] + np.arange(around)[:, None]).ravel() % 2
    colours = np.where(tile[:, None] == 1, (0.93, 0.55, 0.18), (0.13, 0.35, 0.55))
    step = np.array([2 * np.pi * RADIUS / around, LENGTH / rings]) * 0.42
    scales = np.broadcast_to([*step, 0.008], radial.shape)
    return GaussianCloud(
        positions=(radial * RADIUS + np.stack([x, 0 * x, 0 * x], axis=1)).astype(np.float32),
        rotations=matrix_to_quaternion(frames).astype(np.float32),
        scales=np.ascontiguousarray(scales, np.float32),
        opacities=np.full(len(x), 0.97, np.float32),
        sh=((colours - 0.5) / 0.28209479)[:, None].astype(np.float32),
    )


def weights(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return smooth weights (N, 3) of the three bones, and their gradients (N, 3, 3)."""
    steps, slopes = [], []
    for joint in JOINTS:
        t = np.clip((x - joint) / (2 * SOFTNESS) + 0.5, 0, 1)
        steps.append(t * t * (3 - 2 * t))
        slopes.append(6 * t * (1 - t) / (2 * SOFTNESS))
    (a, b), (da, db) = steps, slopes
    gradients = np.zeros((len(x), 3, 3))
    gradients[:, :, 0] = np.stack([-da, da - db, db], axis=1)
    return np.stack([1 - a, a - b, b], axis=1), gradients


def pose() -> np.ndarray:
    """Return the bones' transforms (3, 3, 4): the second twists, the third follows and bends too."""
    twist = _turn((1, 0, 0), 2.1, (JOINTS[0], 0, 0))
    bend = _turn((0, 1, 0), -1.5, (JOINTS[1], 0, 0))
    return np.stack([np.eye(4), twist, twist @ bend])[:, :3]


def _turn(axis: tuple[float, ...], angle: float, centre: tuple[float, ...]) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = quaternion_to_matrix(axis_angle_to_quaternion(np.array(axis, float), np.array(angle)))
    matrix[:3, 3] = centre - matrix[:3, :3] @ centre
    return matrix


def main() -> None:
    """Draw and save the picture."""
    gpu.init()
    cloud = bar()
    values, gradients = weights(cloud.positions[:, 0].astype(float))
    skin = make_skin(cloud.positions, np.broadcast_to(np.arange(3), values.shape), values, gradients)
    atlas = build_atlas([Source(cloud, skin)])
    camera = Camera.perspective((1.6, -6.2, 1.9), (1.75, 0, -0.2), (0, 0, 1), 0.52, WIDTH, HEIGHT, 0.1, 100)
    panels = (
        ("at rest", None, 0.0),
        ("linear blend skinning", pose(), 0.0),
        ("with the gradients of the weights", pose(), 1.0),
    )
    sheet = Image.new("RGB", (WIDTH * len(panels), HEIGHT), "white")
    font = ImageFont.load_default(22)
    for i, (title, transforms, elastic) in enumerate(panels):
        picture = draw_picture(atlas, [Item(0, np.eye(4), transforms)], camera, Shading(elastic=elastic))
        rgb = picture.rgba[::-1, :, :3] + 1 - picture.rgba[::-1, :, 3:]
        sheet.paste(Image.fromarray((np.clip(rgb, 0, 1) * 255).round().astype(np.uint8)), (i * WIDTH, 0))
        ImageDraw.Draw(sheet).text((i * WIDTH + 16, HEIGHT - 38), title, "black", font)
    sheet.save(OUT)
    print(OUT)


if __name__ == "__main__":
    main()
