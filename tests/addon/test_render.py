"""Rendered pictures show the captured and the posed splats, frame by frame."""

import os
from dataclasses import replace

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix
from rigs import make_cloud
from test_rig_object import rigged

from gaussianimate.core.deform.transforms import transform_cloud
from gaussianimate.gaussianimate_addon.point_cloud import NATIVE_SPLATS, cloud_to_point_cloud
from gaussianimate.gaussianimate_addon.rig_object import remove_rig


@pytest.fixture(scope="module")
def gpu_module():
    """Start Blender's GPU module on whatever Vulkan driver there is."""
    import gpu

    try:
        gpu.init()
    except SystemError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no Vulkan driver on CI: {error}")
        pytest.skip(f"no Vulkan driver (mesa-vulkan-drivers has a software one): {error}")
    return gpu


@pytest.fixture
def picture(scene, gpu_module, tmp_path):
    """Return a function that renders a frame to an array (H, W, 3)."""
    camera = bpy.data.objects.new("camera", bpy.data.cameras.new("camera"))
    scene.collection.objects.link(camera)
    camera.data.type, camera.data.ortho_scale = "ORTHO", 5
    camera.location, camera.rotation_euler = (1.5, -10, 0), (np.pi / 2, 0, 0)
    scene.camera = camera
    scene.world = bpy.data.worlds.new("black")
    scene.render.engine = "BLENDER_WORKBENCH"
    scene.render.resolution_x = scene.render.resolution_y = 96
    scene.render.film_transparent = True
    scene.render.image_settings.file_format = "PNG"

    def read(path):
        image = bpy.data.images.load(str(path))
        pixels = np.array(image.pixels[:]).reshape(96, 96, 4)
        bpy.data.images.remove(image)
        return pixels

    def render(first, last):
        scene.frame_start, scene.frame_end = first, last
        scene.render.filepath = str(tmp_path / "frame_####")
        bpy.ops.render.render(animation=True)
        return [read(tmp_path / f"frame_{f:04d}.png") for f in range(first, last + 1)]

    return render


def solid_cloud():
    """Opaque splats a few pixels wide."""
    cloud = make_cloud(400, degree=0)
    return replace(cloud, scales=cloud.scales + np.float32(0.05), opacities=np.ones_like(cloud.opacities))


def silhouette(picture):
    return picture[..., 3] > 0.5


@pytest.mark.parametrize("with_rig", [True, False])
def test_every_rendered_frame_is_its_own(scene, picture, with_rig):
    object, *_ = rigged(scene, axis="z", cloud=solid_cloud())
    if not with_rig:
        remove_rig(object)
    pictures = picture(1, 4)
    assert all(silhouette(p).sum() > 50 for p in pictures)
    for i, first in enumerate(pictures):
        for second in pictures[i + 1 :]:
            assert (silhouette(first) != silhouette(second)).sum() > 20


def test_replay_and_playback_render_alike(scene, picture):
    object, *_ = rigged(scene, axis="z", cloud=solid_cloud())
    replayed = picture(1, 3)
    remove_rig(object)
    for a, b in zip(replayed, picture(1, 3), strict=True):
        assert (silhouette(a) != silhouette(b)).mean() < 0.01
        assert np.abs(a - b).mean() < 0.01


@pytest.mark.skipif(not NATIVE_SPLATS, reason="this Blender has no native splats (5.3 and later have)")
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_blender_turns_colours_with_the_object_as_we_bake_them(scene, picture, degree):
    ball = replace(
        make_cloud(1, degree=degree, seed=degree),
        positions=np.float32([[1.5, 0, 0]]),
        scales=np.full((1, 3), 0.8, np.float32),
        opacities=np.ones(1, np.float32),
    )
    there = Matrix.Translation((1.5, 0, 0))
    turn = there @ Euler((0.5, 1, 2)).to_matrix().to_4x4() @ there.inverted()

    def colour(cloud, matrix):
        object = bpy.data.objects.new("ball", cloud_to_point_cloud(cloud, "ball"))
        scene.collection.objects.link(object)
        object.matrix_world = matrix
        (shown,) = picture(1, 1)
        bpy.data.objects.remove(object)
        return shown[46:50, 46:50, :3].mean(axis=(0, 1))

    still = colour(ball, Matrix.Identity(4))
    turned = colour(ball, turn)
    baked = colour(transform_cloud(ball, np.array(turn, np.float64)), Matrix.Identity(4))
    assert np.abs(turned - still).max() > 0.05
    np.testing.assert_allclose(turned, baked, atol=0.02)


@pytest.mark.skipif(NATIVE_SPLATS, reason="this Blender draws splats itself")
def test_points_show_the_base_colour(scene, picture):
    red = replace(solid_cloud(), sh=np.tile(np.float32([1.5, -1.5, -1.5]), (400, 1, 1)))
    object = bpy.data.objects.new("red", cloud_to_point_cloud(red, "red"))
    scene.collection.objects.link(object)
    scene.render.engine = "CYCLES"
    scene.cycles.samples = 1
    (shown,) = picture(1, 1)
    colour = shown[silhouette(shown)][:, :3].mean(axis=0)
    assert colour[0] > 0.6 and colour[1] < 0.3 and colour[2] < 0.3
