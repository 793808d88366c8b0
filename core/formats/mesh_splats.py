"""A mesh capture to a capture of Gaussian splats that lie on its surface and move with it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..capture import Capture
from ..cloud import GaussianCloud
from ..errors import CaptureError
from ..progress import Progress, no_progress
from ..rotations import matrix_to_quaternion
from .mesh_texture import MeshTexture
from .points import sh_from_colors

Floats = NDArray[np.floating]

# In units of the sample spacing sqrt(area / count): wide enough to close the gaps between random samples,
# and a tenth of that through the surface.
WIDTH, THICKNESS = 0.75, 0.075
GREY = 0.5


def mesh_to_splats(
    capture: Capture,
    count: int,
    seed: int = 0,
    texture: MeshTexture | None = None,
    canonical_frame: int | None = None,
    samples: MeshSamples | None = None,
    progress: Progress = no_progress,
) -> Capture:
    """Cover the surface of a mesh capture with splats that follow its triangles in every frame.

    Splats are uniform over the area of the canonical frame (stratified; Osada et al. 2002, "Shape
    Distributions", within a triangle) and keep their barycentric coordinates. Each is an opaque disc in the
    plane of its triangle. In other frames its covariance is carried by the deformation gradient of the
    triangle, so that discs stretch with the surface and no gaps open (GaMeS, Waczynska et al. 2024; the
    gradient's singular vectors are the new axes).

    Parameters
    ----------
    capture : with `faces`; colours from `texture`, else its `colors`, else grey
    count : number of splats
    seed : of the random samples; the same seed gives the same splats
    texture : base colour over the same triangles
    canonical_frame : frame whose area counts, the first valid one by default
    samples : where the splats of another capture of the mesh lie (`mesh_samples`), to get the same ones;
        ``count`` and ``seed`` do not matter then
    progress : called with the stage and its fraction

    Raises
    ------
    CaptureError : the capture has no faces, no area, or no such frame; the texture or the samples are of
        another mesh
    """
    frame = _canonical(capture, canonical_frame)
    if count < 1:
        raise CaptureError(f"{capture.name}: {count} splats were asked for, at least 1 is needed")
    if capture.faces is None or not len(capture.faces):
        raise CaptureError(
            f"{capture.name}: the capture has no faces, so there is no surface to cover with splats"
        )
    if texture is not None and len(texture.uv) != len(capture.faces):
        raise CaptureError(
            f"{capture.name}: the texture is laid over {len(texture.uv):,} triangles, "
            f"the capture has {len(capture.faces):,}"
        )
    corners = capture.positions[frame][capture.faces].astype(np.float64)
    if samples is None:
        samples = _sample(corners, count, seed, capture)
    elif samples.faces != len(capture.faces):
        raise CaptureError(
            f"{capture.name} has {len(capture.faces):,} triangles and the mesh its splats are to be those of "
            f"{samples.faces:,}; choose a capture of the same mesh"
        )
    positions = _follow(capture, samples, progress)
    colors = _colors(capture, texture, samples)
    loader = _Loader(capture, samples, _rest_frames(corners), positions, sh_from_colors(colors))
    notes = (f"{len(samples.triangle):,} splats cover the {len(capture.faces):,} triangles of the mesh.",)
    return replace(
        capture,
        positions=positions,
        load_cloud=loader,
        faces=None,
        colors=None,
        notes=(*capture.notes, *notes),
    )


@dataclass(frozen=True)
class MeshSamples:
    """K points on the triangles of a mesh.

    triangle : (K,) int; barycentric : (K, 3) float32, weights of its corners
    spacing : mean distance of neighbours, metres; faces : number of triangles of the mesh
    """

    triangle: NDArray[np.integer]
    barycentric: NDArray[np.float32]
    spacing: float
    faces: int


def mesh_samples(capture: Capture) -> MeshSamples | None:
    """Where the splats of a capture that `mesh_to_splats` made lie on its mesh; None for any other."""
    return capture.load_cloud.samples if isinstance(capture.load_cloud, _Loader) else None


@dataclass(frozen=True)
class _Loader:
    """Makes the cloud of a frame; the `load_cloud` of the new capture."""

    mesh: Capture
    samples: MeshSamples
    rest: Floats  # (M, 2, 2), inverse of the rest edges in the triangle's plane
    positions: NDArray[np.float32]  # (F, K, 3)
    sh: NDArray[np.float32]  # (K, 1, 3)

    def __call__(self, frame: int) -> GaussianCloud:
        """Return the splats of a valid frame."""
        if not self.mesh.frame_valid[frame]:
            raise CaptureError(f"{self.mesh.name}: frame {frame} is empty")
        assert self.mesh.faces is not None
        corners = self.mesh.positions[frame][self.mesh.faces].astype(np.float64)
        quaternions, stretch = _oriented(corners, self.rest)
        width = WIDTH * self.samples.spacing
        scales = np.full((len(self.sh), 3), THICKNESS * self.samples.spacing, np.float32)
        scales[:, :2] = (width * stretch)[self.samples.triangle]
        rotations = quaternions[self.samples.triangle].astype(np.float32)
        return GaussianCloud(
            self.positions[frame], rotations, scales, np.ones(len(scales), np.float32), self.sh
        )


def _canonical(capture: Capture, frame: int | None) -> int:
    if frame is None:
        if not capture.frame_valid.any():
            raise CaptureError(f"{capture.name}: all frames are empty")
        return int(np.argmax(capture.frame_valid))
    if not 0 <= frame < capture.frame_count or not capture.frame_valid[frame]:
        raise CaptureError(f"{capture.name}: frame {frame} is empty or not among the {capture.frame_count}")
    return frame


def _sample(corners: Floats, count: int, seed: int, capture: Capture) -> MeshSamples:
    """Draw points uniformly over the area of triangles (M, 3, 3); triangles without area get none."""
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(cross, axis=1) / 2
    # Slivers whose plane is rounding error count as no area: a disc on one would point anywhere.
    longest = np.square(corners - np.roll(corners, 1, axis=1)).sum(axis=2).max(axis=1)
    areas[areas <= 1e-7 * longest] = 0
    ends = np.cumsum(areas)
    if ends[-1] == 0:
        raise CaptureError(
            f"{capture.name}: the mesh has no area, so there is no surface to cover with splats"
        )
    rng = np.random.default_rng(seed)
    targets = (np.arange(count) + rng.random(count)) / count * ends[-1]
    triangle = np.searchsorted(ends, targets, side="right")
    triangle = np.minimum(triangle, np.flatnonzero(areas)[-1])
    root, along = np.sqrt(rng.random(count)), rng.random(count)
    barycentric = np.stack([1 - root, root * (1 - along), root * along], axis=1)
    spacing = float(np.sqrt(ends[-1] / count))
    return MeshSamples(triangle, barycentric.astype(np.float32), spacing, len(corners))


def _follow(capture: Capture, samples: MeshSamples, progress: Progress) -> NDArray[np.float32]:
    """Return positions (F, K, 3) of the samples in every frame, NaN in invalid ones."""
    assert capture.faces is not None
    corners = capture.faces[samples.triangle]
    positions = np.empty((capture.frame_count, len(corners), 3), np.float32)
    for frame, points in enumerate(capture.positions):
        progress("Placing splats", frame / capture.frame_count)
        np.einsum("kc,kcd->kd", samples.barycentric, points[corners], out=positions[frame])
    progress("Placing splats", 1.0)
    return positions


def _colors(capture: Capture, texture: MeshTexture | None, samples: MeshSamples) -> NDArray[np.float32]:
    """Return display colours (K, 3)."""
    if texture is not None:
        return texture.colors(samples.triangle, samples.barycentric)
    if capture.colors is None or capture.faces is None:
        return np.full((len(samples.triangle), 3), GREY, np.float32)
    return np.einsum("kc,kcd->kd", samples.barycentric, capture.colors[capture.faces[samples.triangle]])


def _edges(corners: Floats) -> Floats:
    """Return the edges (M, 3, 2) from the first corner, as columns."""
    return np.stack([corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]], axis=-1)


def _plane_axes(edges: Floats) -> tuple[Floats, Floats]:
    """Return unit tangents (M, 3, 2), the first along the first edge, and normals (M, 3).

    Triangles without area get an arbitrary but orthonormal frame.
    """
    first, second = edges[..., 0], edges[..., 1]
    tangent = _unit(first, np.array([1.0, 0, 0]))
    helper = np.eye(3)[np.abs(tangent).argmin(axis=1)]
    normal = _unit(np.cross(first, second), _unit(np.cross(tangent, helper), helper))
    normal = _unit(normal - (normal * tangent).sum(axis=1, keepdims=True) * tangent, normal)
    return np.stack([tangent, np.cross(normal, tangent)], axis=-1), normal


def _unit(vectors: Floats, fallback: Floats) -> Floats:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    good = length > 1e-30
    return np.where(good, vectors / np.where(good, length, 1), fallback)


def _rest_frames(corners: Floats) -> Floats:
    """Return the inverse (M, 2, 2) of the rest edges within their plane; zero without area."""
    edges = _edges(corners)
    tangents, _ = _plane_axes(edges)
    flat = np.einsum("mij,mik->mjk", tangents, edges)
    determinant = flat[:, 0, 0] * flat[:, 1, 1] - flat[:, 0, 1] * flat[:, 1, 0]
    good = determinant > 1e-30
    adjugate = np.stack([flat[:, 1, 1], -flat[:, 0, 1], -flat[:, 1, 0], flat[:, 0, 0]], axis=-1).reshape(
        -1, 2, 2
    )
    return np.where(good[:, None, None], adjugate / np.where(good, determinant, 1)[:, None, None], 0)


def _oriented(corners: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """Return quaternions (M, 4) and in-plane stretches (M, 2) that carry a rest disc to the triangle.

    With J the gradient from the rest plane to the plane of the deformed triangle, a disc of covariance I
    becomes J J^T: its axes are the left singular vectors of J, its widths the singular values.
    """
    edges = _edges(corners)
    tangents, normals = _plane_axes(edges)
    gradient = np.einsum("mij,mik,mkl->mjl", tangents, edges, rest)  # (M, 2, 2)
    covariance = gradient @ np.swapaxes(gradient, 1, 2)
    a, b, c = covariance[:, 0, 0], covariance[:, 0, 1], covariance[:, 1, 1]
    angle = np.arctan2(2 * b, a - c) / 2
    cos, sin = np.cos(angle), np.sin(angle)
    major = tangents[..., 0] * cos[:, None] + tangents[..., 1] * sin[:, None]
    minor = np.cross(normals, major)
    spread = np.hypot((a - c) / 2, b)
    values = np.stack([(a + c) / 2 + spread, (a + c) / 2 - spread], axis=1)
    matrices = np.stack([major, minor, normals], axis=-1)
    return matrix_to_quaternion(matrices), np.sqrt(np.maximum(values, 0))
