"""What breaks careless drawers: needles, large coordinates, mirrors, flat and broken splats and bones."""

from dataclasses import replace

import numpy as np
import pytest
from pictures import (
    EYE,
    IDENTITY,
    LAYOUTS,
    MATRICES,
    TARGET,
    TURN,
    about,
    affine,
    assert_same_picture,
    baked,
    draw,
    in_double,
    perspective,
    reference,
    rigged,
)

from gaussianimate.core.deform.deform import deform_with_report
from gaussianimate.core.render.reference import psnr
from gaussianimate.core.skinning.skin import STATIC, Skin, make_skin

pytestmark = pytest.mark.usefixtures("device")

CAMERA = perspective()
TIGHT = {"exact": 80, "compact": 80, "paper10": 65}


def all_bones(linear, count=4):
    """Return transforms that give every bone the same map about the cloud."""
    return np.tile(about(np.asarray(linear, float))[:3], (count, 1, 1))


def changed(array, rows, value):
    array = array.copy()
    array[rows] = value
    return array


@pytest.mark.parametrize("ratio", (1e3, 1e5))
def test_needles(ratio):
    cloud, skin, poses = rigged(influences=2, joints=4)
    needles = replace(cloud, scales=cloud.scales * 0 + np.float32([0.25, 0.25 / ratio, 0.25 / ratio]))
    assert_same_picture(draw(needles, CAMERA), reference(needles, CAMERA), 75)
    drawn = draw(needles, CAMERA, IDENTITY, skin, poses[2])
    assert_same_picture(drawn, reference(baked(in_double(needles), skin, poses[2]), CAMERA), 75)


def test_needles_longer_than_the_picture():
    """Their determinant has no digits left in a c - b b."""
    cloud, _, _ = rigged(60)
    needles = replace(cloud, scales=cloud.scales * 0 + np.float32([40, 0.01, 0.004]))
    assert_same_picture(draw(needles, CAMERA), reference(needles, CAMERA), 55)


@pytest.mark.parametrize("frame", (0, 2))
def test_camera_inside_the_cloud(frame):
    cloud, skin, poses = rigged(influences=3)
    posed = baked(in_double(cloud), skin, poses[frame])
    middle, end = posed.positions[np.argsort(cloud.positions[:, 0])[[125, 200]]]
    camera = perspective(middle, end, fov=1.4, near=0.002)
    depths = (posed.positions - camera.position) @ camera.forward
    assert (depths < 0).sum() > 50, "splats behind the camera"
    drawn = draw(cloud, camera, IDENTITY, skin, poses[frame])
    assert_same_picture(drawn, reference(posed, camera), 80)
    assert drawn[..., 3].mean() > 0.3


@pytest.mark.parametrize("place", MATRICES)
def test_object_and_camera_100_km_away(place):
    cloud, skin, poses = rigged(influences=3)
    offset = np.array([1e5, -7e4, 3e4])
    camera, matrix = perspective(EYE + offset, TARGET + offset), affine(None, offset) @ MATRICES[place]
    drawn = draw(cloud, camera, matrix, skin, poses[2])
    posed = baked(in_double(cloud), skin, poses[2])
    assert_same_picture(drawn, reference(posed, camera, matrix), 75)
    assert_same_picture(drawn, reference(posed, CAMERA, MATRICES[place]), 70)


@pytest.mark.parametrize("distance", (1e3, 1e5))
def test_splats_far_from_their_objects_origin(distance):
    cloud, skin, poses = rigged(influences=3)
    offset = distance * np.array([1.0, -0.7, 0.3])
    cloud = replace(cloud, positions=(cloud.positions + offset).astype(np.float32))
    transforms = poses[2].copy()
    transforms[:, :, 3] += offset - transforms[:, :, :3] @ offset
    camera = perspective(EYE + offset, TARGET + offset)
    assert_same_picture(draw(cloud, camera), reference(cloud, camera), 75)
    drawn = draw(cloud, camera, IDENTITY, skin, transforms)
    assert_same_picture(drawn, reference(baked(in_double(cloud), skin, transforms), camera), 75)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", (1e-3, 1e3, 1e-5, 1e6))
def test_clouds_of_any_size(size, layout):
    cloud, skin, poses = rigged(influences=3)
    scaled = replace(
        cloud,
        positions=(cloud.positions * size).astype(np.float32),
        scales=(cloud.scales * size).astype(np.float32),
    )
    scaled_skin = replace(skin, gradients=(skin.gradients / size).astype(np.float32))
    transforms = poses[2].copy()
    transforms[:, :, 3] *= size
    camera = perspective(EYE * size, TARGET * size, near=0.05 * size, far=100 * size)
    drawn = draw(scaled, camera, IDENTITY, scaled_skin, transforms, layout)
    as_usual = reference(baked(in_double(cloud), skin, poses[2], layout=layout), CAMERA)
    assert_same_picture(drawn, as_usual, TIGHT[layout] - 5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_static_bone(layout):
    cloud, skin, poses = rigged(influences=3)
    for indices in (changed(skin.indices, (slice(0, None, 3), 0), STATIC), np.full_like(skin.indices, -1)):
        held = replace(skin, indices=indices)
        drawn = draw(cloud, CAMERA, IDENTITY, held, poses[2], layout)
        posed = baked(in_double(cloud), held, poses[2], layout=layout)
        assert_same_picture(drawn, reference(posed, CAMERA), TIGHT[layout])
    assert_same_picture(drawn, reference(cloud, CAMERA), 80)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_splats_without_weights_stay(layout):
    cloud, skin, poses = rigged(influences=3)
    none = np.arange(len(cloud)) % 2 == 0
    bare = Skin(skin.indices, changed(skin.weights, none, 0), changed(skin.gradients, none, 0))
    repaired = make_skin(cloud.positions, bare.indices, bare.weights, bare.gradients, bone_count=3)
    posed = baked(in_double(cloud), skin, poses[2], layout=layout)
    for name in ("positions", "rotations", "scales", "sh"):
        getattr(posed, name)[none] = getattr(cloud, name)[none]
    for held in (bare, repaired):
        drawn = draw(cloud, CAMERA, IDENTITY, held, poses[2], layout)
        assert_same_picture(
            drawn, reference(posed, CAMERA), {"exact": 80, "compact": 80, "paper10": 45}[layout]
        )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("elastic", (0.0, 1.0))
@pytest.mark.parametrize("bad", (np.nan, np.inf, -np.inf))
def test_splats_of_a_broken_bone_keep_place_and_shape(bad, elastic, layout):
    cloud, skin, poses = rigged(influences=2, joints=4)
    held = ((skin.indices == 1) & (skin.weights > 0.01)).any(axis=1)
    assert 50 < held.sum() < len(cloud) - 50
    # In paper10 weights below 1/510 are none, but splats are ordered by the weights as they were.
    decibels = 40 if layout == "paper10" else 80
    for where in ((1, 0, 0), (1, 2, 3), 1):
        transforms = changed(poses[2], where, bad)
        drawn = draw(cloud, CAMERA, IDENTITY, skin, transforms, layout, elastic)
        with np.errstate(invalid="ignore"):
            posed = baked(in_double(cloud), skin, transforms, elastic, layout)
        np.testing.assert_array_equal(posed.positions[held], cloud.positions[held])
        np.testing.assert_array_equal(posed.scales[held], cloud.scales[held])
        assert_same_picture(drawn, reference(posed, CAMERA), decibels)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_broken_bone_does_not_reach_splats_that_have_no_weight_there(layout):
    """Not in unused slots of the skin, nor in those that only another object of the atlas needs."""
    from gaussianimate.gaussianimate_addon.drawer.atlas import Source, build_atlas
    from gaussianimate.gaussianimate_addon.drawer.draw import Item
    from gaussianimate.gaussianimate_addon.drawer.offscreen import draw_picture

    cloud, skin, poses = rigged(influences=4, joints=4)
    single = Skin(np.full((len(cloud), 1), 2, np.int32), *(a[:, :1] for a in (skin.weights, skin.gradients)))
    single = replace(single, weights=np.ones_like(single.weights), gradients=0 * single.gradients)
    transforms = changed(poses[2], 0, np.nan)
    expected = reference(baked(in_double(cloud), single, poses[2]), CAMERA)
    atlas = build_atlas([Source(cloud, single), Source(cloud, skin)], layout)
    drawn = draw_picture(atlas, [Item(0, IDENTITY, transforms)], CAMERA).rgba
    assert_same_picture(drawn, expected, 80)
    unused = Skin(
        np.pad(single.indices, ((0, 0), (0, 1))),
        *(np.pad(a, ((0, 0), (0, 1)) + ((0, 0),) * (a.ndim - 2)) for a in (single.weights, single.gradients)),
    )
    assert_same_picture(draw(cloud, CAMERA, IDENTITY, unused, transforms, layout), expected, 80)
    assert_same_picture(reference(baked(cloud, unused, transforms), CAMERA), expected, 80)


INVERTED = {
    "mirrored": TURN @ np.diag([1, -0.8, 1.3]),
    "hardly stretched": TURN @ np.diag([0.95, -0.9, 1.04]),
    "through a point": -TURN @ np.diag([0.8, 1.1, 1.4]),
    "sheared and mirrored": TURN @ np.array([[1, 0.5, 0], [0, -1.2, 0.3], [0, 0, 0.7]]),
    "flat": TURN @ np.diag([1, 0, 0.7]),
    "nearly flat": TURN @ np.diag([1, 1e-4, 0.7]),
    "nearly flat, mirrored": TURN @ np.diag([1, -1e-4, 0.7]),
    "thin": TURN @ np.diag([1, 0.003, 0.002]),
    "strongly sheared": TURN @ np.array([[1, 5, 0], [0, 1, 3], [0, 0, 1]]),
    "thousandfold": 1e3 * TURN,
}


@pytest.mark.parametrize("kind", INVERTED)
def test_colours_turn_by_the_rotation_nearest_to_any_map(kind):
    cloud, skin, _ = rigged(influences=2, joints=4)
    transforms = all_bones(INVERTED[kind])
    drawn = draw(cloud, CAMERA, IDENTITY, skin, transforms)
    posed, report = deform_with_report(in_double(cloud), skin, transforms, scale_floor=0)
    assert report.inverted.all() or "mirrored" not in kind
    assert_same_picture(drawn, reference(posed, CAMERA), 75)
    plain = deform_with_report(in_double(cloud), skin, transforms, rotate_sh=False)[0]
    assert psnr(drawn, reference(plain, CAMERA)) < 45, "colours that do not turn would pass"


@pytest.mark.parametrize("elastic", (4.0, 15.0))
def test_splats_turned_inside_out_by_the_elastic_term(elastic):
    cloud, skin, poses = rigged(influences=2, joints=4)
    posed, report = deform_with_report(in_double(cloud), skin, poses[2], elastic)
    assert 5 < report.inverted.sum() < len(cloud) / 2
    assert_same_picture(
        draw(cloud, CAMERA, IDENTITY, skin, poses[2], elastic=elastic), reference(posed, CAMERA), 75
    )


@pytest.mark.parametrize("linear", (np.zeros((3, 3)), TURN @ np.diag([1.0, 0, 0])), ids=("point", "line"))
def test_bones_that_collapse_their_splats(linear):
    """Colours have no nearest rotation there, so they are of degree 0; the rest is as core has it."""
    cloud, skin, _ = rigged(influences=2, joints=4, degree=0)
    cloud = replace(cloud, sh=np.broadcast_to(cloud.sh[:1], cloud.sh.shape).copy())  # a point has no order
    drawn = draw(cloud, CAMERA, IDENTITY, skin, all_bones(linear))
    assert_same_picture(drawn, reference(baked(in_double(cloud), skin, all_bones(linear)), CAMERA), 75)


@pytest.mark.parametrize("linear", (np.zeros((3, 3)), np.diag([1.0, 0, 1])), ids=("point", "flat"))
def test_objects_scaled_to_nothing(linear):
    cloud, skin, poses = rigged(influences=2, joints=4, degree=0)
    cloud = replace(cloud, sh=np.broadcast_to(cloud.sh[:1], cloud.sh.shape).copy())
    drawn = draw(cloud, CAMERA, about(linear), skin, poses[2])
    posed = baked(in_double(cloud), skin, poses[2])
    assert_same_picture(drawn, reference(posed, CAMERA, about(linear)), 75)


@pytest.mark.parametrize("opacity", (1.0, 0.5, 1.01 / 255, 0.0, 0.99 / 255))
def test_opacities(opacity):
    cloud, _, _ = rigged()
    cloud = replace(cloud, opacities=np.full_like(cloud.opacities, opacity))
    drawn = draw(cloud, CAMERA)
    if opacity < 1 / 255:
        assert not drawn.any()
    else:
        assert np.isfinite(drawn).all()
        assert drawn.any()
        assert psnr(drawn, reference(cloud, CAMERA)) > 75
    if opacity == 1:
        assert drawn[..., 3].max() == pytest.approx(1, abs=1e-5), "alpha has no cap"


@pytest.mark.parametrize("axes", (1, 2, 3))
def test_splats_without_extent_along_some_axes(axes):
    cloud, skin, poses = rigged(influences=2, joints=4)
    cloud = replace(cloud, scales=changed(cloud.scales, (slice(None), slice(axes)), 0))
    assert_same_picture(draw(cloud, CAMERA), reference(cloud, CAMERA), 75)
    drawn = draw(cloud, CAMERA, IDENTITY, skin, poses[2])
    assert_same_picture(drawn, reference(baked(in_double(cloud), skin, poses[2]), CAMERA), 75)


@pytest.mark.parametrize("layout", ("exact", "compact"))
@pytest.mark.parametrize("name", ("positions", "scales", "opacities", "sh"))
@pytest.mark.parametrize("bad", (np.nan, np.inf))
def test_broken_splats_are_left_out(bad, name, layout):
    cloud, skin, poses = rigged(influences=2, joints=4)
    good = np.arange(len(cloud)) % 5 != 0
    broken = replace(cloud, **{name: changed(getattr(cloud, name), ~good, bad)})
    assert_same_picture(draw(broken, CAMERA), reference(cloud.take(good), CAMERA), 80)
    drawn = draw(broken, CAMERA, IDENTITY, skin, poses[2], layout)
    posed = baked(in_double(cloud), skin, poses[2], layout=layout).take(good)
    assert_same_picture(drawn, reference(posed, CAMERA), 80)


def test_quaternions_need_not_be_normal():
    cloud, _, _ = rigged()
    lengths = np.linspace(0.1, 7, len(cloud), dtype=np.float32)[:, None]
    scaled = replace(cloud, rotations=cloud.rotations * lengths)
    assert_same_picture(draw(scaled, CAMERA), reference(cloud, CAMERA), 80)
    none = replace(cloud, rotations=changed(cloud.rotations, slice(0, None, 4), 0))
    assert_same_picture(draw(none, CAMERA), reference(none, CAMERA), 80)


@pytest.mark.parametrize("scale", (1e4, 1e9, 1e15, 3e19, 1e38))
def test_splats_of_absurd_size_spoil_nothing(scale):
    cloud, _, _ = rigged()
    huge = replace(cloud, scales=changed(cloud.scales, slice(0, None, 50), scale))
    drawn = draw(huge, CAMERA)
    assert np.isfinite(drawn).all()
    assert drawn[..., 3].max() <= 1 + 1e-5
