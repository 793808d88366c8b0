"""Closed surfaces from meshes, parts, sheets and clouds (K1, K12)."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import cKDTree

from gaussianimate.core.errors import Cancelled
from gaussianimate.core.rigging.curves.inside import inside
from gaussianimate.core.rigging.curves.isosurface import is_closed_manifold, marching_cubes
from gaussianimate.core.rigging.curves.medial import medial_balls
from gaussianimate.core.rigging.curves.solid import Grid, close_mesh, fill_mesh
from gaussianimate.core.rigging.curves.surface import closed_surface

DATA = Path(__file__).parents[4] / "shared/data"


def euler(surface):
    return len(surface.vertices) - len(surface.faces) // 2


def volume(surface):
    a, b, c = (surface.vertices - surface.vertices.mean(0))[surface.faces].transpose(1, 0, 2)
    return np.einsum("ij,ij->", a, np.cross(b, c)) / 6


def is_sound(surface, shapes):
    assert np.isfinite(surface.vertices).all()
    assert is_closed_manifold(surface.faces)
    assert shapes.pieces(surface.faces[:, [0, 1, 1, 2]], len(surface.vertices)) == 1
    assert volume(surface) > 0


def test_marching_cubes_is_manifold_on_noise():
    field = np.zeros((16, 16, 16))
    field[1:-1, 1:-1, 1:-1] = np.random.default_rng(0).random((14, 14, 14))
    vertices, faces = marching_cubes(field, 0.5)
    assert is_closed_manifold(faces)
    assert set(np.unique(faces)) == set(range(len(vertices)))
    # One fan of triangles around each vertex: as many triangles as neighbours, all in one ring.
    for v in range(0, len(vertices), 50):
        ring = faces[(faces == v).any(1)]
        follow = {t[(list(t).index(v) + 1) % 3]: t[(list(t).index(v) + 2) % 3] for t in ring.tolist()}
        at, steps = next(iter(follow)), 0
        start = at
        while steps == 0 or at != start:
            at, steps = follow[at], steps + 1
        assert steps == len(ring)


@pytest.mark.parametrize(("name", "chi"), [("capsule", 2), ("sphere", 2), ("torus", 0), ("y_shape", 2)])
@pytest.mark.parametrize("as_mesh", [False, True])
def test_known_bodies(shapes, name, chi, as_mesh):
    shape = getattr(shapes, name)
    if as_mesh:
        mesh = shapes.iso(shape, 0.06)
        surface = closed_surface(mesh.vertices, mesh.faces)
    else:
        surface = closed_surface(shapes.on_surface(shape, 6000))
    is_sound(surface, shapes)
    assert euler(surface) == chi
    extent = np.ptp(surface.vertices, axis=0).max()
    voxel = np.sqrt(1.5 * _area(surface) / len(surface.vertices))  # about 1.5 vertices a voxel of surface
    assert voxel < extent / 25
    assert np.abs(shape(surface.vertices)).max() < 3 * voxel  # surface to truth
    truth = shapes.on_surface(shape, 2000, seed=1)
    assert cKDTree(surface.vertices).query(truth)[0].max() < 3 * voxel  # truth to surface


def _area(surface):
    a, b, c = surface.vertices[surface.faces].transpose(1, 0, 2)
    return np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2


def test_vertex_budget_holds_from_coarse_and_fine_meshes(shapes):
    for voxel in (0.2, 0.05):
        mesh = shapes.iso(shapes.y_shape, voxel)
        count = len(closed_surface(mesh.vertices, mesh.faces).vertices)
        assert 4000 < count < 10500


def test_open_tube_is_sealed(shapes):
    """A sheet that is open at both ends (a sleeve) is filled, not wrapped as a thin shell."""
    angle, z = np.meshgrid(np.linspace(0, 2 * np.pi, 25)[:-1], np.linspace(0, 2, 20))
    points = np.stack([0.3 * np.cos(angle), 0.3 * np.sin(angle), z], -1).reshape(-1, 3)
    i, k = (v.ravel() for v in np.meshgrid(np.arange(19), np.arange(24), indexing="ij"))
    a, b = i * 24 + k, i * 24 + (k + 1) % 24
    faces = np.concatenate([np.stack([a, b, b + 24], 1), np.stack([a, b + 24, a + 24], 1)])
    surface = closed_surface(points, faces)
    is_sound(surface, shapes)
    assert euler(surface) == 2
    assert volume(surface) == pytest.approx(np.pi * 0.09 * 2, rel=0.1)


def test_parts_become_one(shapes):
    """Two boxes with a gap, each inside out or not, and a speck far away."""
    box = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])
    points = np.concatenate([box, box + [1.1, 0, 0], 0.01 * box + [-3, 0, 0]])
    surface = closed_surface(points, np.concatenate([faces, faces[:, ::-1] + 8, faces + 16]))
    is_sound(surface, shapes)
    assert euler(surface) == 2
    assert inside(
        surface, np.array([[0.5, 0.5, 0.5], [1.6, 0.5, 0.5], [1.05, 0.5, 0.5], [5, 0.5, 0.5]])
    ).tolist() == [
        True,
        True,
        True,
        False,
    ]


def test_flat_sheet_is_thickened(shapes, coarse):
    x, y = (v.ravel() for v in np.meshgrid(np.arange(11) / 10, np.arange(6) / 10, indexing="ij"))
    points = np.stack([x, y, 0 * x], 1)
    i, j = (v.ravel() for v in np.meshgrid(np.arange(10), np.arange(5), indexing="ij"))
    a = i * 6 + j
    faces = np.concatenate([np.stack([a, a + 6, a + 7], 1), np.stack([a, a + 7, a + 1], 1)])
    for f in (faces, None):
        surface = closed_surface(points, f)
        is_sound(surface, shapes)
        assert np.ptp(surface.vertices[:, 2]) < 0.4 * np.ptp(surface.vertices[:, 0])


@pytest.mark.parametrize(
    "points",
    [
        np.zeros((1, 3)),
        np.ones((10, 3)),
        np.array([[0, 0, 0], [1, 0, 0.0]]),
        np.linspace(0, 1, 10)[:, None] * [1.0, 2, 3],
        np.random.default_rng(0).random((5, 3)) * 1e-4 + 1e5,
        np.repeat(np.random.default_rng(0).random((40, 3)), 5, axis=0),
        np.concatenate([np.random.default_rng(0).normal(size=(300, 3)), [[100.0, 0, 0]]]),
    ],
    ids=["one", "equal", "two", "collinear", "far and small", "duplicates", "outlier"],
)
def test_degenerate_clouds(shapes, points, coarse):
    is_sound(closed_surface(points), shapes)


def test_transparent_gaussians_are_left_out(shapes, coarse):
    points = shapes.on_surface(shapes.sphere, 3000)
    fog = np.random.default_rng(1).uniform(-1.4, 1.4, (3000, 3))
    opacities = np.repeat([1.0, 0.02], 3000)
    surface = closed_surface(np.concatenate([points, fog]), opacities=opacities)
    assert euler(surface) == 2
    assert np.linalg.norm(surface.vertices, axis=1).max() < 0.6


def test_winding_fill_is_exact_on_a_grid_aligned_box():
    """Vertices and edges that fall exactly on columns must neither leak nor double."""
    box = np.array([[x, y, z] for x in (2, 8) for y in (2, 8) for z in (2, 8)], float)
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])
    filled = fill_mesh(*close_mesh(box, faces), Grid(np.full(3, 0.5), 1.0, (10, 10, 10)))
    expected = np.zeros((10, 10, 10), bool)
    expected[2:8, 2:8, 2:8] = True
    assert (filled == expected).all()


def test_inscribed_balls_of_a_capsule(shapes):
    surface = shapes.iso(shapes.capsule)
    centres, radii = medial_balls(surface)
    off = shapes.segment_distance(centres, (-1, 0, 0), (1, 0, 0))
    assert np.median(off) < 0.02 and np.quantile(off, 0.9) < 0.1
    assert np.median(radii) == pytest.approx(0.2, rel=0.1)
    assert inside(surface, centres[::20]).all()


def test_cancel_passes():
    def cancel(stage, fraction):
        raise Cancelled("cancelled")

    with pytest.raises(Cancelled):
        closed_surface(np.random.default_rng(0).random((50, 3)), progress=cancel)


@pytest.mark.parametrize("name", ["fox", "kaykit-knight", "robot-expressive", "garment2-tshirt"])
def test_captures(shapes, name):
    path = DATA / name / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{name} is not here")
    data = np.load(path)
    surface = closed_surface(data["rest"], data["faces"])
    is_sound(surface, shapes)
    assert 4000 < len(surface.vertices) < 12000
    # Everything of the capture lies in the body or near its surface.
    diagonal = np.linalg.norm(np.ptp(data["rest"], axis=0))
    assert np.quantile(cKDTree(surface.vertices).query(data["rest"])[0], 0.7) < 0.05 * diagonal
