"""What the GPU draws is what the reference rasteriser draws, at rest and deformed.

Tolerances are far above what an eye sees (40 dB is a hundredth of white): single precision leaves about 130
dB, half-float colours of the packed layouts about 100, and one pixel where alpha rounds to the other side of
its threshold 88.
"""

import numpy as np
import pytest
from pictures import (
    IDENTITY,
    LAYOUTS,
    MATRICES,
    assert_same_picture,
    baked,
    draw,
    orthographic,
    perspective,
    reference,
    rigged,
    shifted,
)

from gaussianimate.core.render.reference import psnr

pytestmark = pytest.mark.usefixtures("device")

CAMERAS = {"perspective": perspective(), "orthographic": orthographic(), "shifted lens": shifted()}
# Against the cloud core baked, with its weights as they are, and as the layout stores them.
DECIBELS = {"exact": (80, 80), "compact": (75, 80), "paper10": (45, 65)}


@pytest.mark.parametrize("degree", range(4))
@pytest.mark.parametrize("place", MATRICES)
@pytest.mark.parametrize("camera", CAMERAS)
def test_picture_is_the_reference(camera, place, degree):
    cloud, _, _ = rigged(degree=degree)
    drawn = draw(cloud, CAMERAS[camera], MATRICES[place])
    assert_same_picture(drawn, reference(cloud, CAMERAS[camera], MATRICES[place]), 80)


@pytest.mark.parametrize("degree", range(4))
@pytest.mark.parametrize("influences", range(1, 5))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_deformed_picture_is_that_of_the_baked_cloud(layout, influences, degree):
    cloud, skin, poses = rigged(degree=degree, influences=influences, joints=4)
    assert skin.influences == influences
    camera, (loose, tight) = CAMERAS["perspective"], DECIBELS[layout]
    for frame, place in ((2, "identity"), (3, "mirrored"), (5, "sheared")):
        matrix = MATRICES[place]
        drawn = draw(cloud, camera, matrix, skin, poses[frame], layout)
        assert psnr(drawn, reference(cloud, camera, matrix)) < 25, "nothing moved"
        assert_same_picture(drawn, reference(baked(cloud, skin, poses[frame]), camera, matrix), loose)
        as_stored = baked(cloud, skin, poses[frame], layout=layout)
        assert_same_picture(drawn, reference(as_stored, camera, matrix), tight)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("camera", ("orthographic", "shifted lens"))
def test_deformed_picture_through_other_lenses(camera, layout):
    cloud, skin, poses = rigged(influences=4, joints=4)
    drawn = draw(cloud, CAMERAS[camera], MATRICES["stretched"], skin, poses[2], layout)
    expected = baked(cloud, skin, poses[2], layout=layout)
    expected = reference(expected, CAMERAS[camera], MATRICES["stretched"])
    assert_same_picture(drawn, expected, DECIBELS[layout][1])


@pytest.mark.parametrize("degree", (0, 3))
@pytest.mark.parametrize("influences", (1, 2, 4))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rest_pose_is_the_undeformed_picture_bit_by_bit(layout, influences, degree):
    cloud, skin, poses = rigged(degree=degree, influences=influences, joints=4)
    camera, rest = CAMERAS["perspective"], np.tile(np.eye(3, 4), (4, 1, 1))
    for place in ("turned", "mirrored"):
        matrix = MATRICES[place]
        undeformed = draw(cloud, camera, matrix, skin, None, layout)
        np.testing.assert_array_equal(draw(cloud, camera, matrix, skin, rest, layout), undeformed)
        np.testing.assert_array_equal(
            draw(cloud, camera, matrix, skin, poses[2], layout, deform=False), undeformed
        )
        assert undeformed[..., 3].max() > 0.5


@pytest.mark.parametrize("elastic", (0.0, 0.5, 1.0, 1.5))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_elastic_strength(layout, elastic):
    cloud, skin, poses = rigged(influences=3, joints=4)
    camera = CAMERAS["perspective"]
    drawn = draw(cloud, camera, IDENTITY, skin, poses[2], layout, elastic)
    expected = reference(baked(cloud, skin, poses[2], elastic, layout), camera)
    assert_same_picture(drawn, expected, DECIBELS[layout][1])
    without = draw(cloud, camera, IDENTITY, skin, poses[2], layout, 0.0)
    assert (psnr(drawn, without) > 60) == (elastic == 0), "the elastic term shows nowhere"


def test_elastic_strength_of_the_view_multiplies_that_of_the_object():
    from gaussianimate.gaussianimate_addon.drawer.atlas import Source, build_atlas
    from gaussianimate.gaussianimate_addon.drawer.draw import Item, Shading
    from gaussianimate.gaussianimate_addon.drawer.offscreen import draw_picture

    cloud, skin, poses = rigged(influences=3, joints=4)
    atlas = build_atlas([Source(cloud, skin)])
    items = [Item(0, IDENTITY, poses[2], elastic=0.8)]
    drawn = draw_picture(atlas, items, CAMERAS["perspective"], Shading(elastic=0.5)).rgba
    expected = reference(baked(cloud, skin, poses[2], 0.4), CAMERAS["perspective"])
    assert_same_picture(drawn, expected, 80)
