"""Signed distances against densely sampled edges, and each other."""

import numpy as np
import pytest
from scipy.spatial import KDTree

from gaussianimate.core.errors import SelectionError
from gaussianimate.core.selection.shapes import Ellipse, Lasso, Rectangle, Stroke, shape_from_dict

from .conftest import SHAPES, squiggle


def outlines(shape, count=20_000):
    """Return closed rings of points (N, 2) along the edge."""
    if isinstance(shape, Lasso):
        corners = [np.array(ring) for ring in shape.outlines]
    elif isinstance(shape, Rectangle):
        corners = [np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * shape.half]
    else:
        t = np.linspace(0, 2 * np.pi, count, endpoint=False)
        corners = [np.stack([np.cos(t), np.sin(t)], axis=1) * shape.radii]
    if not isinstance(shape, Lasso):
        c, s = np.cos(shape.angle), np.sin(shape.angle)
        corners = [ring @ np.array([[c, s], [-s, c]]) + shape.centre for ring in corners]
    steps = np.linspace(0, 1, max(count // sum(map(len, corners)), 1), endpoint=False)[:, None, None]
    return [
        np.swapaxes(ring + steps * (np.roll(ring, -1, axis=0) - ring), 0, 1).reshape(-1, 2)
        for ring in corners
    ]


def to_edge(p, ring):
    """Return the distance of points to the two segments beside the nearest point of a ring."""
    nearest, best = KDTree(ring).query(p)[1], np.inf
    for a, b in ((nearest - 1, nearest), (nearest, (nearest + 1) % len(ring))):
        start, along = ring[a], ring[b] - ring[a]
        t = np.clip(((p - start) * along).sum(axis=1) / (along**2).sum(axis=1), 0, 1)
        best = np.minimum(best, np.linalg.norm(p - start - t[:, None] * along, axis=1))
    return best


def contains(shape, p):
    """Decide by other means which points (N, 2) are inside."""
    if isinstance(shape, Lasso):  # the winding of angles, one outline at a time
        odd = np.zeros(len(p), dtype=int)
        for ring in shape.outlines:
            a = np.array(ring)
            for corner, following in zip(a, np.roll(a, -1, axis=0), strict=True):
                if corner[0] == following[0]:
                    continue
                low, high = sorted((corner, following), key=lambda c: c[0])
                between = (low[0] <= p[:, 0]) & (p[:, 0] < high[0])
                line = low[1] + (p[:, 0] - low[0]) / (high[0] - low[0]) * (high[1] - low[1])
                odd += between & (line > p[:, 1])  # a ray upwards
        return odd % 2 == 1
    c, s = np.cos(shape.angle), np.sin(shape.angle)
    local = (p - shape.centre) @ np.array([[c, -s], [s, c]])
    if isinstance(shape, Rectangle):
        return (np.abs(local) < shape.half).all(axis=1)
    return ((local / shape.radii) ** 2).sum(axis=1) < 1


@pytest.mark.parametrize("name", [n for n, s in SHAPES.items() if not isinstance(s, Stroke)])
def test_distance_is_that_to_the_sampled_edge(rng, name):
    shape, p = SHAPES[name], rng.uniform(-200, 200, (4000, 2))
    away = np.min([to_edge(p, ring) for ring in outlines(shape)], axis=0)
    truth = np.where(contains(shape, p), -away, away)
    assert np.abs(shape.distance(*p.T).value - truth).max() < 2e-3


@pytest.mark.parametrize("name", [n for n, s in SHAPES.items() if isinstance(s, Stroke)])
def test_stroke_is_the_union_of_its_discs(rng, name):
    shape, p = SHAPES[name], rng.uniform(-200, 200, (1000, 2))
    c, r = np.array(shape.points), np.array(shape.radii)
    best = (np.linalg.norm(p[:, None] - c, axis=-1) - r).min(axis=1)
    for k in range(len(c) - 1):
        for t in np.linspace(0, 1, 2001):
            disc = np.linalg.norm(p - (c[k] + t * (c[k + 1] - c[k])), axis=1) - (r[k] + t * (r[k + 1] - r[k]))
            np.minimum(best, disc, out=best)
    assert np.abs(shape.distance(*p.T).value - best).max() < 5e-3


def test_distances_are_lipschitz(rng, shape):
    p = rng.uniform(-200, 200, (20000, 2))
    q = p + rng.normal(size=p.shape) * 10 ** rng.uniform(-3, 1.5, (len(p), 1))
    change = np.abs(shape.distance(*p.T).value - shape.distance(*q.T).value)
    # rounding of distances of up to 300 pixels does not get smaller with the step
    assert (change <= (1 + 1e-9) * np.linalg.norm(p - q, axis=1) + 1e-12).all()


def test_normals_are_unit_gradients(rng, shape):
    p, h = rng.uniform(-200, 200, (20000, 2)), 1e-5
    found = shape.distance(*p.T)
    normal = np.stack([found.x, found.y], axis=1)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1, atol=1e-12)
    slopes = [
        (shape.distance(*(p + step).T).value - shape.distance(*(p - step).T).value) / (2 * h)
        for step in h * np.eye(2)
    ]
    wrong = np.abs(normal - np.stack(slopes, axis=1)).max(axis=1) > 1e-6
    assert wrong.mean() < 0.01  # beside the medial axis the two steps see different edges


def test_without_normals_distances_are_the_same(rng, shape):
    p = rng.uniform(-200, 200, (500, 2))
    bare = shape.distance(*p.T, normals=False)
    assert bare.x is None and bare.y is None
    np.testing.assert_array_equal(bare.value, shape.distance(*p.T).value)


def test_single_precision(rng, shape):
    p = rng.uniform(-200, 200, (20000, 2))
    single = shape.distance(*p.T.astype(np.float32))
    assert single.value.dtype == single.x.dtype == np.float32
    assert np.abs(single.value - shape.distance(*p.T).value).max() < 2e-3
    assert np.isfinite(single.x).all() and np.isfinite(single.y).all()


def test_a_rectangle_is_a_lasso_of_four_corners(rng):
    rectangle = SHAPES["rectangle"]
    c, s = np.cos(0.4), np.sin(0.4)
    corners = np.array([[-60, -25], [60, -25], [60, 25], [-60, 25.0]]) @ np.array([[c, s], [-s, c]]) + (5, 7)
    p = rng.uniform(-200, 200, (5000, 2))
    a, b = rectangle.distance(*p.T), Lasso((corners,)).distance(*p.T)
    assert np.abs(a.value - b.value).max() < 1e-9
    same = np.hypot(a.x - b.x, a.y - b.y) < 1e-6
    assert same.mean() > 0.999


def test_points_at_odd_places():
    """Centres, axes, corners, edges and the ends of the evolute give finite unit normals."""
    ellipse = SHAPES["thin ellipse"]
    u = np.array([0, 150 - 9 / 150, 149, 150, 151, -150, 0, 0, 1e-9])
    v = np.array([0, 0, 0, 0, 0, 0, 3, -3, 1e-12])
    c, s = np.cos(0.9), np.sin(0.9)
    found = ellipse.distance(c * u - s * v, s * u + c * v)
    np.testing.assert_allclose(np.hypot(found.x, found.y), 1, atol=1e-12)
    # The foot of a point of the major axis that lies between the ends of the evolute.
    foot = np.array([149 * 150**2 / (150**2 - 9), 3 * np.sqrt(1 - (149 * 150 / (150**2 - 9)) ** 2)])
    expected = [-3, -9 / 150, -np.hypot(foot[0] - 149, foot[1]), 0, 1, 0, 0, 0, -3]
    np.testing.assert_allclose(found.value, expected, atol=1e-9)
    square = Lasso((((0, 0), (10, 0), (10, 10), (0, 10)),))
    found = square.distance(np.array([0.0, 10, 5, 10]), np.array([0.0, 10, 0, 5]))
    np.testing.assert_array_equal(found.value == 0, True)
    np.testing.assert_allclose([found.x[2:], found.y[2:]], [[0, 1], [-1, 0]], atol=1e-12)
    assert np.allclose(np.hypot(found.x, found.y), 1)
    for shape in (SHAPES["circle"], SHAPES["upright rectangle"], squiggle()):
        centre = np.array(shape.points[1] if isinstance(shape, Stroke) else shape.centre)[:, None]
        found = shape.distance(*centre)
        assert np.allclose(np.hypot(found.x, found.y), 1) and found.value < 0


def test_ellipses_of_any_shape_against_bisection(rng):
    """Down to points a rounding error off the major axis, where Newton's method is slow."""
    for a, b in ((150.0, 3.0), (80.0, 79.99), (1e4, 1.0), (5.0, 5.0)):
        u = rng.uniform(0, 1.2 * a, 3000)
        v = b * 10 ** rng.uniform(-14, 0.5, 3000)
        u[:100] = (a * a - b * b) / a  # the ends of the evolute
        found = Ellipse((0, 0), (a, b)).distance(u, v).value
        low, high = np.full(3000, -40.0), np.full(3000, 40.0)  # of the logarithm of the root
        for _ in range(200):
            t = np.exp((low + high) / 2)
            outside = (a * u / (t + a * a - b * b)) ** 2 + (b * v / t) ** 2 > 1
            low, high = np.where(outside, (low + high) / 2, low), np.where(outside, high, (low + high) / 2)
        foot = np.stack([a * a * u / (t + a * a - b * b), b * b * v / t], axis=1)
        away = np.hypot(foot[:, 0] - u, foot[:, 1] - v)
        assert np.abs(np.abs(found) - away).max() < 1e-7 * a


def test_what_has_no_area_selects_nothing():
    line = Lasso((((0, 0), (10, 0), (20, 0)),))
    empty = (line, Lasso(((),)), Lasso((((0, 0), (5, 5)),)), Stroke((), ()), Stroke(((1, 2),), (0,)))
    for shape in (*empty, Rectangle((0, 0), (0, 5)), Ellipse((0, 0), (4, 0))):
        assert shape.bounds is None
    assert np.isposinf(line.distance(np.array([5.0]), np.array([0.0])).value).all()


def test_zero_length_edges_are_skipped(rng):
    ring = [(0, 0), (0, 0), (10, 0), (10, 10), (10, 10), (0, 10)]
    p = rng.uniform(-5, 15, (500, 2))
    a, b = Lasso((ring,)), Lasso((((0, 0), (10, 0), (10, 10), (0, 10)),))
    np.testing.assert_array_equal(a.distance(*p.T).value, b.distance(*p.T).value)


def test_bounds_hold_the_shape(rng, shape):
    low_x, low_y, high_x, high_y = shape.bounds
    p = rng.uniform(-200, 200, (50000, 2))
    inside = p[shape.distance(*p.T).value <= 0]
    assert (inside >= (low_x, low_y)).all() and (inside <= (high_x, high_y)).all()
    slack = max(high_x - low_x, high_y - low_y) * 0.15
    assert (inside.min(axis=0) < np.array([low_x, low_y]) + slack).all()
    assert (inside.max(axis=0) > np.array([high_x, high_y]) - slack).all()


def test_mirrored_shapes(rng, shape):
    p = rng.uniform(-200, 200, (2000, 2))
    flipped = np.stack([2 * 30 - p[:, 0], p[:, 1]], axis=1)
    there = shape.mirrored(30).distance(*flipped.T).value
    np.testing.assert_allclose(there, shape.distance(*p.T).value, atol=1e-9)


def test_written_shapes_are_read_as_the_same(shape):
    assert shape_from_dict(shape.to_dict()) == shape


def test_simplified_strokes_stay_within_the_tolerance(rng):
    t = np.linspace(0, 6, 1500)
    points = np.stack([60 * t, 80 * np.sin(t)], axis=1) + rng.normal(size=(1500, 2)) * 0.05
    stroke = Stroke(points, 20 + 6 * np.cos(2 * t))
    thin = stroke.simplified(0.5)
    assert len(thin.points) < 128
    p = rng.uniform(-60, 420, (3000, 2))
    assert np.abs(thin.distance(*p.T).value - stroke.distance(*p.T).value).max() < 1.0
    assert thin.points[0] == stroke.points[0] and thin.points[-1] == stroke.points[-1]


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "heart"},
        {},
        {"kind": "rectangle", "centre": [0, 0]},
        {"kind": "ellipse", "centre": [0, 0], "radii": [-1, 2]},
        {"kind": "ellipse", "centre": [0, float("nan")], "radii": [1, 2]},
        {"kind": "stroke", "points": [[0, 0], [1, 1]], "radii": [1]},
        {"kind": "lasso", "outlines": [[[0, 0, 0], [1, 1, 1]]]},
        {"kind": "lasso", "outlines": [["abc"]]},
    ],
)
def test_wrong_shapes_are_said_so(data):
    with pytest.raises(SelectionError):
        shape_from_dict(data)
