"""Stacks of many bones as skins."""

import numpy as np
import pytest

from gaussianimate.core.deform.deform import deform_points, jacobian_terms
from gaussianimate.core.errors import SelectionError
from gaussianimate.core.selection.depth_picture import front_surface
from gaussianimate.core.selection.evaluate import LayerField, evaluate_stack
from gaussianimate.core.selection.feather import Feather
from gaussianimate.core.selection.layer import LayerStack, SelectionLayer
from gaussianimate.core.selection.memory import Memory
from gaussianimate.core.selection.shapes import Ellipse, Rectangle
from gaussianimate.core.selection.skin import SkinField, stack_to_skin
from gaussianimate.core.skinning.gradients import weight_gradients
from gaussianimate.core.skinning.skin import STATIC, Skin, make_skin


@pytest.fixture
def stack(perspective, orthographic):
    """Five bones whose selections overlap, and one without layers."""
    layers = [
        SelectionLayer(f"bone {k}", view, shape, Feather(140), 0.7)
        for k, (view, shape) in enumerate(
            [
                (perspective, Ellipse((300, 300), (150, 220))),
                (perspective, Ellipse((500, 300), (150, 220))),
                (orthographic, Rectangle((400, 200), (300, 120))),
                (orthographic, Rectangle((400, 400), (300, 120), 0.2)),
                (perspective, Ellipse((400, 300), (100, 100))),
            ]
        )
    ]
    return LayerStack([f"bone {k}" for k in range(6)], layers)


@pytest.fixture
def points(rng):
    return rng.normal(size=(4000, 3)) * 0.6


@pytest.mark.parametrize("completion", ["static", "none"])
@pytest.mark.parametrize("root", [STATIC, 5])
def test_the_same_as_any_other_skin(stack, points, completion, root):
    weights, gradients = evaluate_stack(stack, points)
    indices = np.tile(np.arange(6, dtype=np.int32), (len(points), 1))
    expected = make_skin(points, indices, weights, gradients, completion=completion, root=root)
    found = stack_to_skin(stack, points, completion=completion, root=root)
    used = expected.weights[:, : found.influences] > 0
    np.testing.assert_array_equal(found.indices[used], expected.indices[used])
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-6)
    np.testing.assert_allclose(found.gradients[used], expected.gradients[used], atol=1e-5)
    assert found.influences == 4 and found.weights.dtype == found.gradients.dtype == np.float32
    assert len(expected.notes) >= len(found.notes) == 1 and "influences" in found.notes[0]


@pytest.mark.parametrize("influences", [1, 2, 4, 10])
def test_gradients_sum_to_nothing(stack, points, influences):
    _, weights, gradients = SkinField(stack, influences)(points)
    assert gradients.shape == (len(points), min(influences, 7), 3)
    assert np.abs(gradients.sum(axis=1)).max() < 1e-10
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)
    assert (np.diff(weights, axis=1) <= 0).all()


@pytest.mark.parametrize("completion", ["static", "none"])
@pytest.mark.parametrize("influences", [2, 4, 10])
def test_all_weights_are_those_of_the_influences_before_any_is_cut_off(stack, points, influences, completion):
    base = make_skin(points, np.zeros((len(points), 1), np.int32), np.linspace(0, 1, len(points))[:, None])
    for start, where in ((None, None), (base, points)):
        field = SkinField(stack, influences, start, where, completion)
        rows = np.arange(len(points))[::-1]
        whole = SkinField(stack, 10, start, where, completion)
        indices, weights, _ = whole(points[::-1] + 0.01, rows)
        expected = np.zeros((len(points), 7))
        np.add.at(expected, (np.arange(len(points))[:, None], indices + 1), weights)
        bones, found = field.all_weights(points[::-1] + 0.01, rows)
        spread = np.zeros((len(points), 7))
        spread[:, bones + 1] = found.T
        np.testing.assert_allclose(spread, expected, atol=1e-12)


def test_gradients_are_those_of_the_final_weights(stack, points):
    """Completion, truncation and normalisation included; kinks where the strongest change places."""
    field, h = SkinField(stack, 3), 1e-6
    indices, weights, gradients = field(points)
    found = np.zeros_like(gradients)
    changed = np.zeros(len(points), bool)
    for axis, e in enumerate(h * np.eye(3)):
        i, up, _ = field(points + e)
        j, down, _ = field(points - e)
        changed |= (i != indices).any(axis=1) | (j != indices).any(axis=1)
        found[..., axis] = (up - down) / (2 * h)
    wrong = np.abs(found - gradients).max(axis=(1, 2)) > 1e-5
    assert changed.mean() < 0.01 and wrong[~changed].mean() < 0.01
    assert (np.abs(gradients).max(axis=(1, 2)) > 0.1).mean() > 0.5


def test_the_skin_stretches_splats_as_the_field_does(stack, points, rng):
    """The Jacobian of the deformation is the derivative of where points go."""
    from gaussianimate.core.rotations import normalize_quaternions, quaternion_to_matrix

    turns = quaternion_to_matrix(normalize_quaternions(rng.normal(size=(6, 4))))
    transforms = np.concatenate([turns, rng.normal(size=(6, 3, 1))], axis=-1)
    field, h = SkinField(stack, 7), 1e-5

    def posed(p):
        return deform_points(p, Skin(*field(p)), transforms)

    rigid, elastic = jacobian_terms(points, Skin(*field(points)), transforms)[:2]
    found = np.stack([(posed(points + e) - posed(points - e)) / (2 * h) for e in h * np.eye(3)], axis=-1)
    error = np.abs(found - rigid - elastic).max(axis=(1, 2))
    assert (error > 1e-6).mean() < 0.02


def test_unselected_points_stay(stack, points):
    far = points + [0, 0, 50]
    for completion in ("static", "none"):
        skin = stack_to_skin(stack, far, completion=completion)
        np.testing.assert_array_equal(skin.indices[:, 0], STATIC)
        np.testing.assert_array_equal(skin.weights, np.tile([1, 0, 0, 0], (len(far), 1)))
        assert not skin.gradients.any()


def test_next_to_nothing_is_nothing_without_completion(stack, points):
    """Points that are held by less than a millionth stay, and change nothing elsewhere."""
    faint = stack.changed(0, strength=5e-7)
    weights, gradients = evaluate_stack(faint, points)
    nothing = weights.sum(axis=1) < 1e-6
    assert (weights[nothing] > 0).any(axis=1).sum() > 5
    indices = np.tile(np.arange(6, dtype=np.int32), (len(points), 1))
    expected = make_skin(points, indices, weights, gradients, completion="none")
    found = stack_to_skin(faint, points, completion="none")
    np.testing.assert_array_equal(found.weights[nothing], np.tile([1, 0, 0, 0], (nothing.sum(), 1)))
    np.testing.assert_array_equal(found.indices[:, 0], expected.indices[:, 0])
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-6)


def test_what_is_remembered_changes_nothing(stack, points, perspective):
    """Bit by bit, whatever was evaluated before: other numbers, places, points and layers."""
    front = front_surface(perspective, points, (150, 80, 650, 520))
    stacks = [
        stack,
        stack.changed(1, strength=0.3),
        stack.changed(1, operation="subtract").moved(2, 0),
        stack.changed(0, feather=Feather(60)),
        stack.changed(0, muted=True).changed(4, front=front),
        stack.changed(4, bone="bone 0"),
        LayerStack(stack.bones),
        stack,
    ]
    for memory in (Memory(), Memory(150_000), Memory(0)):
        for some in (points, points + 0.1, points[:1000]):
            for each in stacks:
                found = stack_to_skin(each, some, memory=memory)
                expected = stack_to_skin(each, some)
                for one, other in zip(
                    (found.indices, found.weights, found.gradients),
                    (expected.indices, expected.weights, expected.gradients),
                    strict=True,
                ):
                    np.testing.assert_array_equal(one, other)
                assert memory.bytes <= memory.most


def test_only_what_changed_is_measured(stack, points, monkeypatch):
    measured = []
    select = LayerField.select

    def count(self, *args, **values):
        measured.append(self.layer)
        return select(self, *args, **values)

    monkeypatch.setattr(LayerField, "select", count)
    memory = Memory()
    stack_to_skin(stack, points, memory=memory)
    assert len(measured) == 5
    stack_to_skin(stack.changed(1, strength=0.3, operation="mix", name="x"), points, memory=memory)
    assert len(measured) == 5
    wider = stack.changed(2, feather=Feather(150))
    stack_to_skin(wider, points, memory=memory)
    assert measured[5:] == [wider.layers[2]]
    memory.clear()
    stack_to_skin(wider, points, memory=memory)
    assert len(measured) == 11 and memory.bytes > 0


def test_layers_on_a_skin(stack, points, rng):
    """Bones without layers keep what they have; layers act on what their bones have."""
    weights = rng.dirichlet(np.ones(3), len(points))
    indices = np.tile(np.int32([5, 0, 2]), (len(points), 1))
    base = make_skin(points, indices, weights, np.zeros((len(points), 3, 3)))
    nothing = stack_to_skin(LayerStack(stack.bones), points, base=base, completion="none")
    np.testing.assert_allclose(nothing.weights[:, :3], base.weights, atol=1e-6)
    np.testing.assert_array_equal(nothing.indices[:, :3], base.indices)
    field = SkinField(stack, 7, base, points, completion="none")
    found = np.zeros((len(points), 7))
    i, w, _ = field(points)
    np.add.at(found, (np.arange(len(points))[:, None], i + 1), w)
    dense = np.zeros((len(points), 6))
    np.put_along_axis(dense, indices, weights, axis=1)
    expected = evaluate_stack(stack, points, base=(dense, np.zeros((len(points), 6, 3))))[0]
    np.testing.assert_allclose(found[:, 1:], expected / expected.sum(axis=1, keepdims=True), atol=1e-6)


def test_a_base_goes_on_linearly_beside_its_splats(rng):
    p = rng.random((2000, 3))
    slope = np.array([0.2, -0.1, 0.15])
    first = 0.5 + p @ slope
    indices = np.tile(np.int32([0, 1]), (2000, 1))
    weights = np.stack([first, 1 - first], axis=1)
    gradients = np.stack([np.tile(slope, (2000, 1)), np.tile(-slope, (2000, 1))], axis=1)
    base = Skin(indices, weights.astype(np.float32), gradients.astype(np.float32))
    rows = rng.integers(0, 2000, 300)
    children = p[rows] + rng.normal(size=(300, 3)) * 0.01
    i, w, g = SkinField(LayerStack(("a", "b")), 2, base, p)(children, rows)
    found = np.where(i == 0, w, 0).sum(axis=1)
    np.testing.assert_allclose(found, 0.5 + children @ slope, atol=1e-6)
    np.testing.assert_allclose(
        np.where((i == 0)[..., None], g, 0).sum(axis=1), np.tile(slope, (300, 1)), atol=1e-6
    )


def test_what_does_not_fit_is_said_so(stack, points):
    base = make_skin(points[:10], np.full((10, 1), 7), np.ones((10, 1)), np.zeros((10, 1, 3)))
    for wrong in (
        {"base": base},
        {"base": base, "positions": points},
        {"base": base, "positions": points[:10]},
        {"root": 6},
        {"root": -2},
    ):
        with pytest.raises(SelectionError):
            SkinField(stack, **wrong)


# -- moving least squares against exact gradients ----------------------------------------------------


def test_estimated_gradients_get_worse_with_narrow_feathers(perspective, rng):
    """The reason for fields: neighbours cannot see what changes between them."""
    p = rng.uniform(-1, 1, (8000, 3))
    errors = []
    for width in (200, 100, 50, 25, 12, 6):
        layer = SelectionLayer("arm", perspective, Rectangle((400, 300), (120, 90)), Feather(width))
        w, g = evaluate_stack(LayerStack(("arm",), (layer,)), p)
        indices = np.tile(np.int32([0, 1]), (len(p), 1))
        estimate = weight_gradients(p, indices, np.hstack([w, 1 - w]))[:, 0]
        band = g[:, 0].any(axis=1)
        errors.append(
            np.sqrt(
                ((estimate - g[:, 0])[band] ** 2).sum(axis=1).mean() / (g[band, 0] ** 2).sum(axis=1).mean()
            )
        )
    assert (np.diff(errors) > 0).all() and errors[0] < 0.3 and errors[-1] > 0.5


def test_estimated_gradients_of_simple_fields(rng):
    """Linear weights are found exactly in a volume, constant ones have none."""
    p = rng.uniform(-1, 1, (3000, 3))
    indices = np.tile(np.int32([0, 1]), (3000, 1))
    slope = np.array([0.2, -0.1, 0.15])
    first = 0.5 + p @ slope
    inner = np.abs(p).max(axis=1) < 0.8
    g = weight_gradients(p, indices, np.stack([first, 1 - first], axis=1))[inner, 0]
    exact = np.linalg.norm(g - slope, axis=1) < 1e-9
    assert exact.mean() > 0.99  # a few see all their neighbours in nearly one plane
    g = weight_gradients(p, indices, np.full((3000, 2), 0.5))
    assert np.abs(g).max() < 1e-12
