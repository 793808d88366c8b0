"""Compare clouds by what they show: positions, covariances, colours."""

import bpy
import numpy as np

from gaussianimate.core.rotations import quaternion_to_matrix
from gaussianimate.gaussianimate_addon.point_cloud import point_cloud_to_cloud


def covariances(cloud):
    axes = quaternion_to_matrix(cloud.rotations.astype(np.float64)) * cloud.scales[:, None].astype(np.float64)
    return axes @ np.swapaxes(axes, 1, 2)


def assert_same_splats(actual, expected, position=1e-4, covariance=1e-3, sh=1e-3):
    """Positions to ``position`` of the diagonal, covariances to ``covariance`` of their largest entry."""
    assert len(actual) == len(expected)
    diagonal = np.linalg.norm(np.ptp(expected.positions, axis=0))
    assert np.abs(actual.positions - expected.positions).max() <= position * diagonal
    want, have = covariances(expected), covariances(actual)
    assert (np.abs(have - want).max(axis=(1, 2)) <= covariance * np.abs(want).max(axis=(1, 2))).all()
    np.testing.assert_allclose(np.linalg.norm(actual.rotations, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(actual.opacities, expected.opacities)
    if sh is not None:
        np.testing.assert_allclose(actual.sh, expected.sh, atol=sh)


def assert_equal_bits(actual, expected):
    for name in expected.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name), err_msg=name)


def evaluated(object):
    """The splats as the modifiers leave them."""
    return point_cloud_to_cloud(object.evaluated_get(bpy.context.evaluated_depsgraph_get()).data)
