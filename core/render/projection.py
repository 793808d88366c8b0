"""Gaussians as ellipses on the screen: EWA splatting (Zwicker et al. 2002) as 3DGS uses it (Kerbl et al.
2023), for numpy. The viewport's shader follows the same equations and takes the constants from here.

With a splat's centre (x, y, z) in view space, w = -z its depth, P the projection and sx = P00 width / 2,
sy = P11 height / 2, the screen position changes with the place in view space by

    J = [[sx / w, 0, sx tx / w], [0, sy / w, sy ty / w]],  t = (x / w, y / w)        (perspective)
    J = [[sx, 0, 0], [0, sy, 0]]                                                     (orthographic)

where t is limited a little outside the frustum. The ellipse's covariance in pixels is M M^T + LOW_PASS I
with the rows m1, m2 of M = J V O Q diag(s) (V view, O object, Q diag(s) the splat's axes). Its determinant is
|m1 x m2|^2 + LOW_PASS (|m1|^2 + |m2|^2) + LOW_PASS^2, a sum of positive terms: the product of the diagonal
less the square of the other entry would leave no digit to needle-like splats in single precision.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..cloud import GaussianCloud
from ..deform.sh import sh_basis
from ..deform.svd3 import polar_rotation
from ..rotations import quaternion_to_matrix
from .camera import Camera

F64 = NDArray[np.float64]

# Variance, px^2, added along both axes: a pixel is no point. 0.3 as in 3DGS (the filter of EWA would be 1).
LOW_PASS = 0.3
# What changes no step of an 8-bit picture is not drawn; as in 3DGS. Also where a splat's quad ends.
ALPHA_CUT = 1 / 255
# J is taken no farther from the axis than this times the frustum, beyond which the linearised projection
# smears splats over the picture; 1.3 as in 3DGS.
EDGE = 1.3


@dataclass(frozen=True, eq=False)
class ScreenSplats:
    """The M splats of a cloud that are drawn, in the cloud's order; pixels from the bottom left corner.

    index : (M,) row in the cloud
    centre : (M, 2) px
    e1 : (M, 2) unit, direction of the long axis
    sigma : (M, 2) standard deviations along e1 and e2, px, the larger first
    half_extent : (M, 2) half sides of the quad along e1 and e2, px, beyond which nothing is drawn
    depth : (M,) distance of the centre along the view axis, metres
    colour : (M, 3) display (sRGB) values >= 0, as the coefficients give them
    opacity : (M,) alpha at the centre
    """

    index: NDArray[np.intp]
    centre: F64
    e1: F64
    sigma: F64
    half_extent: F64
    depth: F64
    colour: F64
    opacity: F64

    def __len__(self) -> int:
        return len(self.index)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.integer]) -> ScreenSplats:
        """Return the given rows (mask (M,) or indices)."""
        return replace(self, **{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})

    @property
    def e2(self) -> F64:
        """Direction of the short axis (M, 2), a quarter turn to the left of e1."""
        return np.stack([-self.e1[:, 1], self.e1[:, 0]], axis=1)


def project(cloud: GaussianCloud, camera: Camera, matrix: F64 | None = None) -> ScreenSplats:
    """Return the screen ellipses and colours of the splats that a camera can see.

    Left out are splats whose centre lies before the near or behind the far plane, whose opacity is below
    ALPHA_CUT, or that hold a value that is not finite. Splats beside the picture are kept.

    Parameters
    ----------
    cloud : posed splats in object space
    camera : the camera
    matrix : (4, 4) object -> world, any affine map; None for the identity. Colours turn by the rotation
        nearest to it.
    """
    world = np.eye(4) if matrix is None else np.asarray(matrix, dtype=np.float64)
    model = camera.view @ world
    with np.errstate(all="ignore"):
        points = cloud.positions.astype(np.float64) @ model[:3, :3].T + model[:3, 3]
        centre, depth, inside = _place(points, camera)
        rows = np.flatnonzero(inside & (cloud.opacities >= ALPHA_CUT))
        shapes = quaternion_to_matrix(cloud.rotations[rows].astype(np.float64))
        shapes *= cloud.scales[rows, None, :]
        e1, sigma = ellipses(screen_jacobians(points[rows], camera) @ model[:3, :3] @ shapes)
        turn = polar_rotation(world[None, :3, :3])[0]
        colour = colours(cloud.sh[rows], view_directions(points[rows], camera) @ turn)
    opacity = cloud.opacities[rows].astype(np.float64)
    reach = np.sqrt(2 * np.log(np.maximum(opacity / ALPHA_CUT, 1)))
    extent = np.minimum(reach[:, None] * sigma, np.hypot(camera.width, camera.height))
    whole = np.isfinite(np.concatenate([e1, sigma, colour, opacity[:, None]], axis=1)).all(axis=1)
    splats = ScreenSplats(rows, centre[rows], e1, sigma, extent, depth[rows], colour, opacity)
    return splats.take(whole)


def _place(points: F64, camera: Camera) -> tuple[F64, F64, NDArray[np.bool_]]:
    """Return pixels (N, 2), depths (N,) and whether they lie between near and far, of view-space points."""
    clip = points @ camera.projection[:, :3].T + camera.projection[:, 3]
    ndc = clip[:, :3] / clip[:, 3:]
    size = np.array([camera.width, camera.height])
    inside = (np.abs(ndc[:, 2]) <= 1) & (clip[:, 3] > 0) & np.isfinite(ndc).all(axis=1)
    return (ndc[:, :2] + 1) * size / 2, -points[:, 2], inside


def screen_jacobians(points: F64, camera: Camera) -> F64:
    """Return J (N, 2, 3), pixels per metre, at view-space ``points`` (N, 3) in front of the camera."""
    focal = np.diag(camera.projection)[:2]  # P00, P11
    pixels = focal * (camera.width, camera.height) / 2
    jacobians = np.zeros((len(points), 2, 3))
    depth = -points[:, 2, None] if camera.is_perspective else np.ones((len(points), 1))
    jacobians[:, (0, 1), (0, 1)] = pixels / depth
    if camera.is_perspective:
        middle = camera.projection[:2, 2] / focal
        reach = EDGE / np.abs(focal)
        slopes = np.clip(points[:, :2] / depth, middle - reach, middle + reach)
        jacobians[:, :, 2] = pixels * slopes / depth
    return jacobians


def ellipses(shapes: F64) -> tuple[F64, F64]:
    """Return the axes of covariances M M^T + LOW_PASS I: e1 (N, 2) and deviations (N, 2), the larger first.

    Parameters
    ----------
    shapes : (N, 2, 3) M, pixels
    """
    m1, m2 = shapes[:, 0], shapes[:, 1]
    a, c = (m1**2).sum(axis=1), (m2**2).sum(axis=1)
    b = (m1 * m2).sum(axis=1)
    determinant = (np.cross(m1, m2) ** 2).sum(axis=1) + LOW_PASS * (a + c) + LOW_PASS**2
    half = (a - c) / 2
    spread = np.hypot(half, b)
    larger = (a + c) / 2 + LOW_PASS + spread
    # Of the two ways to write the eigenvector the one that adds magnitudes of one sign.
    long = np.abs(half) + spread
    axis = np.where(half[:, None] >= 0, np.stack([long, b], axis=1), np.stack([b, long], axis=1))
    length = np.hypot(axis[:, 0], axis[:, 1])[:, None]
    e1 = np.where(length > 0, axis / np.where(length > 0, length, 1), (1.0, 0.0))
    return e1, np.sqrt(np.stack([larger, determinant / larger], axis=1))


def view_directions(points: F64, camera: Camera) -> F64:
    """Return unit directions (N, 3) in the world from the eye to view-space ``points`` (N, 3).

    All are the view axis in orthographic cameras.
    """
    if not camera.is_perspective:
        return np.broadcast_to(camera.forward, points.shape)
    rays = points @ np.linalg.inv(camera.view[:3, :3]).T
    return rays / np.linalg.norm(rays, axis=1, keepdims=True)


def colours(sh: NDArray[np.floating], directions: F64) -> F64:
    """Return display colours (N, 3) >= 0 of coefficients (N, (degree + 1)^2, 3) seen along ``directions``."""
    basis = sh_basis(directions, round(sh.shape[1] ** 0.5) - 1)
    return np.maximum(0.5 + np.einsum("nb,nbc->nc", basis, sh.astype(np.float64)), 0)


def srgb_to_linear(colour: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return scene-linear values of sRGB ``colour`` >= 0, any shape (IEC 61966-2-1; above 1 by the curve)."""
    return np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
