"""Selection fields: time of weights and exact gradients, against weights alone and estimated gradients.

Run: ``python benchmarks/bench_selection.py [--splats 850000] [--preview 1000000] [--runs 25] [--threads N]``.

Prints, for one gesture of every shape and for a stack of all of them, milliseconds for weights alone, for
weights and gradients, and their ratio; then what moving least squares over 16 neighbours take for the same
weights, and the masks of gestures on a million splats (view projected with every mask, and kept from before).
Times are those of all processors together, which threads share; a busy machine stretches what a clock shows.
Exits with 1 where a ratio is missed: gradients for at most half of the weights' time again, for every shape;
for the stack also 20 times less than estimated ones.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np

from gaussianimate.core.render.camera import Camera
from gaussianimate.core.selection.evaluate import evaluate_stack, evaluate_weights
from gaussianimate.core.selection.feather import Feather
from gaussianimate.core.selection.layer import LayerStack, SelectionLayer
from gaussianimate.core.selection.preview import Preview, preview
from gaussianimate.core.selection.shapes import Ellipse, Lasso, Rectangle, Shape, Stroke
from gaussianimate.core.selection.viewpoint import Viewpoint
from gaussianimate.core.skinning.gradients import weight_gradients

WIDTH, HEIGHT = 1600, 1000


def viewpoint(eye: tuple[float, float, float]) -> Viewpoint:
    """Return a view of the origin."""
    camera = Camera.perspective(eye, (0, 0, 0), (0, 0, 1), 0.7, WIDTH, HEIGHT, 0.1, 100)
    return Viewpoint(camera.view, camera.projection, (0, 0, WIDTH, HEIGHT))


def shapes() -> dict[str, Shape]:
    """Return gestures as they are drawn: the lasso and the stroke have as many points as a hand gives."""
    t = np.linspace(0, 2 * np.pi, 160, endpoint=False)
    reach = 200 + 30 * np.sin(5 * t) + 12 * np.sin(17 * t)
    lasso = np.stack([800 + reach * np.cos(t), 500 + 0.7 * reach * np.sin(t)], axis=1)
    s = np.linspace(0, 1, 400)
    path = np.stack([550 + 500 * s, 500 + 120 * np.sin(7 * s)], axis=1)
    return {
        "rectangle": Rectangle((800, 500), (200, 140), 0.2),
        "ellipse": Ellipse((800, 500), (220, 150), 0.2),
        "lasso": Lasso((lasso,)).simplified(),
        "stroke": Stroke(path, 50 + 15 * np.sin(11 * s)).simplified(),
    }


def cloud(count: int) -> np.ndarray:
    """Return the splats of a body-like surface with some depth, float32."""
    rng = np.random.default_rng(0)
    p = rng.normal(size=(count, 3)).astype(np.float32)
    p /= np.linalg.norm(p, axis=1, keepdims=True)
    return p * np.float32([0.9, 0.5, 0.6]) * (1 + 0.02 * rng.normal(size=(count, 1)).astype(np.float32))


def seconds(
    tasks: list[Callable[[], object]], runs: int, clock: Callable[[], float] = time.process_time
) -> list[float]:
    """Return the least of ``runs`` times of each task, taken in turns; of all processors together."""
    best = [np.inf] * len(tasks)
    for _ in range(runs):
        for k, task in enumerate(tasks):
            start = clock()
            task()
            best[k] = min(best[k], clock() - start)
    return best


def main() -> int:
    """Print the tables; return the number of targets missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splats", type=int, default=850_000)
    parser.add_argument("--preview", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--width", type=float, default=60, help="of the feather, pixels")
    options = parser.parse_args()
    front, side, n, threads = (
        viewpoint((0.6, -3.5, 0.5)),
        viewpoint((3, -2, 0.3)),
        options.splats,
        options.threads,
    )
    feather = Feather(options.width)
    layers = [
        SelectionLayer("arm", view, shape, feather, 0.8, operation)
        for (shape, view, operation) in zip(
            shapes().values(),
            (front, front, side, side),
            ("replace", "add", "subtract", "multiply"),
            strict=True,
        )
    ]
    p, missed = cloud(n), 0
    print(f"{n} splats, feather {options.width:g} px; ms of all processors together")
    print(f"{'':12} {'in feather':>10} {'weights':>9} {'+ gradients':>12} {'ratio':>6}")
    stacks = {
        layer.shape.kind: LayerStack(("arm",), (layer,)).changed(0, operation="add") for layer in layers
    }
    stacks["all four"] = LayerStack(("arm",), layers)
    both = 0.0
    for name, stack in stacks.items():
        inside = (np.abs(evaluate_stack(stack, p)[1]).max(axis=(1, 2)) > 0).mean()
        weights, both = seconds(
            [
                lambda: evaluate_weights(stack, p, threads=threads),  # noqa: B023
                lambda: evaluate_stack(stack, p, threads=threads),  # noqa: B023
            ],
            options.runs,
        )
        missed += both > 1.5 * weights
        print(f"{name:12} {inside:10.2f} {1e3 * weights:9.0f} {1e3 * both:12.0f} {both / weights:6.2f}")
    weights = evaluate_weights(stacks["all four"], p)
    indices = np.tile(np.int32([0, 1]), (n, 1))
    pair = np.hstack([weights, 1 - weights])
    estimated = seconds([lambda: weight_gradients(p, indices, pair)], 1)[0]
    missed += estimated < 20 * both
    print(f"estimated from 16 neighbours: {1e3 * estimated:.0f} ms, {estimated / both:.0f} times as long")
    p = cloud(options.preview)
    print(f"\npreview of {options.preview} splats; ms")
    print(f"{'':12} {'mask':>9} {'view kept':>10} {'mask, wall':>12}")
    for layer in layers:
        kept = Preview(layer.viewpoint, p, threads)
        whole, again = seconds(
            [lambda: preview(layer, p, threads), lambda: kept.mask(layer)],  # noqa: B023
            options.runs,
        )
        wall = seconds([lambda: preview(layer, p, threads)], options.runs, time.perf_counter)[0]  # noqa: B023
        print(f"{layer.shape.kind:12} {1e3 * whole:9.0f} {1e3 * again:10.0f} {1e3 * wall:12.0f}")
    return missed


if __name__ == "__main__":
    sys.exit(min(main(), 1))
