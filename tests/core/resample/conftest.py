"""Smooth weight fields, clouds and poses."""

from types import SimpleNamespace

import numpy as np
import pytest

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.rotations import axis_angle_to_quaternion, normalize_quaternions, quaternion_to_matrix
from gaussianimate.core.skinning.skin import Skin


class Bumps:
    """Normalised Gaussian bumps, one a bone; exact gradients and Hessians."""

    def __init__(self, rng, bones):
        self.centres = rng.normal(size=(bones, 3))
        self.widths = rng.uniform(0.5, 2.4, bones)
        self.heights = rng.uniform(0.4, 1, bones)

    def _plain(self, points):
        d = points[:, None] - self.centres
        w = self.heights * np.exp(-0.5 * (d**2).sum(axis=-1) / self.widths**2)
        g = -w[..., None] * d / self.widths[:, None] ** 2
        outer = d[..., :, None] * d[..., None, :] / self.widths[:, None, None] ** 4
        h = w[..., None, None] * (outer - np.eye(3) / self.widths[:, None, None] ** 2)
        return w, g, h

    def derivatives(self, points):
        """Return weights (P, B), gradients (P, B, 3) and Hessians (P, B, 3, 3), in the order of the bones."""
        w, g, h = self._plain(points)
        total = w.sum(axis=1, keepdims=True)
        share = w / total
        whole = g.sum(axis=1, keepdims=True)
        gradients = (g - share[..., None] * whole) / total[..., None]
        cross = gradients[..., :, None] * whole[..., None, :]
        hessians = h - share[..., None, None] * h.sum(axis=1, keepdims=True)
        hessians = (hessians - cross - np.swapaxes(cross, -1, -2)) / total[..., None, None]
        return share, gradients, hessians

    def __call__(self, points, rows):
        w, g, _ = self.derivatives(np.asarray(points, float))
        order = np.argsort(-w, axis=1, kind="stable")
        return (
            order.astype(np.int32),
            np.take_along_axis(w, order, 1),
            np.take_along_axis(g, order[..., None], 1),
        )


def skin_of(field, positions):
    indices, weights, gradients = field(positions.astype(float), np.arange(len(positions)))
    return Skin(indices, weights.astype(np.float32), gradients.astype(np.float32))


def random_cloud(rng, count, low=-2.2, high=-0.5, degree=0):
    f32 = np.float32
    return GaussianCloud(
        rng.normal(size=(count, 3)).astype(f32),
        normalize_quaternions(rng.normal(size=(count, 4))).astype(f32),
        (10 ** rng.uniform(low, high, (count, 3))).astype(f32),
        rng.uniform(0.1, 1, count).astype(f32),
        rng.normal(size=(count, (degree + 1) ** 2, 3)).astype(f32),
    )


def random_pose(rng, bones, angle=1.5, shift=0.7):
    turns = quaternion_to_matrix(
        axis_angle_to_quaternion(rng.normal(size=(bones, 3)), rng.uniform(-angle, angle, bones))
    )
    return np.concatenate([turns, shift * rng.normal(size=(bones, 3, 1))], axis=2)


@pytest.fixture
def rng():
    return np.random.default_rng(6)


@pytest.fixture
def make():
    return SimpleNamespace(Bumps=Bumps, skin=skin_of, cloud=random_cloud, pose=random_pose)
