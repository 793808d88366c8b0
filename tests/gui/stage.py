"""A rigged bar of splats before the camera, what the screen shows of it, and what Blender printed.

The bar lies along X from 0 to 2 and hinges at x = 1 about Y: red up to the hinge, blue beyond it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from importlib import import_module

import bpy
import driver
import numpy as np
from bpy_extras.view3d_utils import location_3d_to_region_2d
from mathutils import Euler, Quaternion, Vector

RED, BLUE, GREEN = (0.9, 0.1, 0.1), (0.1, 0.2, 0.9), (0.1, 0.8, 0.1)
FRONT, BACK = Euler((np.pi / 2, 0, 0)), Euler((np.pi / 2, 0, np.pi))
TOP, SIDE = Euler((0, 0, 0)), Euler((np.pi / 2, 0, np.pi / 2))
HINGE = "joint_1"
BASE = (0.6, 0, 0.08)  # a point of the red half beside its bone


def ours(name):
    """Return a module of the installed extension."""
    return import_module(f"{driver.PACKAGE}.{name}")


def drawer():
    return ours("gaussianimate_addon.drawer.viewport").DRAWER


def make_cloud(positions, colors, scale=0.03, opacity=0.98):
    """Return round splats of these colours (N, 3) in sRGB."""
    count = len(positions)
    return ours("core.cloud").GaussianCloud(
        positions=np.asarray(positions, np.float32),
        rotations=np.tile(np.float32([1, 0, 0, 0]), (count, 1)),
        scales=np.full((count, 3), scale, np.float32),
        opacities=np.full(count, opacity, np.float32),
        sh=((np.asarray(colors, np.float32) - 0.5) / 0.28209479)[:, None],
    )


def bar_cloud(count=3000, seed=0):
    rng = np.random.default_rng(seed)
    positions = rng.uniform([0, -0.12, -0.12], [2, 0.12, 0.12], (count, 3))
    return make_cloud(positions, np.where(positions[:, :1] < 1, RED, BLUE))


def splat_object(cloud, name, display="DRAWER"):
    """Add splats to the scene."""
    object = bpy.data.objects.new(
        name, ours("gaussianimate_addon.point_cloud").cloud_to_point_cloud(cloud, name)
    )
    bpy.context.scene.collection.objects.link(object)
    ours("gaussianimate_addon.drawer.display").set_display(object, display)
    return object


def rigged_bar(name="bar", frames=11, count=3000):
    """Add the bar, its armature and a replay that folds it by a right angle; return both."""
    cloud = bar_cloud(count)
    hold = np.clip((cloud.positions[:, 0] - 0.9) / 0.2, 0, 1)
    weights = np.stack([1 - hold, hold], 1).astype(np.float32)
    indices = np.tile(np.int32([0, 1]), (len(cloud), 1))
    turns = np.zeros((frames, 2, 4))
    half = np.linspace(0, np.pi / 4, frames)
    turns[:, 0, 0], turns[:, 1, 0], turns[:, 1, 2] = 1, np.cos(half), np.sin(half)
    places = np.array([[0, 0, 0], [1, 0, 0.0]])
    rig = ours("core.rigging.rig").Rig(
        rest=cloud.positions,
        indices=indices,
        weights=weights,
        bone_transforms=np.tile(np.eye(3, 4), (frames, 2, 1, 1)),
        joint_names=("joint_0", HINGE),
        joint_parents=np.int32([-1, 0]),
        joint_positions=places,
        bone_joints=np.int32([0, 1]),
        joint_rotations=turns,
        root_translations=np.zeros((frames, 3)),
        frames=np.arange(frames, dtype=np.int32),
        fps=24.0,
        canonical_frame=0,
    )
    rig.bone_transforms[:] = ours("core.rigging.posing").joint_motions(rig)[:, rig.bone_joints]
    object = splat_object(cloud, name, "NATIVE")
    skin = ours("core.skinning.skin").make_skin(cloud.positions, indices, weights, bone_count=2)
    armature = ours("gaussianimate_addon.rig_object").apply_rig(bpy.context, object, rig, skin)
    ours("gaussianimate_addon.motion_switch").remember_replay(armature)
    ours("gaussianimate_addon.drawer.display").set_display(object, "DRAWER")
    return object, armature


def tip(angle, along=1.8, above=0.08):
    """Where a point of the bar is after a turn about the hinge, radians about +Y, beside its bone."""
    reach, cos, sin = along - 1, np.cos(angle), np.sin(angle)
    return Vector((1 + reach * cos + above * sin, 0, above * cos - reach * sin))


def clean_scene():
    for object in list(bpy.data.objects):
        bpy.data.objects.remove(object)


def views(window=None):
    """Return (area, region, region data) of every 3D viewport of a window."""
    window = window or bpy.context.window_manager.windows[0]
    found = []
    for area in window.screen.areas:
        if area.type == "VIEW_3D":
            space, regions = area.spaces.active, [r for r in area.regions if r.type == "WINDOW"]
            quad = list(space.region_quadviews) or [space.region_3d]
            found += [(area, region, data) for region, data in zip(regions[: len(quad)], quad, strict=True)]
    return found


def look(data, rotation=FRONT, at=(1, 0, 0), distance=5.0, perspective="PERSP"):
    """Turn a view towards a point."""
    data.view_perspective = perspective
    data.view_location = at
    data.view_rotation = rotation if isinstance(rotation, Quaternion) else rotation.to_quaternion()
    data.view_distance = distance
    data.update()


def screen_pixels(name):
    """Take a picture of the screen, kept under that name; (H, W, 3) in 0..1, row 0 at the bottom."""
    driver.picture(name)
    path = driver.OUT / f"{name}.png"
    if shutil.which("convert"):
        size = subprocess.run(["identify", "-format", "%w %h", str(path)], capture_output=True, check=True)
        width, height = map(int, size.stdout.split())
        raw = subprocess.run(["convert", str(path), "-depth", "8", "rgb:-"], capture_output=True, check=True)
        values = np.frombuffer(raw.stdout, np.uint8).reshape(height, width, 3)[::-1] / 255
    else:
        image = bpy.data.images.load(str(path))
        values = np.empty(len(image.pixels), np.float32)
        image.pixels.foreach_get(values)
        values = values.reshape(image.size[1], image.size[0], -1)[..., :3]
        bpy.data.images.remove(image)
    return values


class Shot:
    """A picture of the screen in which points of the scene are looked up."""

    def __init__(self, name):
        self.name, self.pixels = name, screen_pixels(name)

    def color(self, view, point, window=None):
        """Return the mean colour (3,) of the 3 x 3 pixels that show a point of the scene."""
        _, region, data = view
        spot = location_3d_to_region_2d(region, data, Vector(point))
        assert spot is not None, f"{point} is not before the view"
        window = window or bpy.context.window_manager.windows[0]
        x, y = int(region.x + spot.x + window.x), int(region.y + spot.y + window.y)
        inside = region.x <= x - window.x < region.x + region.width
        assert inside and region.y <= y - window.y < region.y + region.height, f"{point} is out of view"
        return self.pixels[y - 1 : y + 2, x - 1 : x + 2].reshape(-1, 3).mean(axis=0)

    def check(self, view, point, expected, tolerance=0.15, window=None):
        """Assert the colour of a point: (3,), or None for a grey, which all but splats are."""
        color = self.color(view, point, window)
        if expected is None:
            hue = max(np.abs(color - color.mean()))
            assert hue < min(tolerance, 0.12), (
                f"{self.name}: {tuple(point)} shows {color.round(2)}, expected background"
            )
        else:
            off = np.abs(color - expected).max()
            assert off < tolerance, f"{self.name}: {tuple(point)} shows {color.round(2)}, expected {expected}"


def until(name, checks, seconds=10.0):
    """Take pictures until ``checks(shot)`` passes (use with ``yield from``)."""
    end = time.monotonic() + seconds
    while True:
        yield 0.3
        try:
            return checks(Shot(name))
        except AssertionError:
            if time.monotonic() > end:
                raise


def ball(name, *spots, display="DRAWER", radius=0.12):
    """Add opaque balls: one object, ``spots`` are pairs of a place and a colour."""
    rng = np.random.default_rng(0)
    inside = rng.normal(size=(150, 3))
    inside *= radius * rng.uniform(0, 1, (150, 1)) / np.linalg.norm(inside, axis=1, keepdims=True)
    positions = np.concatenate([np.asarray(place) + inside for place, _ in spots])
    colors = np.concatenate([np.tile(color, (150, 1)) for _, color in spots])
    return splat_object(make_cloud(positions, colors), name, display)


def played(name, frames):
    """Add a capture of an opaque ball that is in each frame at a place and of a colour."""
    inside = np.random.default_rng(0).normal(scale=0.05, size=(150, 3))
    clouds = [make_cloud(np.asarray(place) + inside, np.tile(color, (150, 1))) for place, color in frames]
    capture = ours("core.capture").Capture(
        name=name,
        positions=np.stack([cloud.positions for cloud in clouds]),
        frame_valid=np.ones(len(clouds), bool),
        load_cloud=lambda frame: clouds[frame],
        fps=24.0,
        up="z",
    )
    create = ours("gaussianimate_addon.capture_object").create_capture_object
    object = create(bpy.context, capture, clouds[0], "z")
    ours("gaussianimate_addon.drawer.display").set_display(object, "DRAWER")
    return object


def wall(name, x, y):
    """Add a square of 0.8 m that faces the view."""
    corners = [(x + 0.4 * a, y, 0.4 * b) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(corners, [], [(0, 1, 2, 3)])
    object = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(object)
    return object


class Output:
    """All that Blender prints from now on, kept in a file and shown at the end."""

    def __init__(self, name):
        driver.OUT.mkdir(parents=True, exist_ok=True)
        self.path = driver.OUT / f"{name}.log"
        sys.stdout.flush()
        self._screen = os.dup(1)
        handle = os.open(self.path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(handle, stream)

    def lines(self):
        sys.stdout.flush()
        sys.stderr.flush()
        return self.path.read_text(errors="replace").splitlines()

    def complaints(self):
        """Return the lines that tell of errors."""
        words = ("Error", "Traceback", "GaussiAnimate stopped", "EXCEPTION", "ASSERT", "Shader failed")
        return [line for line in self.lines() if any(word in line for word in words)]

    def show(self):
        os.write(self._screen, ("\n".join(self.lines()) + "\n").encode())
        for stream in (1, 2):
            os.dup2(self._screen, stream)


def failure():
    """Assert that the drawer draws."""
    assert drawer().failure is None, drawer().failure


def run(name, script, expected_complaints=0):
    """Run a script by `driver.run` with its output kept; `script` is called with that `Output`."""
    output = Output(name)

    def steps():
        try:
            yield from script(output)
            failure()
            assert len(output.complaints()) == expected_complaints, output.complaints()
        finally:
            output.show()

    driver.run(steps)
