"""A gesture on many splats in Blender: from a move of the mouse to the mask on the GPU, and its layer.

    python benchmarks/bench_gesture.py [--splats 1000000] [--runs 7] [--bones 20]

The splats cover the sample capture; an armature built by hand carries them. The first table is what each move
takes, milliseconds of the clock: the layer of what was drawn, the surface under it, the mask, the texture
(until the driver has it); and the sum by the processor's time, all threads together. Before the first move,
positions are read and projected once, and, unless gestures go through everything, the depths are taken once:
the last column is the sum of everything at that move. The second table is what the first, second, ... layer
takes when it is added, each on a bone of its own; then its strength and its smoothness when they are changed
in the list; and, as parts of that, all layers evaluated with nothing remembered, and the weights written.

Exits with 1 where a move takes more than 100 ms.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import bpy  # noqa: I001  (makes gpu importable)
import gpu
import numpy as np
from bench_draw import body
from bench_selection import shapes, viewpoint

from gaussianimate.core.selection.depth_picture import DepthPicture
from gaussianimate.core.selection.feather import Feather
from gaussianimate.core.selection.layer import SelectionLayer
from gaussianimate.core.selection.preview import Preview
from gaussianimate.core.selection.shapes import Shape
from gaussianimate.core.selection.skin import stack_to_skin
from gaussianimate.core.skinning.skin import Skin
from gaussianimate.gaussianimate_addon.armature import edit_mode
from gaussianimate.gaussianimate_addon.attributes import read_attribute, splats
from gaussianimate.gaussianimate_addon.drawer.mask import Mask
from gaussianimate.gaussianimate_addon.point_cloud import cloud_to_point_cloud
from gaussianimate.gaussianimate_addon.skin_attributes import read_skin, write_skin
from gaussianimate.gaussianimate_addon.weights.binding import bind_splats
from gaussianimate.gaussianimate_addon.weights.gestures import (
    add_layer,
    depth_picture,
    make_shape,
    surface_under,
)
from gaussianimate.gaussianimate_addon.weights.layers import empty_skin, read_layers, write_layers
from gaussianimate.gaussianimate_addon.weights.numbering import number_bones

MOST = 100.0  # ms of a move
Times = dict[str, tuple[float, float]]


class Clock:
    """The least times of named parts, of the clock and of the processor, milliseconds."""

    def __init__(self) -> None:
        self.times: Times = {}

    def __call__(self, name: str, task: Callable[[], Any]) -> Any:
        """Run a task and remember its time where it is the least one of that name."""
        wall, busy = time.perf_counter(), time.process_time()
        result = task()
        taken = 1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - busy)
        before = self.times.get(name, (np.inf, np.inf))
        self.times[name] = min(taken[0], before[0]), min(taken[1], before[1])
        return result

    def wall(self, *names: str) -> float:
        """Return the sum of parts."""
        return sum(self.times[name][0] for name in names if name in self.times)

    def busy(self, *names: str) -> float:
        """Return the sum of parts of the processor's time."""
        return sum(self.times[name][1] for name in names if name in self.times)


def add_body(count: int, bones: int) -> bpy.types.Object:
    """Return splats bound without weights to an armature of that many bones."""
    cloud = body(count)
    centre = (cloud.positions.min(axis=0) + cloud.positions.max(axis=0)) / 2
    cloud = replace(cloud, positions=cloud.positions - centre)
    scene = bpy.context.scene
    object = bpy.data.objects.new("body", cloud_to_point_cloud(cloud, "body"))
    data = bpy.data.armatures.new("bones")
    armature = bpy.data.objects.new("bones", data)
    for made in (object, armature):
        scene.collection.objects.link(made)
    bpy.context.view_layer.update()
    with edit_mode(bpy.context, armature):
        for k in range(bones):
            bone = data.edit_bones.new(f"bone {k}")
            bone.head, bone.tail = (0.05 * k, 0, 0), (0.05 * k + 0.04, 0, 0)
    number_bones(armature)
    bind_splats(bpy.context, object, armature, empty_skin(count))
    return object


def points_of(shape: Shape) -> tuple[str, list[Any]]:
    """Return what a hand would have drawn, as the operator is given it."""
    kind = shape.kind.upper()
    if kind == "LASSO":
        return kind, [list(point) for point in shape.outlines[0]]  # type: ignore[attr-defined]
    if kind == "STROKE":
        return kind, [[*p, r] for p, r in zip(shape.points, shape.radii, strict=True)]  # type: ignore[attr-defined]
    low, high = np.array(shape.bounds[:2]), np.array(shape.bounds[2:])  # type: ignore[index]
    return kind, [low.tolist(), high.tolist()]


def preview_table(object: bpy.types.Object, runs: int) -> float:
    """Print what moves take; return the longest, milliseconds."""
    view, feather, longest = viewpoint((0.5, -3.2, 0.4)), Feather(60), 0.0
    atlas: Any = SimpleNamespace(version=1, spans=[range_span(len(splats(object).points))])
    subject: Any = SimpleNamespace(uid=object.session_uid)
    print(
        f"{'':20} {'layer':>6} {'surface':>8} {'mask':>6} {'texture':>8} {'sum':>6} {'CPU':>6} {'first':>7}"
    )
    for name, shape in shapes().items():
        kind, points = points_of(shape)
        for through in (False, True):
            clock = Clock()
            for _ in range(runs):
                seen = clock("read", lambda: Preview(view, read_attribute(splats(object), "position")))
                drawn = clock("layer", lambda: make_shape(kind, points, 50, 0.2 * (kind != "LASSO")))  # noqa: B023
                depths = None if through else clock("depths", lambda: depths_under(object, seen, drawn))  # noqa: B023
                layer = SelectionLayer("bone 0", view, drawn, feather, 0.8)
                if depths is not None:
                    front = clock("surface", lambda: surface_under(depths, drawn, feather))  # noqa: B023
                    layer = replace(layer, front=front)
                values = clock("mask", lambda: seen.mask(layer))  # noqa: B023
                clock("texture", lambda: Mask(subject.uid, values).texture([subject], atlas))  # noqa: B023
            parts = ("layer", "surface", "mask", "texture")
            total = clock.wall(*parts)
            longest = max(longest, total)
            row = " ".join(f"{clock.wall(part):{w}.1f}" for part, w in zip(parts, (6, 8, 6, 8), strict=True))
            label = f"{name}, {'through' if through else 'front'}"
            print(
                f"{label:20} {row} {total:6.1f} {clock.busy(*parts):6.1f}"
                f" {clock.wall(*parts, 'read', 'depths'):7.1f}",
                flush=True,
            )
    return longest


def depths_under(object: bpy.types.Object, seen: Preview, shape: Shape) -> DepthPicture:
    """Take the depths, those of larger cells too where gestures of this size need them."""
    depths = depth_picture(object, seen)
    surface_under(depths, shape, Feather(60))
    return depths


def range_span(count: int) -> Any:
    """Return where one object's splats lie in an atlas that has no others."""

    class Span:
        first = 0

        def __len__(self) -> int:
            return count

    return Span()


def layers_table(object: bpy.types.Object, runs: int) -> None:
    """Print what layers take that are added, and numbers that are changed."""
    view, feather = viewpoint((0.5, -3.2, 0.4)), Feather(60)
    data = splats(object)
    seen = Preview(view, read_attribute(data, "position"))
    depths = depth_picture(object, seen)
    gestures = [
        SelectionLayer(f"bone {bone}", view, shape, feather, 0.8, front=surface_under(depths, shape, feather))
        for bone, shape in enumerate([*shapes().values(), shapes()["lasso"]])
    ]
    columns = ("added", "strength", "smoothness", "evaluated", "written")
    print(f"{'':7}" + "".join(f"{name:>11} {'CPU':>5}" for name in columns))
    for number, layer in enumerate(gestures):
        clock, before = Clock(), read_layers(object)
        for run in range(runs):
            write_layers(object, before)
            clock("added", lambda: add_layer(object, layer))  # noqa: B023
            for name, value in (("strength", 0.5 + 0.01 * run), ("feather", Feather(61 + run))):
                changed = read_layers(object).changed(number, **{name: value})
                clock(name.replace("feather", "smoothness"), lambda: write_layers(object, changed))  # noqa: B023
        positions = read_attribute(data, "position").astype(np.float64)
        stack, skin = read_layers(object), read_skin(data)
        for _ in range(runs):
            clock("evaluated", lambda: stack_to_skin(stack, positions))  # noqa: B023
            clock("written", lambda: rewrite(data, skin))  # noqa: B023
        print(
            f"{number + 1:7}"
            + "".join(f"{clock.wall(name):11.0f} {clock.busy(name):5.0f}" for name in columns),
            flush=True,
        )


def rewrite(data: bpy.types.PointCloud, skin: Skin) -> None:
    """Store weights."""
    write_skin(data, skin)
    data.update_tag()


def main() -> int:
    """Print both tables; return the number of targets missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splats", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--bones", type=int, default=20)
    options = parser.parse_args()
    try:
        gpu.init()
    except SystemError as error:
        print(f"no graphics driver here: {error}")
        return 0
    bpy.ops.wm.read_factory_settings(use_empty=True)
    object = add_body(options.splats, options.bones)
    print(f"{gpu.platform.renderer_get()}; {options.splats} splats, {options.bones} bones; ms")
    longest = preview_table(object, options.runs)
    print()
    layers_table(object, max(options.runs // 2, 1))
    return int(longest > MOST)


if __name__ == "__main__":
    sys.exit(main())
