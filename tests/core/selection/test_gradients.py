"""Exact gradients: projection, feather, layers and stacks against differences and against torch."""

import numpy as np
import pytest

from gaussianimate.core.render.camera import Camera
from gaussianimate.core.selection.compose import compose
from gaussianimate.core.selection.depth_picture import front_surface
from gaussianimate.core.selection.evaluate import evaluate_stack, evaluate_weights
from gaussianimate.core.selection.feather import Feather
from gaussianimate.core.selection.layer import LayerStack, SelectionLayer
from gaussianimate.core.selection.shapes import Ellipse, Stroke
from gaussianimate.core.selection.viewpoint import Viewpoint

from .conftest import SHAPES

FEATHERS = [Feather(60), Feather(60, "linear"), Feather(40, align="inside"), Feather(40, align="outside")]
OPERATIONS = ["replace", "add", "subtract", "multiply", "mix"]


def differences(function, p, h=1e-6):
    """Return the derivatives of function(p) along x, y and z, as its last axis."""
    return np.stack([(function(p + e) - function(p - e)) / (2 * h) for e in h * np.eye(3)], axis=-1)


def centred(shape):
    """Bring a shape about the origin to the middle of the window, as large as half of it."""
    from gaussianimate.core.selection.shapes import shape_from_dict

    data = shape.to_dict()
    place = lambda p: (np.array(p) * 1.5 + (400, 300)).tolist()  # noqa: E731
    for key in ("centre", "points"):
        if key in data:
            data[key] = place(data[key])
    if "outlines" in data:
        data["outlines"] = [place(ring) for ring in data["outlines"]]
    for key in ("half", "radii"):
        if key in data:
            data[key] = (1.5 * np.array(data[key])).tolist()
    return shape_from_dict(data)


def test_projection_jacobian(rng, viewpoint):
    p = rng.normal(size=(2000, 3)) * 0.8
    at = viewpoint.project(p)
    ones, none = np.ones(len(p)), np.zeros(len(p))
    exact = np.stack([viewpoint.pull_back(at, ones, none), viewpoint.pull_back(at, none, ones)])
    found = differences(lambda q: np.stack([viewpoint.project(q).x, viewpoint.project(q).y]), p)
    assert np.abs(np.moveaxis(exact, 1, 2) - found).max() < 1e-7 * np.abs(exact).max()
    np.testing.assert_allclose(
        differences(viewpoint.depth, p), np.tile(viewpoint.depth_gradient, (len(p), 1)), atol=1e-8
    )


def test_projection_is_that_of_the_renderer(rng):
    """Where the selection says a splat is, the drawer draws it."""
    from gaussianimate.core.cloud import GaussianCloud
    from gaussianimate.core.render.projection import project

    camera = Camera.perspective((1, -4, 0.5), (0, 0, 0), (0, 0, 1), 0.9, 800, 600, 0.1, 100)
    p = (rng.normal(size=(50, 3)) * 0.3).astype(np.float32)
    cloud = GaussianCloud(
        p, np.tile(np.float32([1, 0, 0, 0]), (50, 1)), np.full((50, 3), 0.01, np.float32),
        np.ones(50, np.float32), np.zeros((50, 1, 3), np.float32),
    )  # fmt: skip
    drawn = project(cloud, camera)
    at = Viewpoint(camera.view, camera.projection, (0, 0, 800, 600)).project(p.astype(float))
    assert len(drawn) > 40
    np.testing.assert_allclose(np.stack([at.x, at.y], axis=1)[drawn.index], drawn.centre, atol=1e-3)


@pytest.mark.parametrize("feather", FEATHERS, ids=lambda f: f"{f.curve} {f.align}")
@pytest.mark.parametrize("name", SHAPES)
def test_one_layer_against_differences(rng, viewpoint, name, feather):
    layer = SelectionLayer("arm", viewpoint, centred(SHAPES[name]), feather, 0.8)
    stack, p = LayerStack(("arm",), (layer,)), rng.normal(size=(3000, 3)) * 0.6
    weights, gradients = evaluate_stack(stack, p)
    assert 0.02 < (np.abs(gradients).max(axis=(1, 2)) > 0).mean(), "the feather lies in the picture"
    wrong = np.abs(differences(lambda q: evaluate_weights(stack, q), p) - gradients).max(axis=(1, 2)) > 1e-6
    assert wrong.mean() < 0.01
    np.testing.assert_array_equal(weights, evaluate_weights(stack, p))


def on_screen(view, pixels, depth):
    """Return the points (N, 3) seen at pixels (N, 2), at depths along the view."""
    rows, w = view.matrix[[0, 1, 3]], view.window
    ndc = 2 * (pixels - w[:2]) / w[2:] - 1
    normals = np.stack([rows[0] - ndc[:, :1] * rows[2], rows[1] - ndc[:, 1:] * rows[2]], axis=1)
    depths = np.append(view.depth_gradient, -view.view[2][3])
    planes = np.concatenate([normals, np.tile(depths, (len(pixels), 1, 1))], axis=1)
    return np.linalg.solve(planes[:, :, :3], -planes[:, :, 3:] + np.array([[0], [0], [1]]) * depth)[..., 0]


@pytest.mark.parametrize("feather", FEATHERS[:2], ids=lambda f: f.curve)
@pytest.mark.parametrize("name", SHAPES)
def test_gradients_on_the_edge_itself(rng, viewpoint, name, feather):
    """Where the distance is 0, but for corners."""
    shape = centred(SHAPES[name])
    p = np.array([400.0, 300]) + rng.uniform(-330, 330, (6000, 2))
    for _ in range(60):
        p -= shape.distance(*p.T).value[:, None] * normals_of(shape, p)
    around = [normals_of(shape, p + 1e-3 * np.array(step)) for step in ((1, 0), (-1, 0), (0, 1), (0, -1))]
    turned = np.ptp(around, axis=0).max(axis=1)
    p = p[(np.abs(shape.distance(*p.T).value) < 1e-9) & (turned < 1e-3)]
    assert len(p) > 500
    p = on_screen(viewpoint, p, 4.0)
    stack = LayerStack(("arm",), (SelectionLayer("arm", viewpoint, shape, feather, 0.8),))
    weights, gradients = evaluate_stack(stack, p)
    np.testing.assert_allclose(weights, 0.4, atol=1e-9)
    assert (np.linalg.norm(gradients[:, 0], axis=1) > 0.1).all()
    wrong = np.abs(differences(lambda q: evaluate_weights(stack, q), p) - gradients).max(axis=(1, 2)) > 1e-6
    assert wrong.mean() < 0.01


def normals_of(shape, p):
    found = shape.distance(*p.T)
    return np.stack([found.x, found.y], axis=1)


def test_gradients_where_the_pieces_of_a_stroke_meet(viewpoint):
    """At the outer side of a joint, and where a cone goes over into the disc at its end, there is no kink."""
    a, b, c = np.array([[250.0, 250], [420, 330], [540, 240]])
    shape = Stroke((a, b, c), (30, 50, 20))
    places = []
    for start, end, low, high in ((a, b, 30, 50), (b, c, 50, 20)):
        length = np.linalg.norm(end - start)
        along, slope = (end - start) / length, (low - high) / length
        across = np.array([-along[1], along[0]])
        for side in (-1, 1):
            normal = slope * along + side * np.sqrt(1 - slope**2) * across
            for corner, radius in ((start, low), (end, high)):
                places += [corner + (radius + away) * normal for away in (-9, -4, 0, 5, 11)]
    pixels = np.array(places)
    here = shape.distance(*pixels.T)
    nearest = np.min([np.linalg.norm(pixels - p, axis=1) - r for p, r in ((a, 30), (b, 50), (c, 20))], axis=0)
    seams = np.abs(here.value - nearest) < 1e-9  # not within another piece
    assert 30 <= seams.sum() < len(seams)
    p = on_screen(viewpoint, pixels[seams], 4.0)
    stack = LayerStack(("arm",), (SelectionLayer("arm", viewpoint, shape, Feather(60)),))
    _, gradients = evaluate_stack(stack, p)
    assert (np.linalg.norm(gradients[:, 0], axis=1) > 0.1).all()
    found = differences(lambda q: evaluate_weights(stack, q), p, h=1e-7)
    assert np.abs(found - gradients).max() < 1e-4 * np.abs(gradients).max()  # curvature jumps here


def test_stack_against_differences(rng, gestures):
    p = rng.normal(size=(4000, 3)) * 0.8
    _, gradients = evaluate_stack(gestures, p)
    found = differences(lambda q: evaluate_weights(gestures, q), p)
    assert (np.abs(found - gradients).max(axis=(1, 2)) > 1e-6).mean() < 0.01


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("front", [False, True])
def test_stack_against_autodiff(rng, gestures, operation, front):
    """Reverse mode through formulas of their own agrees to rounding, in double and in single precision."""
    import torch

    from gaussianimate.core.selection import autodiff

    torch.set_num_threads(1)
    p = rng.normal(size=(4000, 3)) * 0.8
    last = gestures.layers[-1]
    surface = front_surface(last.viewpoint, p, (100, 100, 700, 500)) if front else None
    stack = gestures.changed(3, operation=operation, front=surface, strength=0.5)
    weights, gradients = evaluate_stack(stack, p)
    by_torch, slopes = autodiff.evaluate_stack(stack, p)
    assert np.abs(gradients).max() > 0.5
    assert np.abs(weights - by_torch).max() < 1e-10
    assert np.abs(gradients - slopes).max() < 1e-10
    single, single_slopes = evaluate_stack(stack, p, dtype=np.float32)
    assert single.dtype == single_slopes.dtype == np.float32
    assert np.abs(single - weights).max() < 1e-4
    # a few points lie so near to a kink that rounding takes the other side
    error = np.abs(single_slopes - gradients).max(axis=(1, 2))
    assert np.quantile(error, 0.995) < 1e-4 * np.abs(gradients).max()


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_against_autodiff(rng, viewpoint, name):
    import torch

    from gaussianimate.core.selection import autodiff

    torch.set_num_threads(1)
    stack = LayerStack(("arm",), (SelectionLayer("arm", viewpoint, centred(SHAPES[name]), Feather(90)),))
    p = rng.normal(size=(3000, 3)) * 0.6
    weights, gradients = evaluate_stack(stack, p)
    by_torch, slopes = autodiff.evaluate_stack(stack, p)
    assert np.abs(weights - by_torch).max() < 1e-10
    assert np.abs(gradients - slopes).max() < 1e-10 * max(np.abs(gradients).max(), 1)


def test_hard_edges(rng, gestures):
    """Without a feather weights are 0 or the strength, and flat."""
    p = rng.normal(size=(4000, 3)) * 0.8
    for layer in gestures.layers:
        hard = SelectionLayer("arm", layer.viewpoint, layer.shape, Feather(0), 0.7)
        weights, gradients = evaluate_stack(LayerStack(("arm",), (hard,)), p)
        assert set(np.unique(weights)) == {0, 0.7}
        assert not gradients.any()


@pytest.mark.parametrize("curve", ["linear", "smoothstep"])
def test_feather_at_and_beside_the_edge(curve):
    f = Feather(20, curve)
    np.testing.assert_allclose(f.value(np.array([0.0, -10, -11, 10, 11])), [0.5, 1, 1, 0, 0], atol=1e-12)
    np.testing.assert_array_equal(f.value_and_slope(np.array([-10.5, 10.5]))[1], 0)
    assert Feather(20, curve, "inside").value(np.array([0.0, -20.0])).tolist() == [0, 1]
    assert Feather(20, curve, "outside").value(np.array([0.0, 20.0])).tolist() == [1, 0]


def test_behind_the_camera_nothing_is_selected(rng, perspective, gestures):
    p = rng.normal(size=(200_000, 3)) * 8
    eye = np.linalg.inv(np.array(perspective.view))[:3, 3]
    p[:1000] = eye + rng.normal(size=(1000, 3)) * 10.0 ** rng.uniform(-12, 0, (1000, 1))  # about the eye
    p[1000], p[1001], p[1002, 1], p[1003] = eye, np.inf, np.nan, 1e30
    stack = gestures.changed(1, muted=True).changed(3, muted=True)
    with np.errstate(all="raise", under="ignore"):
        weights, gradients = evaluate_stack(stack, p)
        single, single_gradients = evaluate_stack(stack, p, dtype=np.float32)
    with np.errstate(invalid="ignore"):
        behind = ~(perspective.depth(p) > 0)
    assert behind.sum() > 1000
    assert not weights[behind].any() and not gradients[behind].any()
    for values in (weights, gradients, single, single_gradients):
        assert np.isfinite(values).all()


def test_points_outside_of_the_window_can_be_selected(perspective):
    wide = Ellipse((400, 300), (4000, 4000))
    stack = LayerStack(("arm",), (SelectionLayer("arm", perspective, wide),))
    outside = np.array([[3.0, 0, 0]])
    assert perspective.project(outside).x > 800
    assert evaluate_weights(stack, outside) == 1


def test_weights_stay_between_0_and_1(rng, gestures):
    p = rng.normal(size=(20000, 3)) * 0.8
    for operation in OPERATIONS:
        stack = LayerStack(
            ("arm",), [*gestures.layers, *[gestures.changed(0, operation=operation).layers[0]] * 3]
        )
        weights, gradients = evaluate_stack(stack, p)
        assert weights.min() >= 0 and weights.max() <= 1
        if operation in ("add", "subtract"):
            clamped = weights == (operation == "add")
            assert clamped.mean() > 0.05
            assert not gradients[clamped].any()


def test_adding_and_subtracting_is_nothing(rng, gestures):
    p = rng.normal(size=(20000, 3)) * 0.8
    layer = gestures.changed(0, operation="add").layers[0]
    stack = LayerStack(
        ("arm",), (layer, LayerStack(("arm",), (layer,)).changed(0, operation="subtract").layers[0])
    )
    assert np.abs(evaluate_weights(stack, p)).max() < 1e-12


def test_multiplying_by_a_full_selection_is_nothing(rng, gestures):
    p = rng.normal(size=(20000, 3)) * 0.8
    before, slopes = evaluate_stack(gestures, p)
    layer = gestures.layers[0]
    full = SelectionLayer("arm", layer.viewpoint, layer.shape, Feather(30), 1, "multiply")
    after, after_slopes = evaluate_stack(gestures.added(full), p)
    at = layer.viewpoint.project(p)
    inside = layer.shape.distance(at.x, at.y).value < -15
    assert inside.mean() > 0.2
    np.testing.assert_allclose(after[inside], before[inside], atol=1e-12)
    np.testing.assert_allclose(after_slopes[inside], slopes[inside], atol=1e-12)


def test_replacing_by_nothing_clears_the_field(rng, gestures):
    away = SelectionLayer(
        "arm", gestures.layers[0].viewpoint, Ellipse((-5e4, 0), (1, 1)), operation="replace"
    )
    weights, gradients = evaluate_stack(gestures.added(away), rng.normal(size=(100, 3)))
    assert not weights.any() and not gradients.any()


def test_moving_object_and_camera_together_changes_nothing(rng, gestures):
    from gaussianimate.core.rotations import normalize_quaternions, quaternion_to_matrix

    p = rng.normal(size=(2000, 3)) * 0.8
    motion = np.eye(4)
    motion[:3, :3] = quaternion_to_matrix(normalize_quaternions(rng.normal(size=4)))
    motion[:3, 3] = [3, -2, 5]
    stack = gestures
    for k, layer in enumerate(gestures.layers):
        view = layer.viewpoint
        moved = Viewpoint(np.array(view.view) @ np.linalg.inv(motion), view.projection, view.window)
        stack = stack.changed(k, viewpoint=moved)
    weights, gradients = evaluate_stack(gestures, p)
    there, slopes = evaluate_stack(stack, p @ motion[:3, :3].T + motion[:3, 3])
    assert np.abs(weights - there).max() < 1e-9
    turned = gradients @ motion[:3, :3].T
    # points within rounding of a kink may take the other side
    assert np.quantile(np.abs(turned - slopes).max(axis=(1, 2)), 0.999) < 1e-9


def test_far_from_the_origin_single_precision_serves(rng, gestures):
    """100 km away float32 resolves 8 mm; the gesture is still as good as the positions are."""
    shift = np.array([1e5, -2e5, 5e4])
    p = (rng.normal(size=(20000, 3)) * 0.8 + shift).astype(np.float32)
    stack = gestures
    for k, layer in enumerate(gestures.layers):
        back = np.eye(4)
        back[:3, 3] = -shift
        view = layer.viewpoint
        stack = stack.changed(
            k, viewpoint=Viewpoint(np.array(view.view) @ back, view.projection, view.window)
        )
    single = evaluate_weights(stack, p, dtype=np.float32)
    assert np.abs(single - evaluate_weights(stack, p.astype(float))).max() < 1e-3


def test_compose_by_hand():
    """The table of operations, and the clamp, on three points."""
    from gaussianimate.core.selection.compose import Selected

    selected = Selected(np.array([0.0, 0.5, 1.0]), np.array([1]), np.array([[2.0], [0], [0]]))
    expected = {
        "replace": ([0, 0.4, 0.8], [0, 1.6, 0]),
        "add": ([0.5, 0.9, 1], [1, 2.6, 0]),
        "subtract": ([0.5, 0.1, 0], [1, -0.6, 0]),
        "multiply": ([0, 0.2, 0.4], [0, 0.4 + 0.8, 0.8]),
        "mix": ([0.5, 0.65, 0.8], [1, 0.5 + 2 * 0.3, 0]),
    }
    for operation, (weights, slopes) in expected.items():
        w, g = np.full(3, 0.5), np.tile([[1.0], [0], [0]], (1, 3))
        compose(operation, 0.8, w, g, selected)
        np.testing.assert_allclose(w, weights, atol=1e-12, err_msg=operation)
        np.testing.assert_allclose(g[0], slopes, atol=1e-12, err_msg=operation)
        assert not g[1:].any()
