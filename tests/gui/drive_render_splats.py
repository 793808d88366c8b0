"""Render Splats in a window: beside the user, cancelled by Esc, through the file browser, and right."""

from __future__ import annotations

import sys
import tempfile
from importlib import import_module
from pathlib import Path

import bpy
import numpy as np
from mathutils import Matrix

sys.path.insert(0, str(Path(__file__).parent))
import driver
from driver import view, wait_until

driver.install()


def module(name):
    return import_module(f"{driver.PACKAGE}.{name}")


jobs = module("gaussianimate_addon.job")
SIZE = 96


def make_scene():
    """Return splats and the camera of the scene, as core knows it."""
    for object in list(bpy.data.objects):
        bpy.data.objects.remove(object)
    rng = np.random.default_rng(0)
    count = 20_000
    cloud = module("core.cloud").GaussianCloud(
        positions=rng.uniform(-1, 1, (count, 3)).astype(np.float32),
        rotations=np.tile(np.float32([1, 0, 0, 0]), (count, 1)),
        scales=rng.uniform(0.01, 0.1, (count, 3)).astype(np.float32),
        opacities=rng.uniform(0.1, 1, count).astype(np.float32),
        sh=rng.normal(scale=0.4, size=(count, 4, 3)).astype(np.float32),
    )
    data = module("gaussianimate_addon.point_cloud").cloud_to_point_cloud(cloud, "splats")
    scene = bpy.context.scene
    scene.collection.objects.link(bpy.data.objects.new("splats", data))
    camera = module("core.render.camera").Camera.perspective(
        (0, -5, 1), (0, 0, 0), (0, 0, 1), 0.6, SIZE, SIZE, 0.1, 100
    )
    lens = bpy.data.cameras.new("camera")
    lens.angle = 0.6
    scene.camera = bpy.data.objects.new("camera", lens)
    scene.camera.matrix_world = Matrix(np.linalg.inv(camera.view).tolist())
    scene.collection.objects.link(scene.camera)
    scene.view_settings.view_transform, scene.render.dither_intensity = "Standard", 0
    scene.render.resolution_x = scene.render.resolution_y = SIZE
    scene.frame_start, scene.frame_end = 1, 200
    return cloud, camera


def start(path, **settings):
    with bpy.context.temp_override(**view()):
        return bpy.ops.gaussianimate.render_splats("INVOKE_DEFAULT", filepath=str(path), **settings)


def idle():
    return jobs.running() is None


def read(path):
    image = bpy.data.images.load(str(path))
    pixels = np.array(image.pixels[:]).reshape(image.size[1], image.size[0], 4)
    bpy.data.images.remove(image)
    return pixels


def script():
    cloud, camera = make_scene()
    folder = Path(tempfile.mkdtemp())
    reference = module("core.render.reference")
    expected = reference.rasterise([(cloud, None)], camera, linear=True).rgba
    expected[..., :3] = np.minimum(expected[..., :3], expected[..., 3:])
    scene = bpy.context.scene
    scene.frame_set(77)
    yield 0.5

    # To the end: the picture is the reference's, and the scene as it was.
    assert start(folder / "a.png", frame_end=2, color_depth="16") == {"RUNNING_MODAL"}
    yield from wait_until(idle, 60, "the render to end")
    assert sorted(path.name for path in folder.iterdir()) == ["a_0001.png", "a_0002.png"]
    quality = reference.psnr(read(folder / "a_0002.png"), expected)
    assert quality > 70, f"{quality:.1f} dB"
    assert scene.frame_current == 77

    # Esc: what is written is whole, nothing else is left.
    assert start(folder / "b.exr") == {"RUNNING_MODAL"}
    yield from wait_until((folder / "b_0003.exr").exists, 60, "three frames")
    driver.picture("render_splats_progress")
    assert jobs.running() is not None and not bpy.ops.gaussianimate.render_splats.poll()
    yield from driver.escape(idle)
    yield 0.3
    written = sorted(folder.glob("b_*.exr"))
    assert 3 <= len(written) < 200 and not list(folder.glob(".*"))
    assert scene.frame_current == 77

    # Through the file browser, from the panel's tab.
    yield from driver.show_tab()
    with bpy.context.temp_override(**view()):
        bpy.ops.gaussianimate.render_splats("INVOKE_DEFAULT", frame_start=5, frame_end=5)
    yield 1.0
    browser = next(
        (window, area)
        for window in bpy.context.window_manager.windows
        for area in window.screen.areas
        if area.type == "FILE_BROWSER"
    )
    driver.picture("render_splats_browser")
    parameters = browser[1].spaces[0].params
    parameters.directory, parameters.filename = str(folder).encode(), "c_####.png"
    yield 1.0  # the browser reads the folder
    with bpy.context.temp_override(window=browser[0], area=browser[1]):
        bpy.ops.file.execute()
    yield from wait_until((folder / "c_0005.png").exists, 60, "the file")
    yield from wait_until(idle, 60, "the render to end")

    # Another file is loaded meanwhile: the render ends.
    assert start(folder / "d.exr") == {"RUNNING_MODAL"}
    yield from wait_until((folder / "d_0001.exr").exists, 60, "a frame")
    bpy.ops.wm.read_homefile(app_template="")
    yield 0.5
    assert idle() and not list(folder.glob(".*"))


driver.run(script)
