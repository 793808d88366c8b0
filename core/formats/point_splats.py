"""A bare trajectory (points without surface or splats) to a capture of Gaussian splats."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..capture import Capture
from ..cloud import GaussianCloud
from ..errors import CaptureError, MissingDependencyError
from .points import sh_from_colors

NEIGHBOURS = 3
GREY = 0.5


def points_to_splats(capture: Capture) -> Capture:
    """Make every point of a trajectory a round splat that reaches to its neighbours.

    The standard deviation is half the root mean square distance to the three nearest points of the first
    valid frame, the start 3D Gaussian splatting gives to a point cloud (Kerbl et al. 2023), halved as these
    splats are opaque.

    Parameters
    ----------
    capture : without `load_cloud`; its `colors` are used, else grey

    Raises
    ------
    CaptureError : no valid frame
    MissingDependencyError : scipy is not installed
    """
    if not capture.frame_valid.any():
        raise CaptureError(f"{capture.name}: all frames are empty")
    rest = capture.positions[int(np.argmax(capture.frame_valid))]
    count = len(rest)
    colors = np.full((count, 3), GREY, np.float32) if capture.colors is None else capture.colors
    loader = _Loader(
        capture.name, capture.positions, capture.frame_valid, _radii(rest), sh_from_colors(colors)
    )
    notes = (f"The capture has no surface: its {count:,} points are shown as round splats.",)
    return replace(capture, load_cloud=loader, colors=None, notes=(*capture.notes, *notes))


@dataclass(frozen=True)
class _Loader:
    """Makes the cloud of a frame; the `load_cloud` of the new capture."""

    name: str
    positions: NDArray[np.float32]  # (F, N, 3)
    frame_valid: NDArray[np.bool_]  # (F,)
    radii: NDArray[np.float32]  # (N,)
    sh: NDArray[np.float32]  # (N, 1, 3)

    def __call__(self, frame: int) -> GaussianCloud:
        """Return the splats of a valid frame."""
        if not self.frame_valid[frame]:
            raise CaptureError(f"{self.name}: frame {frame} is empty")
        count = len(self.radii)
        upright = np.zeros((count, 4), np.float32)
        upright[:, 0] = 1
        scales = np.repeat(self.radii[:, None], 3, axis=1)
        return GaussianCloud(self.positions[frame], upright, scales, np.ones(count, np.float32), self.sh)


def _radii(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a standard deviation for each point (N,), metres, never 0."""
    try:
        from scipy.spatial import KDTree
    except ImportError as error:
        raise MissingDependencyError(
            "Showing bare points as splats needs scipy; install it with `pip install scipy`"
        ) from error
    size = float(np.linalg.norm(np.ptp(points.astype(np.float64), axis=0))) or 1.0
    neighbours = min(NEIGHBOURS, len(points) - 1)
    if neighbours < 1:
        return np.full(len(points), 0.01 * size, np.float32)
    distances = KDTree(points).query(points, neighbours + 1)[0][:, 1:]
    radii = 0.5 * np.sqrt((distances**2).mean(axis=1))
    # Points on top of each other would vanish, lone ones cover the rest.
    return np.clip(radii, 1e-4 * size, 0.05 * size).astype(np.float32)
