"""Clouds and cameras that pictures are taken of and with."""

from __future__ import annotations

import numpy as np
import pytest

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.deform.sh import SH_C0
from gaussianimate.core.render.camera import Camera
from gaussianimate.core.rotations import axis_angle_to_quaternion, normalize_quaternions, quaternion_to_matrix


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.fixture
def splat():
    """Makes a cloud of one splat, grey unless told otherwise."""

    def make(position=(0, 0, 0), scale=(0.1, 0.1, 0.1), rotation=(1, 0, 0, 0), opacity=0.8, colour=0.5):
        sh = (np.broadcast_to(colour, 3) - 0.5) / SH_C0
        arrays = ([position], [rotation], [np.broadcast_to(scale, 3)], [opacity], [[sh]])
        return GaussianCloud(*(np.array(array, dtype=np.float64) for array in arrays))

    return make


@pytest.fixture
def random_cloud(rng):
    """Makes a cloud of splats of all shapes and view-dependent colours about the origin."""

    def make(count, degree=3, size=0.15, ratio=10.0):
        return GaussianCloud(
            rng.normal(size=(count, 3)),
            normalize_quaternions(rng.normal(size=(count, 4))),
            size * ratio ** rng.uniform(-1, 0, (count, 3)),
            rng.uniform(0, 1, count),
            0.4 * rng.normal(size=(count, (degree + 1) ** 2, 3)),
        )

    return make


@pytest.fixture
def perspective():
    """At (0, -5, 0), looking along y with z up; the picture's middle is the middle of pixel (32, 24)."""
    return Camera.perspective((0, -5, 0), (0, 0, 0), (0, 0, 1), 0.8, 65, 49, 0.1, 100)


@pytest.fixture
def orthographic():
    """As `perspective`; 4 m high."""
    return Camera.orthographic((0, -5, 0), (0, 0, 0), (0, 0, 1), 4.0, 65, 49, 0.1, 100)


@pytest.fixture
def motion():
    """A turn and a shift of the world, (4, 4)."""
    matrix = np.eye(4)
    matrix[:3, :3] = quaternion_to_matrix(axis_angle_to_quaternion(np.array([1.0, -2, 0.5]), np.array(2.1)))
    matrix[:3, 3] = 3, -1, 7
    return matrix
