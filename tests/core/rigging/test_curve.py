"""Curve skeletons: topology, ownership, centring (K3, K4, K12) and the choice of the rest pose."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import cKDTree

from gaussianimate.core.rigging.curves.contraction import contract
from gaussianimate.core.rigging.curves.curve import extract_curve, select_canonical_frame
from gaussianimate.core.rigging.curves.inside import inside
from gaussianimate.core.rigging.curves.surface import closed_surface

DATA = Path(__file__).parents[4] / "shared/data"


def curve_of(points, faces=None):
    surface = closed_surface(points, faces)
    return surface, extract_curve(surface, contract(surface), points)


@pytest.fixture(scope="module")
def known(shapes):
    """Name -> points, surface and curve of a known body, made once."""

    @cache
    def make(name):
        points = shapes.on_surface(getattr(shapes, name), 6000)
        return points, *curve_of(points)

    return make


def check(curve, points, shapes):
    count = len(curve.nodes)
    assert np.isfinite(curve.nodes).all() and np.isfinite(curve.radii).all()
    assert curve.owners.shape == (len(points),)
    assert curve.owners.min() >= 0 and curve.owners.max() < count
    assert shapes.pieces(curve.edges, count) == 1
    assert (curve.edges[:, 0] < curve.edges[:, 1]).all()


@pytest.mark.parametrize(
    ("name", "leaves", "junctions", "loops"), [("capsule", 2, 0, 0), ("y_shape", 3, 1, 0), ("torus", 0, 0, 1)]
)
def test_topology_and_ownership(shapes, known, name, leaves, junctions, loops):
    points, surface, curve = known(name)
    check(curve, points, shapes)
    degree = shapes.degrees(curve.edges, len(curve.nodes))
    assert (degree == 1).sum() == leaves
    assert (degree > 2).sum() == junctions
    assert len(curve.edges) - len(curve.nodes) + 1 == loops
    assert len(points) / len(curve.nodes) > 20
    assert inside(surface, curve.nodes).all()


def test_y_is_centred_and_reaches_its_ends(shapes, known):
    _, _, curve = known("y_shape")
    middle = np.min([shapes.segment_distance(curve.nodes, (0, 0, 0), e) for e in shapes.Y_ENDS], axis=0)
    assert np.median(middle) < 0.03 and middle.max() < 0.1
    for end in shapes.Y_ENDS:
        assert np.linalg.norm(curve.nodes - end, axis=1).min() < 0.15
    assert np.median(curve.radii) == pytest.approx(0.18, rel=0.2)
    gaps = np.linalg.norm(curve.nodes[curve.edges[:, 0]] - curve.nodes[curve.edges[:, 1]], axis=1)
    assert gaps.max() < 2 * np.median(gaps)


def test_bent_tube(shapes):
    """The curve keeps to the axis and to its length: all but the round ends, whose middle is a point."""
    tube = shapes.bent_tube()
    curve = extract_curve(tube, contract(tube), tube.vertices)
    distance = cKDTree(shapes.axis_of_tube()).query(curve.nodes)[0] / 0.25
    assert np.median(distance) < 0.15 and np.quantile(distance, 0.95) < 0.25
    assert np.ptp(curve.nodes[:, 0]) > 0.9 * (4 - 2 * 0.25)
    assert (shapes.degrees(curve.edges, len(curve.nodes)) == 1).sum() == 2


def test_points_belong_to_the_limb_they_lie_on(shapes):
    """Two parallel fingers that nearly touch: no point of one belongs to the other."""

    def fork(p):
        parts = [((-0.2, -1, 0), (-0.2, 1, 0)), ((0.2, -1, 0), (0.2, 1, 0)), ((-0.2, -1, 0), (0.2, -1, 0))]
        return np.min([shapes.segment_distance(p, a, b) for a, b in parts], axis=0) - 0.15

    mesh = shapes.iso(fork)
    _, curve = curve_of(mesh.vertices, mesh.faces)
    upper = mesh.vertices[:, 1] > -0.5
    assert (np.sign(curve.nodes[curve.owners[upper], 0]) == np.sign(mesh.vertices[upper, 0])).all()


@pytest.mark.parametrize(
    "points",
    [
        np.zeros((1, 3)),
        np.ones((10, 3)),
        np.array([[0, 0, 0], [1, 0, 0.0]]),
        np.linspace(0, 1, 10)[:, None] * [1.0, 2, 3],
        np.random.default_rng(0).random((7, 3)),
        np.repeat(np.random.default_rng(0).random((40, 3)), 5, axis=0),
        np.concatenate(
            [np.random.default_rng(0).random((500, 3)), np.random.default_rng(1).random((500, 3)) + 3]
        ),
        np.random.default_rng(0).random((2000, 3)) * [1, 1, 0],
    ],
    ids=["one", "equal", "two", "collinear", "seven", "duplicates", "two parts", "sheet"],
)
def test_degenerate_input(shapes, points, coarse):
    _, curve = curve_of(points)
    check(curve, points, shapes)


def test_rigid_motion_carries_the_curve_along(shapes, coarse):
    mesh = shapes.iso(shapes.y_shape, 0.06)
    turn = np.array([[0.6, -0.8, 0], [0.8, 0.6, 0], [0, 0, 1]])
    _, a = curve_of(mesh.vertices, mesh.faces)
    _, b = curve_of(mesh.vertices @ turn.T + [3, 1, 2], mesh.faces)
    back = (b.nodes - [3, 1, 2]) @ turn
    assert np.linalg.norm(back[:, None] - a.nodes[None], axis=2).min(1).max() < 0.12


def limits(name):
    """Worst mean and largest distance of true joints to the curve in % of the diagonal, and leaves, that we
    accept.
    """
    return {"fox": (2.2, 5.5, (6, 8)), "cesium-man": (1.1, 2.6, (5, 7)), "human-gs": (1.8, 6.5, (5, 7))}[name]


@pytest.mark.parametrize("name", ["fox", "cesium-man", "human-gs"])
def test_true_joints_are_near(shapes, name):
    path = DATA / name / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{name} is not here")
    data = np.load(path)
    surface, curve = curve_of(data["rest"], data["faces"])
    check(curve, data["rest"], shapes)
    skip = ("root", "thumb", "index", "middle", "ring", "pinky")
    kept = [not any(s in str(n).lower() for s in skip) or "Hip" in str(n) for n in data["joint_names"]]
    joints = data["joint_rest"][kept]
    a, b = curve.nodes[curve.edges.T]
    distance = np.min([shapes.segment_distance(joints, p, q) for p, q in zip(a, b, strict=True)], axis=0)
    percent = 100 * distance / np.linalg.norm(np.ptp(data["rest"], axis=0))
    mean, largest, (fewest, most) = limits(name)
    assert percent.mean() < mean and percent.max() < largest
    leaves = (shapes.degrees(curve.edges, len(curve.nodes)) == 1).sum()
    assert fewest <= leaves <= most
    assert len(curve.edges) == len(curve.nodes) - 1
    assert inside(surface, curve.nodes).mean() > 0.97


def test_canonical_frame_avoids_contact():
    rng = np.random.default_rng(0)
    left = rng.random((300, 3)) * [0.2, 1, 0.2]
    gap = np.array([0.0, 0.5, 1.0, 0.7])
    frames = np.stack([np.concatenate([left, left + [0.2 + g, 0, 0]]) for g in gap]).astype(np.float32)
    assert select_canonical_frame(frames) != 0
    assert select_canonical_frame(frames[:1]) == 0
    frames[1] = np.nan
    assert select_canonical_frame(frames) in (2, 3)
    assert select_canonical_frame(np.zeros((3, 5, 3), np.float32)) == 0
