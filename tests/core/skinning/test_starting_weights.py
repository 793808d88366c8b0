"""Weights for armatures that bring none: envelopes, bone heat, bound proxy meshes."""

import numpy as np
import pytest

from gaussianimate.core.errors import RigError
from gaussianimate.core.skinning.bone_heat import bone_distances, heat_weights
from gaussianimate.core.skinning.envelopes import envelope_weights
from gaussianimate.core.skinning.proxy_weights import closest_on_mesh, transfer_weights
from gaussianimate.core.skinning.skin import make_skin

HEADS = np.array([[0.0, 0, 0], [0, 0, 1], [0, 0, 2]])
TAILS = np.array([[0.0, 0, 1], [0, 0, 2], [0, 0, 3]])


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def tube(rng, count=6000, radius=0.25):
    angle, z = rng.uniform(0, 2 * np.pi, count), rng.uniform(0, 3, count)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), z], axis=1)


def dense(indices, weights, bones):
    full = np.zeros((len(indices), bones))
    np.add.at(full, (np.arange(len(indices))[:, None], indices), weights)
    return full


# -- envelopes ---------------------------------------------------------------------------------------


def test_envelopes_by_hand():
    points = np.array([[0.05, 0, 0.5], [0.2, 0, 0], [0.3, 0, 1], [0, 0, -0.25], [5, 0, 0], [0, 0.35, 0.5]])
    weights, gradients = envelope_weights(points, HEADS[:1], TAILS[:1], [0.1], [0.2], [0.4], [0.8])
    beyond = np.array([0, 0.1, 0.1, 0.15, 1, 0.2]) / 0.4
    np.testing.assert_allclose(weights[:, 0], 0.8 * (1 - np.minimum(beyond, 1) ** 2), atol=1e-12)
    assert not gradients[0].any() and not gradients[4].any()


def test_envelopes_are_those_of_blender(rng):
    import bpy

    armature = bpy.data.armatures.new("Envelopes")
    made = bpy.data.objects.new("Envelopes", armature)
    bpy.context.scene.collection.objects.link(made)
    bpy.context.view_layer.objects.active = made
    bpy.ops.object.mode_set(mode="EDIT")
    bone = armature.edit_bones.new("Bone")
    bone.head, bone.tail = (0.1, -0.2, 0.3), (0.5, 0.4, 1.2)
    bone.head_radius, bone.tail_radius, bone.envelope_distance, bone.envelope_weight = 0.1, 0.25, 0.5, 1
    bpy.ops.object.mode_set(mode="OBJECT")
    points = rng.uniform(-1, 2, (300, 3))
    bone = armature.bones[0]
    truth = [bone.evaluate_envelope(p) for p in points]
    found = envelope_weights(
        points, [bone.head_local], [bone.tail_local], [bone.head_radius], [bone.tail_radius],
        [bone.envelope_distance], [bone.envelope_weight],
    )[0][:, 0]  # fmt: skip
    bpy.data.objects.remove(made)
    bpy.data.armatures.remove(armature)
    assert 0.1 < (found > 0).mean() < 0.9
    np.testing.assert_allclose(found, truth, atol=1e-5)


def test_envelope_gradients(rng):
    points, h = rng.uniform((-0.7, -0.7, -0.5), (0.7, 0.7, 3.5), (4000, 3)), 1e-6
    shape = (HEADS, TAILS, [0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.5, 0.4, 0], [1, 0.5, 1])
    _, gradients = envelope_weights(points, *shape)
    found = np.stack(
        [
            (envelope_weights(points + e, *shape)[0] - envelope_weights(points - e, *shape)[0]) / (2 * h)
            for e in h * np.eye(3)
        ],
        axis=-1,
    )
    assert (np.abs(gradients) > 0.1).any(axis=(1, 2)).mean() > 0.05
    assert (np.abs(found - gradients).max(axis=(1, 2)) > 1e-6).mean() < 0.01


# -- bone heat ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [20_000, 1500])
def test_heat_on_a_tube(rng, samples):
    """Smooth, monotone along the bones, half and half at the joints; hardly different on a sample."""
    p = tube(rng)
    weights = dense(*heat_weights(p, HEADS, TAILS, samples=samples), 3)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)
    assert weights.min() >= 0
    middle = np.abs(p[:, 2] - 0.3) < 0.1
    assert weights[middle, 0].min() > 0.8
    joint = np.abs(p[:, 2] - 1) < 0.05
    np.testing.assert_allclose(weights[joint, 0].mean(), 0.5, atol=0.05)
    assert weights[p[:, 2] < 0.5, 2].max() < 0.02
    order = np.argsort(p[:, 2])
    smoothed = np.convolve(weights[order, 0], np.full(300, 1 / 300), "valid")
    assert (np.diff(smoothed[::150]) < 0.01).all()
    assert (np.ptp(p[(weights[:, 0] > 0.1) & (weights[:, 0] < 0.9), 2])) > 0.2, "joints are soft"


def test_heat_is_that_of_its_equation(rng):
    """On a flat strip with a straight border between bones the balance is a hyperbolic cosine."""
    x, y = np.meshgrid(np.linspace(-1, 1, 161), np.linspace(-0.1, 0.1, 17))
    p = np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1)
    heads = np.array([[-9.0, 0, 0.4], [0, 0, 0.4]])  # above the strip, so that H is about 1/0.4^2
    tails = np.array([[0.0, 0, 0.4], [9, 0, 0.4]])
    weights = dense(*heat_weights(p, heads, tails), 2)
    half = 0.5 * np.cosh((1 - np.abs(p[:, 0])) / 0.404) / np.cosh(1 / 0.404)
    expected = np.where(p[:, 0] < 0, 1 - half, half)
    assert np.abs(weights[:, 0] - expected).max() < 0.01


def test_heat_where_there_is_little(rng):
    for p in (np.zeros((1, 3)), np.zeros((5, 3)), rng.random((2, 3)), HEADS):
        indices, weights = heat_weights(p, HEADS, TAILS)
        assert indices.shape == weights.shape == (len(p), 3)
        assert np.isfinite(weights).all()
    assert heat_weights(np.zeros((0, 3)), HEADS, TAILS)[0].shape[0] == 0
    with pytest.raises(RigError, match="no bones"):
        heat_weights(np.zeros((1, 3)), np.zeros((0, 3)), np.zeros((0, 3)))


def test_heat_makes_a_skin(rng):
    p = tube(rng, 2000)
    indices, weights = heat_weights(p, HEADS, TAILS, influences=2)
    skin = make_skin(p, indices, weights, bone_count=3)
    assert skin.influences == 2 and np.abs(skin.gradients.sum(axis=1)).max() < 1e-5
    assert np.abs(skin.gradients).max() > 0.5


def test_distances_to_bones():
    found = bone_distances(np.array([[0.5, 0, 0.5], [0, 0, 4]]), HEADS, TAILS)
    np.testing.assert_allclose(found, [[0.5, np.sqrt(0.5), np.hypot(0.5, 1.5)], [3, 2, 1]])


# -- proxy meshes ------------------------------------------------------------------------------------


@pytest.fixture
def mesh(rng):
    """A sphere of triangles of very different sizes."""
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=2)
    ball = ball.subdivide(np.flatnonzero(ball.triangles_center[:, 0] > 0.3))
    return ball.subdivide(np.flatnonzero(ball.triangles_center[:, 0] > 0.6))


def test_closest_places_against_all_triangles(rng, mesh):
    from trimesh.triangles import closest_point

    points = np.concatenate([rng.normal(size=(300, 3)), mesh.vertices[:20], mesh.triangles_center[:20]])
    which, place, distance = closest_on_mesh(points, mesh.vertices, mesh.faces)
    for k, point in enumerate(points):
        every = closest_point(mesh.triangles, np.tile(point, (len(mesh.faces), 1)))
        truth = np.linalg.norm(every - point, axis=1).min()
        assert abs(distance[k] - truth) < 1e-9
    there = np.einsum("nc,nci->ni", place, mesh.triangles[which])
    np.testing.assert_allclose(np.linalg.norm(there - points, axis=1), distance, atol=1e-9)
    assert place.min() >= 0
    np.testing.assert_allclose(place.sum(axis=1), 1)


def test_transferred_weights_are_interpolated(rng, mesh):
    """Weights linear in space are found again on the surface."""
    share = 0.5 + 0.4 * mesh.vertices[:, 0]
    weights = np.stack([share, 1 - share, np.zeros_like(share)], axis=1)
    points = np.einsum(
        "nc,nci->ni", rng.dirichlet(np.ones(3), 500), mesh.triangles[rng.integers(0, 300, 500)]
    )
    found = dense(*transfer_weights(points, mesh.vertices, mesh.faces, weights), 3)
    np.testing.assert_allclose(found[:, 0], 0.5 + 0.4 * points[:, 0], atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_meshes_that_cannot_be_used(mesh):
    with pytest.raises(RigError, match="no faces"):
        transfer_weights(np.zeros((1, 3)), mesh.vertices, mesh.faces[:0], np.ones((len(mesh.vertices), 1)))
    with pytest.raises(RigError, match="weights for 1"):
        transfer_weights(np.zeros((1, 3)), mesh.vertices, mesh.faces, np.ones((1, 1)))
