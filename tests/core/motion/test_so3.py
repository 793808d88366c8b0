"""Rotations: metric, logarithm, means."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from gaussianimate.core.motion.geodesic import squared_angles
from gaussianimate.core.motion.se3_mean import rotation_mean
from gaussianimate.core.motion.so3 import (
    geodesic_distance,
    geodesic_step,
    quaternion_exp,
    quaternion_log,
)
from gaussianimate.core.rotations import normalize_quaternions, quaternion_multiply


def random(count, seed=0):
    return normalize_quaternions(np.random.default_rng(seed).normal(size=(count, 4)))


def scipy_rotation(q):
    return Rotation.from_quat(q, scalar_first=True)


def exact(a, b):
    return np.sqrt(squared_angles(a, b))


@pytest.mark.parametrize("distance", [geodesic_distance, exact])
def test_the_distance_is_a_bi_invariant_metric(distance):
    a, b, c = random(500, 1), random(500, 2), random(500, 3)
    d = distance(a, b)
    assert np.allclose(d, (scipy_rotation(a).inv() * scipy_rotation(b)).magnitude(), atol=1e-12)
    assert np.abs(d - distance(b, a)).max() < 1e-12
    assert (distance(a, c) <= d + distance(b, c) + 1e-12).all()
    left = distance(quaternion_multiply(c, a), quaternion_multiply(c, b))
    right = distance(quaternion_multiply(a, c), quaternion_multiply(b, c))
    assert np.abs(left - d).max() < 1e-12 and np.abs(right - d).max() < 1e-12
    assert distance(a, -a).max() < 1e-15 and distance(a, a).max() < 1e-15
    assert 0 <= d.min() and d.max() <= np.pi + 1e-12


@pytest.mark.parametrize("distance", [geodesic_distance, exact])
def test_a_tenth_of_a_microradian_is_resolved(distance):
    a = random(200)
    turn = quaternion_exp(1e-7 * np.array([1.0, 1, 1]))
    assert np.allclose(distance(a, quaternion_multiply(a, turn)), np.sqrt(3) * 1e-7, rtol=1e-6)


def test_logarithm_and_exponential_invert_each_other():
    vectors = np.random.default_rng(0).normal(size=(500, 3))
    vectors *= np.minimum(1, 3.1 / np.linalg.norm(vectors, axis=1, keepdims=True))
    vectors[:3] = [[0, 0, 0], [1e-13, 0, 0], [0, 1e-6, 0]]
    assert np.allclose(quaternion_log(quaternion_exp(vectors)), vectors, rtol=1e-9, atol=1e-15)
    assert np.allclose(quaternion_log(-quaternion_exp(vectors)), vectors, rtol=1e-9, atol=1e-15)
    assert np.allclose(quaternion_exp(vectors), scipy_rotation_vector(vectors), atol=1e-12)


def scipy_rotation_vector(vectors):
    return Rotation.from_rotvec(vectors).as_quat(canonical=True, scalar_first=True)


def test_a_step_goes_its_share_of_the_way():
    a, b = random(100, 1), random(100, 2)
    for share in (0.0, 0.25, 1.0):
        assert np.allclose(
            geodesic_distance(a, geodesic_step(a, b, share)), share * geodesic_distance(a, b), atol=1e-7
        )


def test_the_mean_is_that_of_least_squared_angles():
    rng = np.random.default_rng(4)
    q = quaternion_multiply(random(50)[:, None], quaternion_exp(0.5 * rng.normal(size=(50, 6, 3))))
    w = rng.dirichlet(np.ones(6), 50)
    mean = rotation_mean(q, w, steps=20)
    tangent = quaternion_log(quaternion_multiply(mean[:, None] * [1, -1, -1, -1], q))
    assert np.abs(np.einsum("qn,qna->qa", w, tangent)).max() < 1e-6  # the gradient vanishes
    assert np.degrees(geodesic_distance(mean, rotation_mean(q, w)).max()) < 0.5
    signs = np.where(rng.random((50, 6, 1)) < 0.5, -1, 1)
    assert geodesic_distance(mean, rotation_mean(signs * q, w, steps=20)).max() < 1e-12


def test_a_mean_that_does_not_exist_is_the_heaviest_sample():
    turns = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0]])  # half a turn apart, as good as equally heavy
    mean = rotation_mean(turns, np.array([0.5 - 1e-9, 0.5 + 1e-9]), steps=0)
    assert np.allclose(np.abs(mean), [0, 1, 0, 0])
    assert np.allclose(rotation_mean(turns[:1], np.ones(1)), [1, 0, 0, 0])
