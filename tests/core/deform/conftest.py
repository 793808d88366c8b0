"""Analytic weight fields, random rigs and random clouds."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.rotations import axis_angle_to_quaternion, normalize_quaternions, quaternion_to_matrix
from gaussianimate.core.skinning.skin import Skin
from gaussianimate.core.skinning.weights import normalize


@pytest.fixture
def rng():
    return np.random.default_rng(7)


class BumpField:
    """M smooth, unnormalised weights a_j exp(-|p - c_j|^2 / 2 s_j^2) with their gradients."""

    def __init__(self, rng, count: int) -> None:
        self.centres = rng.normal(size=(count, 3))
        self.widths, self.heights = rng.uniform(0.8, 1.6, count), rng.uniform(0.4, 1, count)

    def weights(self, p):
        offset = p[:, None] - self.centres
        return self.heights * np.exp(-0.5 * (offset**2).sum(-1) / self.widths**2)

    def gradients(self, p):
        offset = p[:, None] - self.centres
        return -self.weights(p)[..., None] * offset / self.widths[:, None] ** 2

    def skin(self, p, dtype=np.float64) -> Skin:
        weights, gradients = normalize(self.weights(p), self.gradients(p))
        indices = np.broadcast_to(np.arange(len(self.centres), dtype=np.int32), weights.shape)
        return Skin(indices, weights.astype(dtype), gradients.astype(dtype))


def random_rotations(rng, count: int, angle: float | None = None):
    if angle is None:
        return quaternion_to_matrix(normalize_quaternions(rng.normal(size=(count, 4))))
    turns = axis_angle_to_quaternion(rng.normal(size=(count, 3)), rng.uniform(-angle, angle, count))
    return quaternion_to_matrix(turns)


def random_transforms(rng, count: int, angle: float = 2.0, reach: float = 1.0):
    offsets = reach * rng.normal(size=(count, 3, 1))
    return np.concatenate([random_rotations(rng, count, angle), offsets], axis=-1)


def random_cloud(rng, count: int, degree: int = 3, dtype=np.float64, ratio: float = 10.0) -> GaussianCloud:
    return GaussianCloud(
        rng.normal(size=(count, 3)).astype(dtype),
        normalize_quaternions(rng.normal(size=(count, 4))).astype(dtype),
        (0.1 * ratio ** rng.uniform(-1, 0, (count, 3))).astype(dtype),
        rng.random(count).astype(dtype),
        rng.normal(size=(count, (degree + 1) ** 2, 3)).astype(dtype),
    )


def covariance(rotations, scales):
    axes = quaternion_to_matrix(rotations.astype(np.float64)) * scales[:, None, :].astype(np.float64)
    return axes @ axes.swapaxes(1, 2)


def finite_differences(function, p, step=1e-3):
    """Jacobian (N, 3, 3) of a point map by differences of fourth order."""
    columns = []
    for axis in np.eye(3) * step:
        f = [function(p + k * axis) for k in (-2, -1, 1, 2)]
        columns.append((f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * step))
    return np.stack(columns, axis=-1)


@pytest.fixture
def make():
    return SimpleNamespace(
        field=BumpField,
        rotations=random_rotations,
        transforms=random_transforms,
        cloud=random_cloud,
        covariance=covariance,
        finite_differences=finite_differences,
    )
