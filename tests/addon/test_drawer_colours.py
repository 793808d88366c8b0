"""What colours stand for: the scene's, or weights, stretch and depth."""

from dataclasses import replace

import numpy as np
import pytest
from pictures import (
    IDENTITY,
    LAYOUTS,
    MATRICES,
    TURN,
    affine,
    assert_same_picture,
    baked,
    draw,
    in_double,
    orthographic,
    perspective,
    reference,
    rigged,
)

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.deform.deform import jacobians
from gaussianimate.core.render.projection import srgb_to_linear
from gaussianimate.core.render.reference import psnr, rasterise
from gaussianimate.core.skinning.quantize import pack, unpack
from gaussianimate.core.skinning.skin import STATIC, Skin
from gaussianimate.gaussianimate_addon.drawer.atlas import Source, build_atlas
from gaussianimate.gaussianimate_addon.drawer.draw import Item, Shading, Show
from gaussianimate.gaussianimate_addon.drawer.offscreen import draw_picture

pytestmark = pytest.mark.usefixtures("device")

CAMERA = perspective()
MAGENTA = (1, 0, 1)


def one_splat(place=(0.0, 0.0, 0.0), size=0.2, opacity=1.0):
    """Return a cloud of a single grey splat."""
    return GaussianCloud(
        positions=np.array([place], np.float32),
        rotations=np.array([[1, 0, 0, 0]], np.float32),
        scales=np.full((1, 3), size, np.float32),
        opacities=np.array([opacity], np.float32),
        sh=np.zeros((1, 1, 3), np.float32),
    )


def one_skin(indices, weights, gradients=None):
    count = len(indices)
    gradients = np.zeros((count, 3)) if gradients is None else gradients
    return Skin(
        np.array([indices], np.int32), np.array([weights], np.float32), np.array([gradients], np.float32)
    )


def colour_at_the_middle(picture):
    """Return the colour of the splat in the middle of a picture, freed from its alpha."""
    height, width = picture.shape[:2]
    pixel = picture[height // 2, width // 2]
    assert pixel[3] > 0.3
    return pixel[:3] / pixel[3]


def look_at_one_splat(
    skin, transforms, show, marks=None, layout="exact", matrix=IDENTITY, camera=None, **shading
):
    atlas = build_atlas([Source(one_splat(), skin)], layout)
    camera = perspective((0, -3, 0), (0, 0, 0)) if camera is None else camera
    item = Item(0, matrix, transforms, marks=marks)
    return colour_at_the_middle(draw_picture(atlas, [item], camera, Shading(show=show, **shading)).rgba)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("posed", (False, True))
def test_scene_linear_colours(posed, layout):
    cloud, skin, poses = rigged(influences=3)
    transforms = poses[2] if posed else None
    drawn = draw(cloud, CAMERA, MATRICES["turned"], skin, transforms, layout, scene_linear=True)
    shown = baked(in_double(cloud), skin, poses[2], layout=layout) if posed else cloud
    assert_same_picture(
        drawn, reference(shown, CAMERA, MATRICES["turned"], linear=True), 60 if layout == "paper10" else 70
    )
    assert psnr(drawn, reference(shown, CAMERA, MATRICES["turned"])) < 35


def test_the_srgb_curve():
    for level in (0.0, 0.005, 0.02, 0.04, 0.042, 0.1, 0.3, 0.5, 0.8, 1.0, 1.6):
        grey = replace(one_splat(), sh=np.full((1, 1, 3), (level - 0.5) / 0.28209479177387814, np.float32))
        seen = draw(grey, perspective((0, -3, 0), (0, 0, 0)), scene_linear=True)
        np.testing.assert_allclose(colour_at_the_middle(seen), srgb_to_linear(level), rtol=1e-3, atol=1e-6)


def heat(value):
    """Blue, cyan, green, yellow, red at 0, 1/4, 1/2, 3/4, 1."""
    stops = np.linspace(0, 1, 5)
    table = np.array([(0, 0, 1), (0, 1, 1), (0, 1, 0), (1, 1, 0), (1, 0, 0)], float)
    return [np.interp(value, stops, table[:, channel]) for channel in range(3)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("weight", (0.0, 0.1, 0.25, 0.4, 0.6, 0.75, 1.0))
def test_weights_of_marked_bones(weight, layout):
    skin, rest = one_skin((1, 0), (weight, 1 - weight)), np.tile(np.eye(3, 4), (3, 1, 1))
    step = {"exact": 1e-5, "compact": 1e-4, "paper10": 0.01}[layout]
    for marks, value in (((0, 1, 0), weight), ((1, 0, 0), 1 - weight), ((0, 0, 1), 0), ((0.5, 1, 0), None)):
        value = 0.5 * (1 - weight) + weight if value is None else value
        seen = look_at_one_splat(skin, rest, Show.WEIGHT, np.array(marks, np.float32), layout)
        np.testing.assert_allclose(seen, heat(value), atol=4 * step)
    np.testing.assert_allclose(look_at_one_splat(skin, rest, Show.WEIGHT, None, layout), heat(0), atol=1e-6)


def test_marks_belong_to_the_bones_of_their_object():
    skin, rest = one_skin((0,), (1.0,)), np.tile(np.eye(3, 4), (2, 1, 1))
    sources = [Source(one_splat((x, 0, 0)), skin) for x in (-1.0, 0.0, 1.0)]
    items = [Item(k, IDENTITY, rest, marks=np.float32(m)) for k, m in enumerate(((1, 0), (0, 1), (0.5, 0)))]
    camera = perspective((0, -5, 0), (0, 0, 0))
    picture = draw_picture(build_atlas(sources), items, camera, Shading(show=Show.WEIGHT)).rgba
    for x, value in ((-1, 1), (0, 0), (1, 0.5)):
        column = int(camera.width / 2 + x * camera.projection[0, 0] * camera.width / 2 / 5)
        pixel = picture[camera.height // 2, column]
        np.testing.assert_allclose(pixel[:3] / pixel[3], heat(value), atol=1e-4)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_unweighted_splats_are_magenta(layout):
    rest = np.tile(np.eye(3, 4), (2, 1, 1))
    for show in (Show.COLOUR, Show.WEIGHT, Show.STRETCH):
        static = one_skin((STATIC,), (1.0,))
        seen = look_at_one_splat(static, rest, show, layout=layout, mark_unweighted=True)
        np.testing.assert_allclose(seen, MAGENTA, atol=1e-6)
        held = one_skin((STATIC, 1), (0.7, 0.3))
        seen = look_at_one_splat(held, rest, show, layout=layout, mark_unweighted=True)
        assert not np.allclose(seen, MAGENTA, atol=0.1)
        seen = look_at_one_splat(static, rest, show, layout=layout)
        assert not np.allclose(seen, MAGENTA, atol=0.1)


def stretch_colour(factor):
    octaves = np.clip(np.log2(factor), -1, 1)
    return (1, 1 - octaves, 1 - octaves) if octaves >= 0 else (1 + octaves, 1 + octaves, 1)


STRETCHES = {
    "none": np.eye(3),
    "turned": TURN,
    "half": 0.5 * TURN,
    "shorter": TURN @ np.diag([0.8, 0.75, 0.7]),
    "longer": TURN @ np.diag([1.3, 0.4, 1]) @ TURN,
    "nearly alike": np.diag([1.5, 1.49, 1.48]) @ TURN,
    "sheared": np.array([[1, 0.4, 0], [0, 1, 0.2], [0, 0, 0.9]]),
    "mirrored": TURN @ np.diag([-1.6, 1, 0.5]),
    "threefold": np.diag([1, 1, 3.0]),
    "flat": TURN @ np.diag([1.2, 0, 0.3]),
    "nothing": np.zeros((3, 3)),
}


@pytest.mark.parametrize("kind", STRETCHES)
def test_stretch_is_the_largest_singular_value(kind):
    linear = STRETCHES[kind]
    largest = max(np.linalg.svd(linear)[1][0], 1e-6)
    transforms = affine(linear)[None, :3]
    # Larger than usual in the object, so that splats stay visible however small they become.
    seen = look_at_one_splat(one_skin((0,), (1.0,)), transforms, Show.STRETCH, matrix=affine(5 * np.eye(3)))
    np.testing.assert_allclose(seen, stretch_colour(largest), atol=2e-3)


def test_stretch_has_the_elastic_term():
    gradient = np.array([0.3, -0.2, 0.4])
    skin = one_skin((0, 1), (0.5, 0.5), (gradient, -gradient))
    shifts = np.array([(0.6, 0.1, 0.2), (-0.6, -0.1, -0.2)])
    transforms = np.concatenate([np.tile(np.eye(3), (2, 1, 1)), shifts[:, :, None]], axis=2)
    for elastic in (0.0, 0.5, 1.0):
        jacobian = np.eye(3) + elastic * sum(
            np.outer(s, g) for s, g in zip(shifts, (gradient, -gradient), strict=True)
        )
        largest = np.linalg.svd(jacobian)[1][0]
        assert (largest > 1.05) == (elastic > 0)
        seen = look_at_one_splat(skin, transforms, Show.STRETCH, elastic=elastic)
        np.testing.assert_allclose(seen, stretch_colour(largest), atol=2e-3)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_are_decoded_to_the_last_digit(layout):
    """A picture hides 1/128 for 1/127; the stretch of a single splat does not."""
    gradient = np.array([0.6, 0.2, -0.3])
    skin = one_skin((0, 1), (0.5, 0.5), (gradient, -gradient))
    skin = unpack(pack(skin, layout)) if layout != "exact" else skin
    transforms = np.tile(np.eye(3, 4), (2, 1, 1))
    transforms[:, :, 3] = (0.4, 0.1, 0.2), (-0.4, -0.1, -0.2)
    jacobian = jacobians(np.zeros((1, 3)), skin, transforms)[0]
    largest = np.linalg.svd(jacobian)[1][0]
    assert 1.3 < largest < 1.9
    seen = look_at_one_splat(skin, transforms, Show.STRETCH, layout=layout)
    np.testing.assert_allclose(seen, stretch_colour(largest), atol=5e-6)


@pytest.mark.parametrize("linear", (False, True))
@pytest.mark.parametrize("lens", (perspective, orthographic))
def test_depth_is_that_along_the_view_axis(lens, linear):
    transforms = affine(None, (0.02, 0.7, -0.03))[None, :3]
    camera = lens((0, -3, 0), (0, 0, 0))
    seen = look_at_one_splat(
        one_skin((0,), (1.0,)),
        transforms,
        Show.DEPTH,
        camera=camera,
        scene_linear=linear,
        matrix=affine(TURN),
    )
    depth = 3 + (TURN @ transforms[0, :, 3])[1]
    np.testing.assert_allclose(seen, [depth] * 3, rtol=1e-5)


def test_depth_of_many_splats_is_their_weighted_mean():
    cloud, skin, poses = rigged(influences=3)
    drawn = draw(cloud, CAMERA, IDENTITY, skin, poses[2], show=Show.DEPTH)
    expected = rasterise([(baked(in_double(cloud), skin, poses[2]), IDENTITY)], CAMERA)
    seen = expected.rgba[..., 3] > 0.02
    mean = drawn[..., 0][seen] / drawn[..., 3][seen]
    np.testing.assert_allclose(np.median(np.abs(mean - expected.depth[seen])), 0, atol=1e-5)
    np.testing.assert_allclose(mean, expected.depth[seen], rtol=0.05)


def test_outlines_end_at_two_standard_deviations():
    camera = perspective((0, -3, 0), (0, 0, 0))
    picture = draw(one_splat(size=0.15), camera, outlines=True)
    radius = 2 * 0.15 / 3 * camera.projection[1, 1] * camera.height / 2
    y, x = np.mgrid[: camera.height, : camera.width] + 0.5
    distance = np.hypot(x - camera.width / 2, y - camera.height / 2)
    assert picture[distance < radius - 1, 3].min() > 0.99
    assert not picture[distance > radius + 1.5].any()
    middle, rim = picture[distance < radius - 4, 0], picture[np.abs(distance - radius + 1) < 0.4, 0]
    assert rim.max() < 0.8 * middle.min(), "the rim is darker"
