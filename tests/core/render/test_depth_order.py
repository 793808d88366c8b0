"""Depths and orders against the deformation of core and against plain sorting."""

from dataclasses import replace

import numpy as np
import pytest

from gaussianimate.core.deform.deform import deform_points
from gaussianimate.core.render.depth_order import (
    CHUNK,
    POSE_TOLERANCE,
    VIEW_TOLERANCE,
    OrderKey,
    back_to_front,
    depth_row,
    needs_new_order,
    posed_view_depths,
)
from gaussianimate.core.rotations import axis_angle_to_quaternion, quaternion_to_matrix
from gaussianimate.core.skinning.skin import STATIC, Skin

BONES = 12


def random_skin(rng, count, influences):
    weights = rng.dirichlet(np.ones(influences), count).astype(np.float32)
    indices = rng.integers(STATIC, BONES, (count, influences)).astype(np.int32)
    return Skin(indices, weights, np.zeros((count, influences, 3), dtype=np.float32))


def random_transforms(rng, centre):
    """Turns and shifts about the centre, (B, 3, 4) float64."""
    turns = quaternion_to_matrix(
        axis_angle_to_quaternion(rng.normal(size=(BONES, 3)), rng.uniform(-2, 2, BONES))
    )
    offsets = centre - turns @ centre + 0.5 * rng.normal(size=(BONES, 3))
    return np.concatenate([turns, offsets[:, :, None]], axis=-1)


def moves_about(transforms, centre):
    moves = np.zeros((len(transforms) + 1, 3, 4))
    moves[:-1, :, :3] = transforms[:, :, :3] - np.eye(3)
    moves[:-1, :, 3] = moves[:-1, :, :3] @ centre + transforms[:, :, 3]
    return moves.astype(np.float32)


def true_depths(points, camera, matrix):
    world = points @ matrix[:3, :3].T + matrix[:3, 3]
    return (world - camera.position) @ camera.forward


@pytest.fixture
def matrix(motion):
    return motion @ np.diag([1.5, -0.5, 1, 1])


@pytest.mark.parametrize("influences", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["perspective", "orthographic"])
def test_depths_are_those_of_deformed_points(kind, influences, request, rng, matrix):
    camera = request.getfixturevalue(kind)
    offset = np.array([300.0, -200, 100])  # the cloud stands far from its object's origin
    positions = rng.normal(size=(CHUNK + 100, 3)) + offset
    centre, skin = positions.mean(axis=0), random_skin(rng, len(positions), influences)
    transforms = random_transforms(rng, centre)
    local = (positions - centre).astype(np.float32)
    row = depth_row(camera, matrix, centre)
    depths = posed_view_depths(local, skin.indices, skin.weights, moves_about(transforms, centre), row)
    expected = true_depths(deform_points(positions, skin, transforms), camera, matrix)
    assert depths.dtype == np.float32
    size = np.abs(expected).max()
    np.testing.assert_allclose(depths, expected, atol=2e-6 * size)
    order = back_to_front(depths)
    assert np.array_equal(np.sort(order), np.arange(len(positions)))
    assert np.diff(expected[order]).max() <= 4e-6 * size


def test_bones_at_rest_move_no_depth(rng, perspective):
    local = rng.normal(size=(500, 3)).astype(np.float32)
    row, skin = depth_row(perspective, np.eye(4), np.zeros(3)), random_skin(rng, 500, 4)
    still = np.zeros((BONES + 1, 3, 4), dtype=np.float32)
    none = (np.zeros((500, 0), dtype=np.int32), np.zeros((500, 0), dtype=np.float32))
    rest = posed_view_depths(local, *none, still[-1:], row)
    np.testing.assert_allclose(rest, local[:, 1] + 5, atol=1e-6)
    np.testing.assert_array_equal(posed_view_depths(local, skin.indices, skin.weights, still, row), rest)


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_splats_under_broken_bones_keep_their_place(broken, rng, perspective):
    positions, skin = rng.normal(size=(400, 3)), random_skin(rng, 400, 2)
    transforms = random_transforms(rng, np.zeros(3))
    transforms[3, 1, 2] = broken
    centre = positions.mean(axis=0)
    with np.errstate(invalid="ignore"):
        moves = moves_about(transforms, centre)
        posed = deform_points(positions, skin, transforms)
    row = depth_row(perspective, np.eye(4), centre)
    local = (positions - centre).astype(np.float32)
    depths = posed_view_depths(local, skin.indices, skin.weights, moves, row)
    np.testing.assert_allclose(depths, true_depths(posed, perspective, np.eye(4)), atol=1e-5)
    held = (skin.indices == 3).any(axis=1)
    np.testing.assert_allclose(depths[held], positions[held, 1] + 5, atol=1e-5)


def test_bones_out_of_range_are_no_bones(rng, perspective):
    row = depth_row(perspective, np.eye(4), np.zeros(3))
    indices, weights = np.array([[BONES + 1]], dtype=np.int32), np.ones((1, 1), dtype=np.float32)
    with pytest.raises(IndexError):
        posed_view_depths(
            np.zeros((1, 3), np.float32), indices, weights, np.zeros((BONES + 1, 3, 4), np.float32), row
        )


@pytest.mark.parametrize("limits", [(-np.inf, np.inf), (-1.0, 2.0), (0.5, np.inf)])
def test_order_is_that_of_a_plain_sort(limits, rng):
    depths = rng.normal(size=3000).astype(np.float32)
    depths[::3] = rng.choice(depths[:20], 1000)  # many ties
    depths[:8] = -0.0, 0.0, 1e-42, -1e-42, np.nan, np.inf, -np.inf, -3e38
    near, far = limits
    kept = [k for k, d in enumerate(depths.tolist()) if near <= d <= far and np.isfinite(d)]
    expected = sorted(kept, key=lambda k: (-float(depths[k]), k))
    order = back_to_front(depths, near, far)
    assert order.dtype == np.uint32
    np.testing.assert_array_equal(order, expected)


def test_order_of_none():
    assert len(back_to_front(np.empty(0, dtype=np.float32))) == 0
    assert len(back_to_front(np.full(3, np.nan, dtype=np.float32), 0.1, 100)) == 0


@pytest.fixture
def key(perspective, rng):
    """Makes the key of two clouds, the second turned and away, optionally after a change."""
    moves = moves_about(random_transforms(rng, np.zeros(3)), np.zeros(3))
    other = np.eye(4)
    other[:3, 3] = 2, 1, 0

    def make(camera=perspective, other=other, moves=moves, **change):
        rows = np.stack([depth_row(camera, matrix, np.zeros(3)) for matrix in (np.eye(4), other)])
        made = OrderKey((1, 2), rows, np.array([3.0, 1.0]), (moves, moves[-1:]), camera.depth_range)
        return replace(made, **change)

    make.moves, make.other = moves, other
    return make


def moved(camera, degrees=0.0, axis=(0, 0, 1), shift=(0, 0, 0)):
    """The camera turned about its own eye and shifted, both in its own space."""
    change = np.eye(4)
    angle = np.array(np.radians(degrees))
    change[:3, :3] = quaternion_to_matrix(axis_angle_to_quaternion(np.array(axis, float), angle))
    change[:3, 3] = shift
    return replace(camera, view=change @ camera.view)


def test_the_same_state_needs_no_sorting(key):
    assert needs_new_order(None, key())
    assert not needs_new_order(key(), key())
    assert not needs_new_order(key(), key(moves=key.moves.copy()))


def test_views_that_need_sorting(key, perspective):
    def asks(**change):
        return needs_new_order(key(), key(moved(perspective, **change)))

    for axis in [(1, 0, 0), (0, 1, 0)]:
        assert not asks(degrees=0.05, axis=axis)
        assert asks(degrees=0.11, axis=axis)
    assert not asks(degrees=80, axis=(0, 0, 1))  # roll
    assert not asks(shift=(5, -3, 0))
    assert not asks(shift=(0, 0, 1e-3))
    assert asks(shift=(0, 0, 0.01)) and asks(shift=(0, 0, -0.01))


def test_slow_turns_add_up(key, perspective):
    turned = [key(moved(perspective, degrees=0.03 * k, axis=(1, 0, 0))) for k in range(8)]
    assert [needs_new_order(turned[0], state) for state in turned] == [False] * 4 + [True] * 4


def test_moved_objects_need_sorting(key):
    for change, expected in [(1e-4, False), (1e-2, True)]:
        nearer = key.other.copy()
        nearer[1, 3] += change
        grown = key.other @ np.diag([1, 1 + change, 1, 1])
        for matrix in (nearer, grown):
            assert needs_new_order(key(), key(other=matrix)) == expected


def test_moved_bones_need_sorting(key):
    for at in [(4, 1, 3), (4, 1, 0)]:
        for factor, expected in [(0.3, False), (3, True)]:
            moves = key.moves.copy()
            moves[at] += factor * POSE_TOLERANCE * (3.0 if at[2] == 3 else 1.0)
            assert needs_new_order(key(), key(moves=moves)) == expected
    broken = key.moves.copy()
    broken[4, 1, 1] = np.nan
    assert needs_new_order(key(), key(moves=broken)) and needs_new_order(key(moves=broken), key())
    assert not needs_new_order(key(moves=broken), key(moves=broken.copy()))


def test_other_splats_bones_or_clipping_need_sorting(key):
    assert needs_new_order(key(), key(items=(1, 3)))
    assert needs_new_order(key(), key(moves=key.moves[1:]))
    assert needs_new_order(key(), key(depth_range=(0.2, 100.0)))
    assert needs_new_order(key(), key(depth_range=(0.1, np.inf)))
    assert not needs_new_order(key(depth_range=(0.1, np.inf)), key(depth_range=(0.1, np.inf)))


def test_what_is_not_sorted_again_lies_in_order_within_the_tolerance(key, perspective, rng):
    local = rng.uniform(-1, 1, (2000, 3)).astype(np.float32)  # within radius 3 = the key's, in fact sqrt 3
    skin = random_skin(rng, 2000, 3)
    before, answers = key(), []

    def depths(state):
        return posed_view_depths(local, skin.indices, skin.weights, state.moves[0], state.rows[0])

    for size in 10 ** rng.uniform(-6, -1, 60):
        moves = (key.moves + size * rng.normal(size=key.moves.shape) * [[[1, 1, 1, 0]]]).astype(np.float32)
        camera = moved(perspective, 30 * size, rng.normal(size=3), 10 * size * rng.normal(size=3))
        after = key(camera, moves=moves)
        answers.append(needs_new_order(before, after))
        if not answers[-1]:
            order = back_to_front(depths(before))
            backwards = np.diff(depths(after)[order]).max()
            assert backwards <= 2 * 3.0 * (VIEW_TOLERANCE * np.abs(depths(after) - 5).max() + POSE_TOLERANCE)
    assert 10 < sum(answers) < 50


def test_a_broken_bone_does_not_reach_splats_without_weight_there(rng, perspective):
    points = rng.normal(size=(50, 3)).astype(np.float32)
    row = depth_row(perspective, np.eye(4), np.zeros(3))
    moves = rng.normal(scale=0.1, size=(3, 3, 4)).astype(np.float32)
    moves[2] = 0
    indices, weights = np.tile([1, 0], (50, 1)), np.tile(np.float32([1, 0]), (50, 1))
    whole = posed_view_depths(points, indices, weights, moves, row)
    moves[0, 1, 1] = np.nan
    np.testing.assert_array_equal(posed_view_depths(points, indices, weights, moves, row), whole)
