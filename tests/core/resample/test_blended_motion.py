"""Second derivatives of blended bones."""

import numpy as np
import pytest

from gaussianimate.core.deform.deform import jacobians
from gaussianimate.core.resample.blended_motion import Bones, LocalMotion, moved, quadratic_forms
from gaussianimate.core.rotations import affine_multiply


def motion(field, points, pose):
    """Return the motion, gradients and Hessians at points, bones in order of weight."""
    w, g, h = field.derivatives(points)
    order = np.argsort(-w, axis=1)
    w, g = np.take_along_axis(w, order, 1), np.take_along_axis(g, order[..., None], 1)
    h = np.take_along_axis(h, order[..., None, None], 1)
    bones = Bones.of(pose, np.array([0.3, -0.2, 0.1]))
    return LocalMotion.at(bones, points, order, w), w, g, h


@pytest.mark.parametrize("bones", [2, 3, 4])
def test_forms_are_the_second_derivatives(rng, make, bones):
    field, pose = make.Bumps(rng, bones), make.pose(rng, bones)
    p, step = rng.normal(size=(100, 3)), 1e-5
    here, _, g, h = motion(field, p, pose)
    axes = np.broadcast_to(np.eye(3), (100, 3, 3))
    found = quadratic_forms(here, axes, g, h)  # [a, k, b]
    assert np.allclose(found, np.swapaxes(found, 1, 3), atol=1e-12)
    for a in range(3):
        shift = step * np.eye(3)[a]
        derivative = np.zeros((100, 3, 3))
        for factor, weight in ((-2, 1), (-1, -8), (1, 8), (2, -1)):
            there, w, slopes, _ = motion(field, p + factor * shift, pose)
            derivative += weight * there.jacobians(w, slopes) / (12 * step)  # d J_kb / d a
        assert np.abs(found[:, a] - derivative).max() < 1e-8 * np.abs(found).max()


def test_forms_scale_with_the_axes(rng, make):
    field, pose = make.Bumps(rng, 3), make.pose(rng, 3)
    p = rng.normal(size=(50, 3))
    here, _, g, h = motion(field, p, pose)
    plain = quadratic_forms(here, np.broadcast_to(np.eye(3), (50, 3, 3)), g, h)
    axes = rng.normal(size=(50, 3, 3))
    expected = np.einsum("nia,nikj,njb->nakb", axes, plain, axes)
    assert np.allclose(quadratic_forms(here, axes, g, h), expected)


def test_jacobians_are_those_of_the_deformer(rng, make):
    field, pose = make.Bumps(rng, 3), make.pose(rng, 3)
    p = rng.normal(size=(50, 3))
    here, w, g, _ = motion(field, p, pose)
    expected = jacobians(p, make.skin(field, p), pose)
    assert np.allclose(np.eye(3) + here.jacobians(w, g), expected, atol=1e-5)


def test_displacements_are_blended(rng, make):
    """Of the static bone too, and of some of the bones only."""
    pose, p = make.pose(rng, 5), rng.normal(size=(9000, 3))
    chosen, weights = np.array([-1, 0, 2, 3]), rng.dirichlet(np.ones(4), size=9000).T
    known = np.concatenate([pose, np.eye(3, 4)[None]])[chosen]
    expected = np.einsum("bn,bij,nj->ni", weights, known[..., :3], p) + weights.T @ known[..., 3]
    assert np.allclose(p + moved(Bones.of(pose, np.ones(3)), p, chosen, weights).T, expected)


def test_bones_that_move_alike_bend_nothing(rng, make):
    """Exactly so, even with gradients that do not sum to 0."""
    field = make.Bumps(rng, 3)
    pose = np.repeat(make.pose(rng, 1), 3, axis=0)
    here, _, g, h = motion(field, rng.normal(size=(50, 3)), pose)
    assert (quadratic_forms(here, np.broadcast_to(np.eye(3), (50, 3, 3)), g + 0.1, h + 0.1) == 0).all()


def test_a_rigid_motion_afterwards_keeps_the_sum_of_squares(rng, make):
    field, pose = make.Bumps(rng, 3), make.pose(rng, 3)
    after = make.pose(rng, 1, shift=5)
    p, axes = rng.normal(size=(50, 3)), rng.normal(size=(50, 3, 3))
    squares = []
    for transforms in (pose, affine_multiply(np.repeat(after, 3, axis=0), pose)):
        here, _, g, h = motion(field, p, transforms)
        forms = quadratic_forms(here, axes, g, h)
        squares.append(np.einsum("nakb,nckb->nac", forms, forms))
    assert np.allclose(*squares, rtol=1e-9, atol=1e-12)


def test_the_static_bone_stays():
    bones = Bones.of(np.full((2, 3, 4), 7.0), np.ones(3))
    still = moved(bones, np.ones((1, 3)), np.array([-1]), np.ones((1, 1)))
    assert (still == 0).all()


def test_kinds_are_the_same_for_bones_that_move_exactly_alike(rng, make):
    """The static bone, which comes last, too."""
    pose = make.pose(rng, 5)
    pose[3], pose[1] = pose[0], np.eye(3, 4)
    pose[4] = pose[2] + 1e-15
    kinds = Bones.of(pose, np.array([0.3, -0.2, 0.1])).kinds
    assert kinds[3] == kinds[0] and kinds[1] == kinds[-1]
    assert len(set(kinds.tolist())) == 4
