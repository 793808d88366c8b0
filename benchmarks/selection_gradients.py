"""Exact gradients of selections against gradients estimated from 16 neighbours, over smoothness.

Run: ``python benchmarks/selection_gradients.py [demo/capture/human_0000.ply] [--plots docs/images]``.

A lasso is drawn about the upper half of the cloud, from the front, with feathers of several widths. Root mean
squares over the splats in the feather, relative to the exact ones: of the gradient; of its part along the
surface, all that neighbours on a surface can tell; and of the elastic term of the splats when the selected
half is bent by 60 degrees.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from plots import plot

from gaussianimate.core.deform.deform import jacobian_terms
from gaussianimate.core.formats.clouds import read_cloud
from gaussianimate.core.render.camera import Camera
from gaussianimate.core.rotations import quaternion_to_matrix
from gaussianimate.core.selection.evaluate import evaluate_stack
from gaussianimate.core.selection.feather import Feather
from gaussianimate.core.selection.layer import LayerStack, SelectionLayer
from gaussianimate.core.selection.shapes import Lasso
from gaussianimate.core.selection.viewpoint import Viewpoint
from gaussianimate.core.skinning.gradients import weight_gradients
from gaussianimate.core.skinning.skin import Skin

WIDTHS = (200, 100, 50, 25, 12, 6)
ANGLE = np.radians(60)
SIZE = 900  # pixels; the cloud fills about two thirds of the height


def gesture(p: np.ndarray, width: float) -> SelectionLayer:
    """Return a lasso about what lies above the middle; its lower side is a wave."""
    low, high = p.min(axis=0), p.max(axis=0)
    centre, height = (low + high) / 2, (high - low)[1]
    camera = Camera.perspective(
        centre + [0, 0, 2.2 * height], centre, (0, 1, 0), 0.7, SIZE, SIZE, 0.1 * height, 10 * height
    )
    x = np.linspace(50, SIZE - 50, 40)
    wave = np.stack([x, SIZE / 2 + 25 * np.sin(x / 30)], axis=1)
    outline = np.concatenate([wave, [[SIZE - 50, SIZE - 20], [50, SIZE - 20]]])
    view = Viewpoint(camera.view, camera.projection, (0, 0, SIZE, SIZE))  # type: ignore[arg-type]
    return SelectionLayer("upper", view, Lasso((outline,)), Feather(width))


def relative(wrong: np.ndarray, right: np.ndarray) -> float:
    """Return the root mean square of the difference over that of what is right."""
    return float(np.sqrt(((wrong - right) ** 2).sum() / (right**2).sum()))


def main() -> None:
    """Print the table and write the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cloud", nargs="?", default="demo/capture/human_0000.ply")
    parser.add_argument("--plots", type=Path)
    options = parser.parse_args()
    cloud, _ = read_cloud(options.cloud)
    p = cloud.positions.astype(np.float64)
    thin = np.argmin(cloud.scales, axis=1)
    axes = quaternion_to_matrix(cloud.rotations.astype(np.float64))
    normals = np.take_along_axis(axes, thin[:, None, None], axis=2)[..., 0]
    bend = np.zeros((2, 3, 4))
    bend[:, :, :3] = np.eye(3)
    bend[0, :, :3] = quaternion_to_matrix(np.array([np.cos(ANGLE / 2), 0, 0, np.sin(ANGLE / 2)]))
    pivot = (p.min(axis=0) + p.max(axis=0)) / 2
    bend[0, :, 3] = pivot - bend[0, :, :3] @ pivot
    indices = np.tile(np.int32([0, 1]), (len(p), 1))
    curves: dict[str, list[float]] = {"gradient": [], "along the surface": [], "elastic term, bent 60°": []}
    print(
        f"{len(p)} splats\n| smoothness, px | in feather | "
        + " | ".join(curves)
        + " |\n"
        + "| --- " * 5
        + "|"
    )
    for width in WIDTHS:
        w, g = evaluate_stack(LayerStack(("upper",), (gesture(p, width),)), p)
        pair, exact = np.hstack([w, 1 - w]), np.concatenate([g, -g], axis=1)
        estimated = weight_gradients(p, indices, pair)
        band = exact[:, 0].any(axis=1)
        tangential = [
            a[:, 0] - (a[:, 0] * normals).sum(axis=1, keepdims=True) * normals for a in (estimated, exact)
        ]
        elastic = [jacobian_terms(p, Skin(indices, pair, a), bend)[1] for a in (estimated, exact)]
        row = [
            relative(estimated[band, 0], exact[band, 0]),
            relative(tangential[0][band], tangential[1][band]),
            relative(elastic[0][band], elastic[1][band]),
        ]
        for curve, value in zip(curves.values(), row, strict=True):
            curve.append(value)
        print(f"| {width} | {band.sum()} | " + " | ".join(f"{value:.3f}" for value in row) + " |")
    if options.plots is not None:
        options.plots.mkdir(parents=True, exist_ok=True)
        title = "smoothness, px: error of gradients from 16 neighbours, relative"
        svg = plot(title, [str(width) for width in WIDTHS], curves)
        (options.plots / "selection-gradients.svg").write_text(svg, "utf-8")


if __name__ == "__main__":
    main()
