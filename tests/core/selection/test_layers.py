"""Layers as a document: editing, writing, mirroring, previews, front surfaces."""

import json

import numpy as np
import pytest

from gaussianimate.core.errors import SelectionError
from gaussianimate.core.render.camera import Camera
from gaussianimate.core.selection.band import FULL, NONE, PARTLY, Band
from gaussianimate.core.selection.depth import FrontSurface
from gaussianimate.core.selection.depth_picture import front_surface
from gaussianimate.core.selection.evaluate import evaluate_stack, evaluate_weights
from gaussianimate.core.selection.feather import Feather
from gaussianimate.core.selection.layer import LayerStack, SelectionLayer
from gaussianimate.core.selection.mirror import REFLECT_X, mirror_layer
from gaussianimate.core.selection.preview import Preview, preview
from gaussianimate.core.selection.shapes import Ellipse, Lasso, Rectangle, Stroke
from gaussianimate.core.selection.viewpoint import Viewpoint

from .conftest import SHAPES, squiggle, star


@pytest.fixture
def sphere(rng):
    p = rng.normal(size=(20000, 3))
    return p / np.linalg.norm(p, axis=1, keepdims=True)


def front_of(viewpoint, sphere, **values):
    """A lasso over the middle of the sphere that keeps to the front."""
    surface = front_surface(viewpoint, sphere, (150, 50, 650, 550), **values)
    return SelectionLayer("arm", viewpoint, Ellipse((400, 300), (90, 90)), Feather(30), front=surface)


# -- document ----------------------------------------------------------------------------------------


def test_written_stacks_evaluate_to_the_same_bits(rng, gestures, sphere):
    stack = gestures.added(front_of(gestures.layers[0].viewpoint, sphere)).changed(
        1, muted=True, name="chest"
    )
    read = LayerStack.from_json(json.dumps(json.loads(stack.to_json()), indent=2))
    assert read == stack and hash(read.layers) == hash(stack.layers)
    p = rng.normal(size=(3000, 3)) * 0.8
    for a, b in zip(evaluate_stack(stack, p), evaluate_stack(read, p), strict=True):
        assert a.tobytes() == b.tobytes()


def test_editing_a_stack(gestures):
    a, b, c, d = gestures.layers
    assert gestures.moved(0, 2).layers == (b, c, a, d)
    assert gestures.without(1).layers == (a, c, d)
    assert gestures.added(a, at=1).layers == (a, a, b, c, d)
    assert gestures.changed(2, strength=0.25).layers[2].strength == 0.25
    assert gestures.changed(2, muted=True).of_bone("arm", muted=False) == (a, b, d)
    renamed = gestures.followed(["leg", "Arm.L"], {"arm": "Arm.L"})
    assert renamed.bones == ("leg", "Arm.L") and {layer.bone for layer in renamed.layers} == {"Arm.L"}
    assert gestures.followed(["leg", "arm"], {"leg": "arm"}).layers == ()
    assert gestures.layers == (a, b, c, d), "edits leave the stack itself alone"


def test_layers_of_other_bones_do_not_matter(rng, gestures):
    p = rng.normal(size=(500, 3))
    other = SelectionLayer("leg", gestures.layers[0].viewpoint, Ellipse((400, 300), (100, 100)), Feather(50))
    both = gestures.followed(["leg", "arm", "none"], {"arm": "arm"}).added(other, at=2)
    weights, gradients = evaluate_stack(both, p)
    alone, slopes = evaluate_stack(gestures, p)
    np.testing.assert_array_equal(weights[:, 1], alone[:, 0])
    np.testing.assert_array_equal(gradients[:, 1], slopes[:, 0])
    assert weights[:, 0].any() and not weights[:, 2].any()


def test_layers_go_on_from_given_weights(rng, gestures):
    p = rng.normal(size=(500, 3)) * 0.8
    base = rng.random((500, 1)), rng.normal(size=(500, 1, 3))
    empty, flat = evaluate_stack(LayerStack(("arm",)), p, base=base)
    np.testing.assert_array_equal(empty, base[0])
    np.testing.assert_array_equal(flat, base[1])
    add = SelectionLayer(
        "arm", gestures.layers[0].viewpoint, Ellipse((400, 300), (100, 100)), Feather(50), 0.3
    )
    weights, slopes = evaluate_stack(LayerStack(("arm",), (add,)), p, base=base)
    selected, gs = evaluate_stack(LayerStack(("arm",), (add,)), p)
    free = (base[0] + selected < 1)[:, 0]
    np.testing.assert_allclose(weights, np.minimum(base[0] + selected, 1), atol=1e-12)
    np.testing.assert_allclose(slopes[free], (base[1] + gs)[free], atol=1e-12)
    np.testing.assert_array_equal(evaluate_weights(LayerStack(("arm",), (add,)), p, base=base[0]), weights)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "png"},
        {"version": 2},
        {"layers": [{}]},
        {"bones": ["leg"]},
        {"bones": ["arm", "arm"]},
    ],
)
def test_stacks_that_cannot_be_read_are_said_so(gestures, change):
    with pytest.raises(SelectionError):
        LayerStack.from_dict({**gestures.to_dict(), **change})


@pytest.mark.parametrize(
    "change",
    [
        {"strength": 1.5},
        {"operation": "blur"},
        {"feather": {"width": -1}},
        {"feather": {"width": 1, "curve": "cubic"}},
        {"viewpoint": {"view": [[1]], "projection": [[1]], "window": [0, 0, 1, 1]}},
        {"surprise": 1},
        {"front": {"box": [0, 0, 1, 1], "shape": [2, 2], "data": "xx", "thickness": 1, "falloff": 1}},
    ],
)
def test_layers_that_cannot_be_read_are_said_so(gestures, change):
    data = gestures.to_dict()
    data["layers"][0] |= change
    with pytest.raises(SelectionError):
        LayerStack.from_dict(data)
    with pytest.raises(SelectionError):
        LayerStack.from_json("{")


def test_windows_without_area(perspective):
    with pytest.raises(SelectionError):
        Viewpoint(perspective.view, perspective.projection, (0, 0, 0, 600))


# -- cells -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("width", [0, 5, 80, 1000])
def test_cells_leave_no_point_out(rng, shape, width, dtype):
    """What cells say of points, and distances to near pieces alone, are those of the whole shape."""
    feather = Feather(width, align="outside")
    band = Band(shape, feather)
    x, y = rng.uniform(-400, 400, (2, 30000)).astype(dtype)
    state, cell = band.sort(x, y)
    truth = shape.distance(x, y)
    fade = feather.value(truth.value)
    assert not fade[state == NONE].any() and (fade[state == FULL] == 1).all()
    rows = state == PARTLY
    found = shape.distance(x[rows], y[rows], near=band.near(cell[rows]))
    for a, b in zip(found, truth, strict=True):
        np.testing.assert_array_equal(a, b[rows])
    if width == 5:
        assert rows.mean() < 0.25, "most points need no distance"


def test_pieces_far_away_are_not_measured():
    band = Band(Lasso((star(200, 100, 2),)), Feather(20))
    assert band.near(np.zeros(1, dtype=np.int32)).pieces.shape[1] < 20


# -- preview -----------------------------------------------------------------------------------------


def test_preview_is_the_layer(rng, gestures, sphere):
    p = (rng.normal(size=(100_000, 3)) * 0.8).astype(np.float32)
    for layer in (*gestures.layers, front_of(gestures.layers[0].viewpoint, sphere)):
        mask = preview(layer, p)
        assert mask.dtype == np.float32 and mask.shape == (len(p),)
        exact = evaluate_weights(LayerStack(("arm",), (layer,)).changed(0, operation="replace"), p)[:, 0]
        assert np.abs(mask - exact).max() < 2e-3
        assert mask.max() > 0.9 * layer.strength


def test_one_projection_serves_many_versions(rng, gestures):
    p = rng.normal(size=(5000, 3)).astype(np.float32)
    layer = gestures.layers[0]
    seen = Preview(layer.viewpoint, p)
    for width in (10, 40):
        version = LayerStack(("arm",), (layer,)).changed(0, feather=Feather(width)).layers[0]
        np.testing.assert_array_equal(seen.mask(version), preview(version, p))


def test_threads_and_chunks_do_not_matter(rng, gestures):
    p = rng.normal(size=(100_000, 3))
    one, two = evaluate_stack(gestures, p, threads=1), evaluate_stack(gestures, p, threads=3)
    few = evaluate_stack(gestures, p[50_000:50_100])
    for a, b, c in zip(one, two, few, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a[50_000:50_100], c, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("operation", ["replace", "add", "subtract", "multiply", "mix"])
def test_points_a_layer_does_not_come_near_are_as_others(rng, viewpoint, operation):
    """A few points at once, for each of which no layer, one or both come near, or that are not seen."""
    layers = [
        SelectionLayer("a", viewpoint, Ellipse(at, (90, 70)), Feather(20, align="outside"), 0.7, kind)
        for at, kind in (((340, 300), "add"), ((460, 300), operation))
    ]
    stack, points = LayerStack(("a",), layers), rng.normal(size=(20_000, 3)) * [0.8, 0.8, 6]
    at = viewpoint.project(points)
    side = np.where(at.seen, np.clip(np.where(at.seen, at.x, 0) // 100, -1, 9), 10)
    weights, gradients = evaluate_stack(stack, points)
    for part in np.unique(side):
        rows = np.flatnonzero(side == part)
        some, slopes = evaluate_stack(stack, points[rows])
        np.testing.assert_allclose(some, weights[rows], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(slopes, gradients[rows], rtol=1e-9, atol=1e-9)
    assert (weights > 0).mean() > 0.001


# -- mirror ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHAPES)
def test_mirrored_layers_select_mirrored_points(rng, viewpoint, sphere, name):
    surface = front_surface(viewpoint, sphere, (150, 50, 650, 550))
    shape = Lasso(tuple(np.array(ring) + (400, 300) for ring in SHAPES["ring"].outlines))
    if name != "ring":
        shape = {"stroke": squiggle((400, 300)), "ellipse": Ellipse((420, 280), (120, 40), 0.3)}.get(
            name, Rectangle((380, 310), (90, 50), 0.4)
        )
    layer = SelectionLayer("arm.L", viewpoint, shape, Feather(60), 0.7, front=surface)
    mirrored = mirror_layer(layer, "arm.R")
    p = rng.normal(size=(5000, 3)) * 0.6
    weights, gradients = evaluate_stack(LayerStack(("arm.L",), (layer,)), p)
    there, slopes = evaluate_stack(LayerStack(("arm.R",), (mirrored,)), p * [-1, 1, 1])
    assert weights.any()
    np.testing.assert_allclose(there, weights, atol=1e-9)
    np.testing.assert_allclose(slopes * [-1, 1, 1], gradients, atol=1e-6)
    view = np.array(mirrored.viewpoint.view)[:3, :3]
    assert np.linalg.det(view) > 0, "a camera can take this view"


def test_mirroring_twice_is_nothing(gestures):
    for layer in gestures.layers:
        back = mirror_layer(mirror_layer(layer, "b"), "arm")
        np.testing.assert_allclose(back.viewpoint.matrix, layer.viewpoint.matrix, atol=1e-12)
        assert type(back.shape) is type(layer.shape)


def test_only_reflections_mirror(gestures):
    for matrix in (np.eye(4), np.diag([-1, -1, 1, 1]), 2 * REFLECT_X, np.eye(3)):
        with pytest.raises(SelectionError):
            mirror_layer(gestures.layers[0], "b", matrix)


# -- front surface -----------------------------------------------------------------------------------


def test_only_the_front_is_selected(viewpoint, sphere):
    """A closed surface, one soft gesture in front: the far side stays as it is."""
    layer = front_of(viewpoint, sphere)
    through = SelectionLayer("arm", viewpoint, layer.shape, layer.feather)
    kept = evaluate_weights(LayerStack(("arm",), (layer,)), sphere)[:, 0]
    all_of_it = evaluate_weights(LayerStack(("arm",), (through,)), sphere)[:, 0]
    depth = viewpoint.depth(sphere)
    near = depth < viewpoint.depth(np.zeros((1, 3)))
    assert (all_of_it[~near] > 0.5).sum() > 500
    assert not kept[~near].any()
    np.testing.assert_allclose(kept[near], all_of_it[near], atol=0.02)


def test_stray_splats_do_not_hide_the_surface(perspective, sphere, rng):
    eye = np.linalg.inv(np.array(perspective.view))[:3, 3]
    stray = 0.5 * eye + rng.normal(size=(30, 3)) * 0.1
    p = np.concatenate([sphere, stray])
    opacities = np.concatenate([np.full(len(sphere), 0.9), np.full(30, 0.1)])
    scales = np.full((len(p), 3), 0.012)
    layer = front_of(perspective, p, opacities=opacities, scales=scales)
    alone = front_of(perspective, sphere)
    a = evaluate_weights(LayerStack(("arm",), (layer,)), sphere)
    b = evaluate_weights(LayerStack(("arm",), (alone,)), sphere)
    assert (a > 0.5).sum() > 0.95 * (b > 0.5).sum()


def test_front_gradients_against_differences(viewpoint, sphere, rng):
    stack = LayerStack(("arm",), (front_of(viewpoint, sphere, thickness=0.1, falloff=0.4),))
    p = sphere * rng.uniform(0.6, 1.1, (len(sphere), 1))
    _, gradients = evaluate_stack(stack, p)
    h, axes = 1e-6, np.eye(3)
    found = [
        (evaluate_weights(stack, p + h * e) - evaluate_weights(stack, p - h * e)) / (2 * h) for e in axes
    ]
    assert (np.abs(gradients) > 0.5).any(axis=(1, 2)).mean() > 0.05
    assert (np.abs(np.stack(found, axis=-1) - gradients).max(axis=(1, 2)) > 1e-6).mean() < 0.01


def test_thickness_and_falloff_are_lengths_of_depth(perspective):
    """Sheets one behind the other, at known depths."""
    camera = Camera.orthographic((0, -5, 0), (0, 0, 0), (0, 0, 1), 3, 800, 600, 0.1, 100)
    view = Viewpoint(camera.view, camera.projection, (0, 0, 800, 600))
    x, z = np.meshgrid(np.linspace(-0.5, 0.5, 40), np.linspace(-0.5, 0.5, 40))
    depths = np.array([0, 0.2, 0.45, 0.5, 0.75, 0.8])
    sheets = np.stack([np.stack([x, np.full_like(x, d), z], axis=-1) for d in depths]).reshape(6, -1, 3)
    surface = front_surface(view, sheets.reshape(-1, 3), (310, 210, 490, 390), thickness=0.25, falloff=0.5)
    layer = SelectionLayer("arm", view, Rectangle((400, 300), (60, 60)), front=surface)
    weights = evaluate_weights(LayerStack(("arm",), (layer,)), sheets.reshape(-1, 3)).reshape(6, -1)
    t = np.clip((depths - 0.25) / 0.5, 0, 1)
    np.testing.assert_allclose(weights.max(axis=1), 1 - t * t * (3 - 2 * t), atol=1e-5)


def test_nothing_in_the_box_has_no_front(perspective, sphere):
    assert front_surface(perspective, sphere, (-500, -500, -400, -400)) is None


def test_damaged_depth_pictures(perspective, sphere):
    surface = front_of(perspective, sphere).front
    with pytest.raises(SelectionError):
        FrontSurface(surface.box, (3, 3), surface.data, 1, 1)
    with pytest.raises(SelectionError):
        FrontSurface(surface.box, (1, 1), np.float32(np.nan).tobytes(), 1, 1)


def test_strokes_have_a_radius_for_each_point():
    with pytest.raises(SelectionError):
        Stroke(((0, 0), (1, 1)), (1,))
