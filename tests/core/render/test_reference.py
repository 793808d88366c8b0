"""Pictures by hand, against a brute-force composite, and under changes that must not change them."""

from dataclasses import replace

import numpy as np
import pytest

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.deform.transforms import transform_cloud
from gaussianimate.core.render.camera import Camera
from gaussianimate.core.render.projection import ALPHA_CUT, LOW_PASS, project, srgb_to_linear
from gaussianimate.core.render.reference import psnr, rasterise
from gaussianimate.core.rotations import axis_angle_to_quaternion, quaternion_to_matrix


def brute_force(items, camera):
    """Front to back over whole pictures, with inverse covariances: another way to the same sum."""
    parts = [project(cloud, camera, matrix) for cloud, matrix in items]
    layers = [(part.depth[k], part, k) for part in parts for k in range(len(part))]
    x, y = np.meshgrid(np.arange(camera.width) + 0.5, np.arange(camera.height) + 0.5)
    rgba, through = np.zeros((camera.height, camera.width, 4)), np.ones((camera.height, camera.width, 1))
    depth = np.zeros_like(x)
    for z, part, k in sorted(layers, key=lambda layer: layer[0]):
        axes = np.stack([part.e1[k], part.e2[k]])
        precision = axes.T @ np.diag(part.sigma[k] ** -2) @ axes
        offset = np.stack([x - part.centre[k, 0], y - part.centre[k, 1]], axis=-1)
        alpha = part.opacity[k] * np.exp(-0.5 * np.einsum("hwi,ij,hwj->hw", offset, precision, offset))
        inside = (np.abs(offset @ axes.T) <= part.half_extent[k]).all(axis=-1)
        alpha = np.where((alpha >= ALPHA_CUT) & inside, alpha, 0)[..., None]
        rgba += through * alpha * np.append(part.colour[k], 1)
        depth += (through * alpha)[..., 0] * z
        through = through * (1 - alpha)
    return rgba, depth / np.where(rgba[..., 3] > 0, rgba[..., 3], np.nan)


def inside_camera():
    return Camera.perspective((0.1, 0, 0.2), (1, 1, 0), (0, 0, 1), 1.2, 65, 49, 0.02, 100)


def pair(splat):
    """A light splat 1 m before a dark one, on the view axis."""
    front = splat((0, -1, 0), opacity=0.6, colour=(0.9, 0.8, 0.1))
    back = splat((0, 0, 0), opacity=0.9, colour=(0.1, 0.3, 0.7))
    return front, back


def joined(*clouds):
    names = GaussianCloud.__dataclass_fields__
    return GaussianCloud(**{name: np.concatenate([getattr(c, name) for c in clouds]) for name in names})


def test_one_splat_falls_off_as_a_gaussian(splat, perspective):
    image = rasterise([(splat(opacity=0.8, colour=0.25), None)], perspective)
    sigma = np.hypot(49 / 2 / np.tan(0.4) * 0.1 / 5, np.sqrt(LOW_PASS))
    for dx, dy in [(0, 0), (1, 0), (-2, 1), (0, 3)]:
        alpha = 0.8 * np.exp(-0.5 * (dx * dx + dy * dy) / sigma**2)
        np.testing.assert_allclose(image.rgba[24 + dy, 32 + dx], [0.25 * alpha] * 3 + [alpha])
    drawn = image.rgba[..., 3] > 0
    assert image.rgba[..., 3][drawn].min() >= ALPHA_CUT
    radius = np.sqrt(2 * np.log(255 * 0.8)) * sigma
    y, x = np.indices(drawn.shape)
    np.testing.assert_array_equal(drawn, np.hypot(x - 32, y - 24) <= radius)
    np.testing.assert_allclose(image.depth[drawn], 5)
    assert np.isnan(image.depth[~drawn]).all()


def test_opaque_splats_are_opaque(splat, perspective):
    assert rasterise([(splat(opacity=1.0), None)], perspective).rgba[24, 32, 3] == 1


@pytest.mark.parametrize("linear", [False, True])
def test_two_splats_over_each_other(splat, perspective, linear):
    front, back = pair(splat)
    light, dark = np.array([0.9, 0.8, 0.1]), np.array([0.1, 0.3, 0.7])
    if linear:
        light, dark = srgb_to_linear(light), srgb_to_linear(dark)
    clouds = ([front, back], [back, front], [joined(front, back)], [joined(back, front)])
    for items in clouds:
        image = rasterise([(cloud, None) for cloud in items], perspective, linear=linear)
        expected = [*(0.6 * light + 0.4 * 0.9 * dark), 0.6 + 0.4 * 0.9]
        np.testing.assert_allclose(image.rgba[24, 32], expected)
        assert image.depth[24, 32] == pytest.approx((0.6 * 4 + 0.36 * 5) / 0.96)


def test_equal_depths_keep_the_given_order(splat, perspective):
    front, back = pair(splat)
    back = replace(back, positions=front.positions)
    image = rasterise([(back, None), (front, None)], perspective)
    np.testing.assert_allclose(image.rgba[24, 32, 0], 0.6 * 0.9 + 0.4 * 0.9 * 0.1)


@pytest.mark.parametrize("view", ["perspective", "orthographic", "inside"])
def test_brute_force_composite(view, request, random_cloud):
    camera = inside_camera() if view == "inside" else request.getfixturevalue(view)
    matrix = np.diag([0.5, 1.5, 1, 1.0])
    matrix[:3, 3] = 0.3, 0.2, -0.1
    items = [(random_cloud(150), None), (random_cloud(150, degree=1), matrix)]
    if view == "inside":
        assert project(items[0][0], camera).sigma.max() > np.hypot(65, 49)
    rgba, depth = brute_force(items, camera)
    image = rasterise(items, camera)
    assert np.isfinite(image.rgba).all() and image.rgba[..., 3].max() > 0.9
    np.testing.assert_allclose(image.rgba, rgba, atol=1e-9)
    np.testing.assert_allclose(image.depth, depth, rtol=1e-9)


def test_moving_world_and_camera_together_changes_nothing(random_cloud, perspective, orthographic, motion):
    items = [(random_cloud(200), None), (random_cloud(100), np.diag([1, -0.7, 0.4, 1.0]))]
    for camera in (perspective, orthographic):
        still = rasterise(items, camera)
        moved = [(cloud, motion if matrix is None else motion @ matrix) for cloud, matrix in items]
        turned = replace(camera, view=camera.view @ np.linalg.inv(motion))
        image = rasterise(moved[:1], turned)
        np.testing.assert_allclose(image.rgba, rasterise(items[:1], camera).rgba, atol=1e-9)
        image = rasterise(moved, turned)
        np.testing.assert_allclose(image.rgba, still.rgba, atol=1e-9)


@pytest.mark.parametrize("kind", ["turn", "scale", "mirror", "shear"])
def test_object_matrix_draws_what_a_baked_cloud_draws(kind, random_cloud, perspective, motion):
    matrix = {
        "turn": np.eye(4),
        "scale": np.diag([0.5, 1.5, 1, 1]),
        "mirror": np.diag([-1, 1, 1, 1.0]),
        "shear": np.eye(4) + np.eye(4, k=1) * (0.6, 0.6, 0, 0),
    }[kind]
    matrix[:3, :3] = motion[:3, :3] @ matrix[:3, :3]
    cloud = random_cloud(300)
    live = rasterise([(cloud, matrix)], perspective).rgba
    baked = rasterise([(transform_cloud(cloud, matrix), None)], perspective).rgba
    np.testing.assert_allclose(live, baked, atol=1e-9)
    uncoloured = transform_cloud(replace(cloud, sh=cloud.sh[:, :1]), matrix)
    unturned = rasterise([(replace(uncoloured, sh=cloud.sh), None)], perspective).rgba
    assert psnr(live, unturned) < 30  # so the colours do turn


def test_mirrored_object_is_the_mirrored_picture(random_cloud, perspective):
    cloud = random_cloud(200, degree=0)
    image = rasterise([(cloud, None)], perspective).rgba
    mirrored = rasterise([(cloud, np.diag([-1, 1, 1, 1.0]))], perspective).rgba
    np.testing.assert_allclose(mirrored, image[:, ::-1], atol=1e-9)


def test_far_from_the_origin(random_cloud, perspective):
    cloud = random_cloud(200)
    away = np.eye(4)
    away[:3, 3] = 1e6, -2e6, 5e5
    camera = replace(perspective, view=perspective.view @ np.linalg.inv(away))
    np.testing.assert_allclose(
        rasterise([(cloud, away)], camera).rgba, rasterise([(cloud, None)], perspective).rgba, atol=1e-6
    )


def test_needle_against_dense_integration(splat, perspective):
    """A needle 1000 times as long as thick is a row of points, each a dot of the low-pass filter's width."""
    rotation = axis_angle_to_quaternion(np.array([1.0, -1, 0.3]), np.array(0.7))
    needle = splat((0.2, 0, 0.1), (0.3, 3e-4, 3e-4), rotation, opacity=1.0, colour=1.0)
    image = rasterise([(needle, None)], perspective).rgba[..., 3]
    along = np.linspace(-5, 5, 2001)
    points = needle.positions[0] + 0.3 * along[:, None] * quaternion_to_matrix(rotation)[:, 0]
    clip = np.column_stack([points, np.ones(2001)]) @ (perspective.projection @ perspective.view).T
    pixel = (clip[:, :2] / clip[:, 3:] + 1) / 2 * (65, 49)
    weight = np.exp(-0.5 * along**2)

    def light(x, y):
        distance = (x[..., None] - pixel[:, 0]) ** 2 + (y[..., None] - pixel[:, 1]) ** 2
        return np.exp(-0.5 * distance / LOW_PASS) @ weight

    x, y = np.meshgrid(np.arange(65) + 0.5, np.arange(49) + 0.5)
    expected = light(x, y) / light(*project(needle, perspective).centre[0])
    assert expected.max() > 0.9 and np.isfinite(image).all()
    np.testing.assert_allclose(image, np.where(expected >= ALPHA_CUT, expected, 0), atol=0.02)


def test_splats_that_are_not_finite_are_left_out(random_cloud, perspective):
    cloud = random_cloud(100)
    expected = rasterise([(cloud.take(np.arange(3, 100)), None)], perspective).rgba
    cloud.positions[0, 1], cloud.scales[1, 2], cloud.sh[2, 5, 0] = np.nan, np.inf, np.nan
    np.testing.assert_array_equal(rasterise([(cloud, None)], perspective).rgba, expected)


@pytest.mark.parametrize("count", [None, 0, 1])
def test_nothing_to_see(count, splat, perspective):
    cloud = splat((0, -9, 0))  # behind the camera
    items = [] if count is None else [(cloud.take(np.arange(count)), None)]
    image = rasterise(items, perspective)
    assert image.rgba.shape == (49, 65, 4) and not image.rgba.any() and np.isnan(image.depth).all()


def test_psnr():
    picture = np.linspace(0, 1, 48).reshape(4, 4, 3)
    assert psnr(picture, picture) == np.inf
    assert psnr(picture, picture + 0.1) == pytest.approx(20)
    assert psnr(255 * picture, 255 * picture - 25.5, peak=255) == pytest.approx(20)
