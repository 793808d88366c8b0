"""The depths of a view: right, the same whatever was cut out before, robust against what is no surface."""

import numpy as np
import pytest

from gaussianimate.core.render.camera import Camera
from gaussianimate.core.selection.depth_picture import LONGEST, MOST_CELLS, DepthPicture, front_surface
from gaussianimate.core.selection.preview import Preview
from gaussianimate.core.selection.viewpoint import Viewpoint

BOX = (250.0, 180.0, 520.0, 430.0)


@pytest.fixture
def ball(rng):
    p = rng.normal(size=(40000, 3))
    return p / np.linalg.norm(p, axis=1, keepdims=True)


def middles(surface):
    left, bottom, right, top = surface.box
    rows, columns = surface.shape
    x = left + (np.arange(columns) + 0.5) * (right - left) / columns
    y = bottom + (np.arange(rows) + 0.5) * (top - bottom) / rows
    return (axis.ravel() for axis in np.meshgrid(x, y))


def ball_depths(view, x, y):
    """Depths of the unit ball at pixels, by rays through them."""
    inverse = np.linalg.inv(view.matrix)
    u, v = 2 * x / view.window[2] - 1, 2 * y / view.window[3] - 1
    ends = [np.stack([u, v, np.full_like(u, z), np.ones_like(u)]) for z in (-1, 1)]
    near, far = ((inverse @ end)[:3] / (inverse @ end)[3] for end in ends)
    along = (far - near) / np.linalg.norm(far - near, axis=0)
    b = (near * along).sum(axis=0)
    t = -b - np.sqrt(b * b - (near * near).sum(axis=0) + 1)
    return view.depth((near + t * along).T)


def test_depths_are_those_of_the_front(viewpoint, ball):
    surface = front_surface(viewpoint, ball, (340, 240, 460, 360))
    true = ball_depths(viewpoint, *middles(surface)).reshape(surface.shape)
    assert np.abs(surface.depths - true).max() < surface.thickness
    assert 15 < surface.shape[0] < 60


def test_what_was_cut_out_before_changes_nothing(viewpoint, ball, rng):
    """So that what is seen while a gesture is drawn is what it does when it is done."""
    opacities, scales = rng.uniform(0.1, 1, len(ball)), rng.uniform(0.002, 0.03, (len(ball), 3))
    picture = DepthPicture(Preview(viewpoint, ball, threads=3), opacities, scales)
    for grown in (0, 900, 17, 2500, 60):
        box = (BOX[0] - grown, BOX[1] - grown, BOX[2] + grown, BOX[3] + grown)
        alone = DepthPicture(Preview(viewpoint, ball, threads=1), opacities, scales).surface(box)
        assert picture.surface(box) == alone


def test_the_order_of_splats_changes_nothing(perspective, ball, rng):
    opacities, scales = rng.uniform(0.1, 1, len(ball)), rng.uniform(0.002, 0.03, (len(ball), 3))
    order = np.append(0, 1 + rng.permutation(len(ball) - 1))  # the first one is what others are relative to
    one = front_surface(perspective, ball, BOX, opacities, scales)
    other = front_surface(perspective, ball[order], BOX, opacities[order], scales[order])
    assert one == other


def test_half_of_the_light(orthographic):
    """Three sheets, one behind the other: the darker they are, the fewer are needed."""
    axis, up = -np.array(orthographic.view[2][:3]), np.array(orthographic.view[1][:3])
    right = np.array(orthographic.view[0][:3])
    u, v = np.meshgrid(np.linspace(-0.5, 0.5, 200), np.linspace(-0.5, 0.5, 200))
    flat = u.reshape(-1, 1) * right + v.reshape(-1, 1) * up
    for darkness, sheet in ((0.6, 0), (0.35, 1), (0.19, 2)):
        p = np.concatenate([flat + k * 0.1 * axis for k in range(3)])
        # each splat covers a cell and hides a share of it, so that those of a sheet together hide it as told
        picture = DepthPicture(Preview(orthographic, p))
        pixels = 0.5 * orthographic.projection[0][0] * orthographic.window[2]
        count = (picture.cell / (pixels / 199)) ** 2
        side = np.sqrt(picture.cell**2 / (2 * np.pi)) / pixels
        hidden = 1 - (1 - darkness) ** (1 / count)
        surface = front_surface(
            orthographic, p, (360, 260, 440, 340), np.full(len(p), hidden), np.full((len(p), 3), side)
        )
        depth = orthographic.depth(flat[:1] + sheet * 0.1 * axis)[0]
        inner = surface.depths[3:-3, 3:-3]
        assert np.abs(np.median(inner) - depth) < 1e-5, darkness


def test_what_is_see_through_everywhere_has_a_surface(perspective, ball):
    thin = np.full(len(ball), 0.001), np.full((len(ball), 3), 0.001)
    np.testing.assert_array_equal(
        front_surface(perspective, ball, BOX, *thin).depths >= front_surface(perspective, ball, BOX).depths,
        True,
    )


def test_large_gestures_take_larger_cells(viewpoint, ball):
    picture = DepthPicture(Preview(viewpoint, np.repeat(ball, 4, axis=0) + 1e-4))
    fine, coarse = picture.surface((390, 290, 410, 310)), picture.surface((-2000, -2000, 3000, 3000))
    wide = picture.surface((-1e9, 300, 1e9, 301))
    for surface in (fine, coarse, wide):
        rows, columns = surface.shape
        assert rows * columns <= MOST_CELLS and max(rows, columns) <= LONGEST
    size = (coarse.box[2] - coarse.box[0]) / coarse.shape[1]
    times = size / picture.cell
    assert times >= 3 and times == pytest.approx(round(times))
    x, y = middles(coarse)
    middle = np.hypot(x - 400, y - 300) < 60
    true = ball_depths(viewpoint, x[middle], y[middle])
    assert np.abs(coarse.depths.ravel()[middle] - true).max() < coarse.thickness
    assert coarse.thickness == pytest.approx(times * fine.thickness, rel=0.4)


@pytest.mark.parametrize("distance", [4.0, 1.4, 1.15, 1.02])
def test_cells_of_a_close_look_hold_as_many_splats(ball, distance):
    """Splats that only the window's surroundings are thin of do not make its own cells larger."""
    camera = Camera.perspective((0, -distance, 0), (0, 0, 0), (0, 0, 1), 0.9, 800, 600, 0.01, 100)
    seen = Preview(Viewpoint(camera.view, camera.projection, (0, 0, 800, 600)), ball)
    x, y = (p[seen.at.seen & (seen.at.x >= 0) & (seen.at.x < 800)] for p in (seen.at.x, seen.at.y))
    x, y = x[(y >= 0) & (y < 600)], y[(y >= 0) & (y < 600)]
    cell = DepthPicture(seen).cell
    used = len(np.unique(np.stack([x // cell, y // cell]), axis=1).T)
    assert 8 < len(x) / used < 16


def test_gestures_far_outside_the_window(viewpoint, ball):
    """A script's window can be anywhere: what is below the gesture is found as by a window above it."""
    at = viewpoint.project(ball)
    for left, bottom in ((-8000, 3000), (100000, -60), (5, 1e6)):
        away = viewpoint.panned(left, bottom)
        seen = away.project(ball)
        np.testing.assert_allclose(np.stack([seen.x, seen.y]), np.stack([at.x, at.y]), rtol=1e-6, atol=1e-6)
        picture = DepthPicture(Preview(away, ball))
        assert picture.surface((left + 10, bottom + 10, left + 90, bottom + 90)) is None
        for box in ((340, 240, 460, 360), (370, 290, 420, 310), (340, 240, 460, 360)):
            surface = picture.surface(box)
            true = ball_depths(viewpoint, *middles(surface)).reshape(surface.shape)
            assert np.abs(surface.depths - true).max() < surface.thickness
    assert viewpoint.panned(0, 0) == viewpoint


def test_far_from_the_origin(perspective, ball):
    far = np.array([30.0, -20.0, 50.0])
    moved = np.array(perspective.view) @ np.block([[np.eye(3), -far[:, None]], [np.zeros((1, 3)), 1]])
    view = Viewpoint(moved, perspective.projection, perspective.window)
    here, there = front_surface(perspective, ball, BOX), front_surface(view, ball + far, BOX)
    assert here.shape == there.shape
    assert np.median(np.abs(here.depths - there.depths)) < 1e-5


def test_splats_that_are_nowhere(perspective, ball):
    broken = ball.copy()
    broken[::7] = np.nan
    broken[1::7] = np.inf
    left = np.delete(ball, np.union1d(np.arange(0, len(ball), 7), np.arange(1, len(ball), 7)), axis=0)
    one, other = front_surface(perspective, broken, BOX), front_surface(perspective, left, BOX)
    assert np.abs(one.depths - other.depths).max() < 1e-4
    assert front_surface(perspective, broken[:1], BOX) is front_surface(perspective, broken[1:2], BOX) is None
    behind = np.array([1.0, -6, 0.5])
    assert front_surface(perspective, np.tile(behind, (50, 1)), BOX) is None
    assert front_surface(perspective, np.zeros((0, 3)), BOX) is None
    assert front_surface(perspective, ball, (300, 300, 300, 400)) is None
