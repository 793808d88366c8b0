import numpy as np
import pytest

from gaussianimate.core.capture import Capture
from gaussianimate.core.errors import CaptureError
from gaussianimate.core.formats.point_splats import points_to_splats


def trajectory(points, frames=3, valid=None):
    positions = np.stack([points + [0, 0, f] for f in range(frames)]).astype(np.float32)
    return Capture("dots", positions, np.ones(frames, bool) if valid is None else np.array(valid))


def test_splats_reach_halfway_to_their_neighbours():
    grid = np.stack(np.meshgrid(*[np.arange(5.0)] * 3), -1).reshape(-1, 3)
    capture = points_to_splats(trajectory(grid))
    cloud = capture.load_cloud(2)
    assert np.allclose(cloud.scales, 0.5 * np.ones(3), atol=0.16) and np.ptp(cloud.scales, axis=1).max() == 0
    assert np.array_equal(cloud.positions, capture.positions[2])
    assert (cloud.opacities == 1).all()
    assert "no surface" in capture.notes[-1]


def test_coincident_and_single_points_get_a_size():
    for points in (np.zeros((1, 3)), np.repeat(np.eye(3), 5, axis=0)):
        scales = points_to_splats(trajectory(points)).load_cloud(0).scales
        assert np.isfinite(scales).all() and (scales > 0).all()


def test_empty_frames_stay_empty():
    capture = points_to_splats(trajectory(np.eye(3), valid=[False, True, True]))
    assert len(capture.load_cloud(1)) == 3
    with pytest.raises(CaptureError, match="frame 0 is empty"):
        capture.load_cloud(0)
    with pytest.raises(CaptureError, match="all frames are empty"):
        points_to_splats(trajectory(np.eye(3), valid=[False] * 3))
