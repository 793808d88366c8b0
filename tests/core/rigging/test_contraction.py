"""Contraction by mean-curvature flow (K2)."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from gaussianimate.core.errors import Cancelled
from gaussianimate.core.rigging.curves import contraction
from gaussianimate.core.rigging.curves.contraction import contract, cotangent_laplacian, ring_areas
from gaussianimate.core.rigging.curves.isosurface import is_closed_manifold
from gaussianimate.core.rigging.curves.remesh import collapse_short_edges


def test_bent_tube_shrinks_onto_its_axis(shapes):
    tube = shapes.bent_tube()
    x = contract(tube)
    distance = cKDTree(shapes.axis_of_tube()).query(x)[0] / 0.25
    assert np.median(distance) < 0.15
    assert np.quantile(distance, 0.9) < 0.35  # the curve made of it is centred better, see test_curve
    first = ring_areas(tube.vertices, tube.faces).sum()
    assert ring_areas(x, tube.faces).sum() < 3e-2 * first


def test_area_falls_at_every_step(shapes, monkeypatch):
    surface = shapes.iso(shapes.y_shape, 0.06)
    areas = []
    for steps in range(8):
        monkeypatch.setattr(contraction, "MAX_STEPS", steps)
        areas.append(ring_areas(contract(surface), surface.faces).sum())
    assert (np.diff(areas) <= 0.02 * areas[0]).all()
    assert areas[-1] < 0.5 * areas[0]


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_scale_and_place_do_not_matter(shapes, factor):
    tube = shapes.bent_tube()
    moved = type(tube)(tube.vertices * factor + 5 * factor, tube.faces)
    assert np.allclose(contract(moved), contract(tube) * factor + 5 * factor, atol=0.02 * factor)


def test_repeatable(shapes):
    tube = shapes.bent_tube()
    assert (contract(tube) == contract(tube)).all()


def test_laplacian_is_semidefinite_and_kills_constants(shapes):
    tube = shapes.bent_tube()
    laplacian = cotangent_laplacian(tube.vertices, tube.faces)
    assert abs(laplacian @ np.ones(len(tube.vertices))).max() < 1e-9
    assert abs(laplacian - laplacian.T).max() < 1e-12
    x = np.random.default_rng(0).normal(size=len(tube.vertices))
    assert x @ (laplacian @ x) > 0


def test_collapsing_keeps_the_topology(shapes):
    torus = shapes.iso(shapes.torus, 0.06)
    mesh = collapse_short_edges(torus.vertices, torus.faces, 0.1)
    assert len(mesh.vertices) < 0.6 * len(torus.vertices)
    assert is_closed_manifold(mesh.faces)
    assert len(mesh.vertices) - len(mesh.faces) // 2 == 0
    assert np.linalg.norm(mesh.vertices[mesh.image] - torus.vertices, axis=1).max() < 0.2
    assert set(mesh.image) == set(range(len(mesh.vertices)))


def test_cancel_passes(shapes):
    def cancel(stage, fraction):
        raise Cancelled("cancelled")

    with pytest.raises(Cancelled):
        contract(shapes.bent_tube(), progress=cancel)
