"""Open shells without a mesh: tubes and garments of splats are bodies, gaps between limbs are not."""

import numpy as np

from gaussianimate.core.rigging.curves.inside import inside
from gaussianimate.core.rigging.curves.solid import fill_openings
from gaussianimate.core.rigging.curves.surface import closed_surface


def tube(count, radius=0.2, length=2.0, seed=0):
    """Points on the wall of a tube along Y, open at both ends."""
    rng = np.random.default_rng(seed)
    angle, height = rng.uniform(0, 2 * np.pi, count), rng.uniform(0, length, count)
    return np.stack([radius * np.cos(angle), height, radius * np.sin(angle)], 1)


def test_an_open_tube_of_points_is_a_solid_rod():
    surface = closed_surface(tube(4000))
    axis = np.stack([np.zeros(9), np.linspace(0.3, 1.7, 9), np.zeros(9)], 1)
    assert inside(surface, axis).all()
    assert not inside(surface, axis + [0.3, 0, 0]).any()


def test_open_legs_are_filled_and_the_gap_between_them_is_not():
    legs = np.zeros((34, 60, 16), bool)
    filled = legs.copy()
    for left in (3, 21):
        legs[left : left + 10, 5:55, 3:13] = filled[left : left + 10, 5:55, 3:13] = True
        legs[left + 1 : left + 9, :, 4:12] = False
    found = fill_openings(legs)
    assert not found[13:21].any()
    assert (found & ~filled).sum() == 0
    assert found[:, 14:46].sum() == filled[:, 14:46].sum(), "all but the ends"
    np.testing.assert_array_equal(fill_openings(np.zeros_like(legs)), np.zeros_like(legs))


def test_a_closed_box_is_filled_and_nothing_else():
    box = np.zeros((12, 12, 12), bool)
    box[2:10, 2:10, 2:10] = True
    hollow = box.copy()
    hollow[3:9, 3:9, 3:9] = False
    np.testing.assert_array_equal(fill_openings(hollow), box)
    np.testing.assert_array_equal(fill_openings(box), box)
