"""Screen ellipses and colours against hand computation, differences and quadrature."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from gaussianimate.core.deform.sh import SH_C1
from gaussianimate.core.render.camera import Camera
from gaussianimate.core.render.projection import (
    ALPHA_CUT,
    EDGE,
    LOW_PASS,
    ellipses,
    project,
    screen_jacobians,
    srgb_to_linear,
)
from gaussianimate.core.rotations import quaternion_to_matrix


def pixels(points, camera):
    """Pixels (N, 2) of world points, by homogeneous division."""
    clip = np.column_stack([points, np.ones(len(points))]) @ (camera.projection @ camera.view).T
    return (clip[:, :2] / clip[:, 3:] + 1) / 2 * (camera.width, camera.height)


def covariance(splats):
    axes = np.stack([splats.e1, splats.e2], axis=-1) * splats.sigma[:, None]
    return axes @ axes.swapaxes(1, 2)


def shifted(camera, x, y=0.0):
    projection = camera.projection.copy()
    projection[:2, 2] = x, y
    return replace(camera, projection=projection)


def test_camera_looks_along_its_axis(perspective, orthographic, motion):
    for camera in (perspective, orthographic):
        np.testing.assert_allclose(camera.position, (0, -5, 0), atol=1e-12)
        np.testing.assert_allclose(camera.forward, (0, 1, 0), atol=1e-12)
        np.testing.assert_allclose(camera.depth_range, (0.1, 100), rtol=1e-9)
        moved = replace(camera, view=camera.view @ np.linalg.inv(motion))
        np.testing.assert_allclose(moved.position, motion @ (0, -5, 0, 1) @ np.eye(4)[:, :3], atol=1e-12)
    assert perspective.is_perspective and not orthographic.is_perspective


def test_far_plane_lost_in_single_precision_is_infinite():
    camera = Camera.perspective((0, -5, 0), (0, 0, 0), (0, 0, 1), 0.8, 64, 48, 1e-4, 1e5)
    near, far = replace(camera, projection=camera.projection.astype(np.float32)).depth_range
    assert near == pytest.approx(1e-4, rel=1e-6) and far == np.inf


def test_ball_straight_ahead(splat, perspective):
    seen = project(splat(opacity=0.8, colour=(0.2, 0.5, 0.9)), perspective)
    focal = 49 / 2 / np.tan(0.4)
    radius = np.sqrt((focal * 0.1 / 5) ** 2 + 0.3)
    np.testing.assert_allclose(seen.centre, [(32.5, 24.5)])
    np.testing.assert_allclose(seen.sigma, [(radius, radius)])
    np.testing.assert_allclose(seen.half_extent, np.sqrt(2 * np.log(255 * 0.8)) * seen.sigma)
    np.testing.assert_allclose(seen.depth, [5])
    np.testing.assert_allclose(seen.colour, [(0.2, 0.5, 0.9)])
    np.testing.assert_allclose(seen.opacity, [0.8])


def test_orthographic_size_does_not_depend_on_depth(splat, orthographic):
    for y in (-4, 0, 30):
        seen = project(splat((1, y, 0.5)), orthographic)
        np.testing.assert_allclose(seen.sigma, np.sqrt((0.1 * 49 / 4) ** 2 + 0.3) * np.ones((1, 2)))
        np.testing.assert_allclose(seen.centre, [(32.5 + 49 / 4, 24.5 + 0.5 * 49 / 4)])
        np.testing.assert_allclose(seen.depth, [y + 5])


@pytest.mark.parametrize("shift", [(0.0, 0.0), (0.4, -0.3)])
@pytest.mark.parametrize("kind", ["perspective", "orthographic"])
def test_jacobian_is_the_derivative_of_the_pixel(kind, shift, request, rng):
    camera = request.getfixturevalue(kind)
    if camera.is_perspective:
        camera = shifted(camera, *shift)
    points = rng.uniform(-0.7, 0.7, (20, 3))
    view = points @ camera.view[:3, :3].T + camera.view[:3, 3]
    step = 1e-5
    differences = [
        (pixels(points + step * axis, camera) - pixels(points - step * axis, camera)) / (2 * step)
        for axis in np.eye(3) @ camera.view[:3, :3]
    ]
    np.testing.assert_allclose(screen_jacobians(view, camera), np.stack(differences, axis=-1), atol=1e-6)


def test_shifted_lens_moves_the_picture(splat, perspective):
    seen = project(splat(), shifted(perspective, 0.5, -0.25))
    np.testing.assert_allclose(seen.centre, [(32.5 - 0.5 * 65 / 2, 24.5 + 0.25 * 49 / 2)])
    np.testing.assert_allclose(seen.sigma, project(splat(), perspective).sigma)


@pytest.mark.parametrize("shift", [0.0, 0.5])
@pytest.mark.parametrize("side", [-1, 1])
def test_jacobian_is_limited_beyond_the_edge(perspective, shift, side):
    camera = shifted(perspective, shift)
    p00 = camera.projection[0, 0]
    edge = (shift + side * EDGE) / p00
    jacobians = screen_jacobians(np.array([[2 * edge, 0, -1], [0.99 * edge, 0, -1.0]]), camera)
    sx = p00 * 65 / 2
    np.testing.assert_allclose(jacobians[:, 0, 2], (sx * edge, 0.99 * sx * edge))
    np.testing.assert_allclose(jacobians[:, 0, 0], sx)


def test_left_out_are_splats_that_cannot_be_seen(splat, perspective):
    for position in [(0, -5.2, 0), (0, -4.95, 0), (0, 95.5, 0), (np.nan, 0, 0), (0, np.inf, 0)]:
        assert len(project(splat(position), perspective)) == 0, position
    assert len(project(splat(opacity=0.99 * ALPHA_CUT), perspective)) == 0
    assert len(project(splat(opacity=np.nan), perspective)) == 0
    assert len(project(splat(scale=(np.inf, 1, 1)), perspective)) == 0
    assert len(project(splat(colour=np.nan), perspective)) == 0
    assert len(project(splat((0, -4.85, 0)), perspective)) == 1
    assert len(project(splat((50, 0, 0)), perspective)) == 1  # beside the picture, yet it may reach in
    assert len(project(splat(opacity=1.01 * ALPHA_CUT), perspective)) == 1


def test_index_names_the_row_of_the_cloud(random_cloud, perspective):
    cloud = random_cloud(50)
    cloud.positions[::3] = (0, -9, 0)
    seen = project(cloud, perspective)
    expected = np.flatnonzero((np.arange(50) % 3 != 0) & (cloud.opacities >= ALPHA_CUT))
    np.testing.assert_array_equal(seen.index, expected)
    np.testing.assert_allclose(seen.centre, pixels(cloud.positions[seen.index], perspective))


def test_half_extent_never_exceeds_the_pictures_diagonal(splat, perspective):
    seen = project(splat((0, -4.85, 0), scale=3), perspective)
    np.testing.assert_allclose(seen.half_extent, np.hypot(65, 49))
    assert (seen.sigma > 500).all()


def test_ellipse_is_the_covariance_of_the_gaussian_seen(splat, perspective, rng):
    """Moments of the pixel over the Gaussian by Gauss-Hermite quadrature, for splats small as seen."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(7)
    unit = np.array(list(product(nodes, repeat=3)))
    weight = np.prod(list(product(weights, repeat=3)), axis=1) / np.sqrt(2 * np.pi) ** 3
    for scale in [(0.02, 0.01, 0.005), (0.03, 0.03, 3e-5), (0.05, 5e-5, 5e-5)]:
        position, rotation = rng.uniform(-1, 1, 3), rng.normal(size=4)
        seen = project(splat(position, scale, rotation / np.linalg.norm(rotation)), perspective)
        points = position + (unit * scale) @ quaternion_to_matrix(rotation).T
        pixel = pixels(points, perspective)
        offset = pixel - weight @ pixel
        expected = np.einsum("n,ni,nj->ij", weight, offset, offset) + LOW_PASS * np.eye(2)
        np.testing.assert_allclose(covariance(seen)[0], expected, rtol=2e-3, atol=2e-3)


def test_needles_keep_their_digits():
    """The short axis of needles 1e8 px long in all directions; a c - b^2 has lost half its digits there."""
    angle = np.linspace(0, np.pi, 91)
    shapes = np.zeros((91, 2, 3))
    shapes[:, 0, 0], shapes[:, 1, 0] = 1e8 * np.cos(angle), 1e8 * np.sin(angle)
    shapes[:, 0, 1], shapes[:, 1, 1] = -2 * np.sin(angle), 2 * np.cos(angle)
    e1, sigma = ellipses(shapes)
    np.testing.assert_allclose(sigma[:, 1], np.sqrt(4 + LOW_PASS), rtol=1e-6)
    np.testing.assert_allclose(sigma[:, 0], 1e8, rtol=1e-12)
    np.testing.assert_allclose(np.abs(e1[:, 0] * np.cos(angle) + e1[:, 1] * np.sin(angle)), 1, rtol=1e-12)
    a, b = (shapes[:, 0] ** 2).sum(1) + LOW_PASS, (shapes[:, 0] * shapes[:, 1]).sum(1)
    c = (shapes[:, 1] ** 2).sum(1) + LOW_PASS
    naive = np.sqrt(np.maximum(a * c - b * b, 0) / sigma[:, 0] ** 2)
    assert np.abs(naive / np.sqrt(4 + LOW_PASS) - 1).max() > 0.01


def test_ellipse_factors_its_covariance(rng):
    shapes = rng.normal(size=(500, 2, 3)) * 10 ** rng.uniform(-3, 3, (500, 1, 1))
    special = np.zeros((2, 3)), [[1, 0, 0], [0, 1, 0]], [[0, 0, 1], [0, 2, 0]]  # none, round, upright
    shapes[:3] = np.stack(special)
    e1, sigma = ellipses(shapes)
    axes = np.stack([e1, np.stack([-e1[:, 1], e1[:, 0]], axis=1)], axis=-1) * sigma[:, None]
    expected = shapes @ shapes.swapaxes(1, 2) + LOW_PASS * np.eye(2)
    size = np.abs(expected).max(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(axes @ axes.swapaxes(1, 2) / size, expected / size, atol=1e-12)
    np.testing.assert_allclose(e1[0], (1, 0))
    np.testing.assert_allclose(np.abs(e1[2]), (0, 1))
    assert (sigma[:, 0] >= sigma[:, 1]).all()


def test_colour_of_the_first_band_by_hand(splat, perspective, orthographic):
    cloud = splat((1, 0, 0))
    sh = np.zeros((1, 4, 3))
    sh[0, 1, 0], sh[0, 2, 1], sh[0, 3, 2] = -0.5, 0.5, -0.5  # red along +y, green +z, blue +x
    cloud = replace(cloud, sh=sh)
    x, y = np.array([1, 5]) / np.sqrt(26)
    expected = 0.5 + 0.5 * SH_C1 * np.array([y, 0, x])
    np.testing.assert_allclose(project(cloud, perspective).colour, [expected])
    np.testing.assert_allclose(project(cloud, orthographic).colour, [0.5 + 0.5 * SH_C1 * np.array([1, 0, 0])])
    quarter = np.eye(4)  # x -> y -> -x: what showed green and blue to +y shows it along -x
    quarter[:2, :2] = [[0, -1], [1, 0]]
    turned = project(cloud, orthographic, quarter)
    np.testing.assert_allclose(turned.colour, [0.5 + 0.5 * SH_C1 * np.array([0, 0, 1])], atol=1e-12)


def test_colours_are_clamped_below_only(splat, perspective):
    np.testing.assert_allclose(project(splat(colour=(-1, 0.5, 3)), perspective).colour, [(0, 0.5, 3)])


def test_srgb_curve():
    values = srgb_to_linear(np.array([0, 0.04, 0.04045, 0.5, 1.0]))
    np.testing.assert_allclose(values, [0, 0.04 / 12.92, 0.0031308, 0.21404114, 1], rtol=1e-4)
    assert srgb_to_linear(np.array(2.0)) == pytest.approx((2.055 / 1.055) ** 2.4)
