"""Many bones, many objects, instances: all in one picture, in one order."""

from dataclasses import replace

import numpy as np
import pytest
from pictures import (
    IDENTITY,
    LAYOUTS,
    MATRICES,
    TARGET,
    TURN,
    about,
    affine,
    assert_same_picture,
    baked,
    in_double,
    perspective,
    reference,
    rigged,
)

from gaussianimate.core.errors import RigError
from gaussianimate.core.render.reference import psnr, rasterise
from gaussianimate.core.rotations import normalize_quaternions, quaternion_to_matrix
from gaussianimate.core.skinning.skin import Skin
from gaussianimate.gaussianimate_addon.drawer.atlas import Source, build_atlas
from gaussianimate.gaussianimate_addon.drawer.draw import Item, bone_moves, upload_bones
from gaussianimate.gaussianimate_addon.drawer.offscreen import draw_picture
from gaussianimate.gpu_shaders import MAX_ITEMS

pytestmark = pytest.mark.usefixtures("device")

CAMERA = perspective()


def many_boned(bones, seed=1):
    """Return a cloud whose splats each hang on three of many bones, and transforms that all differ."""
    rng = np.random.default_rng(seed)
    cloud, skin, _ = rigged(300, 1, 3)
    indices = np.argsort(rng.random((300, bones)), axis=1)[:, :3].astype(np.int32)
    indices[:6, 0] = 0, 1, bones - 2, bones - 1, bones // 2, 0
    turns = quaternion_to_matrix(normalize_quaternions([1, 0, 0, 0] + 0.1 * rng.normal(size=(bones, 4))))
    transforms = np.concatenate([turns, 0.1 * rng.normal(size=(bones, 3, 1))], axis=2)
    return cloud, Skin(indices, skin.weights, skin.gradients), transforms


@pytest.mark.parametrize(("bones", "capacity"), ((3, 256), (256, 256), (300, 1024), (1024, 1024), (1200, 0)))
def test_bones_by_the_hundred(bones, capacity):
    cloud, skin, transforms = many_boned(bones)
    atlas = build_atlas([Source(cloud, skin)])
    items = [Item(0, IDENTITY, transforms)]
    assert upload_bones(bone_moves(atlas, items), items).capacity == capacity
    posed = baked(in_double(cloud), skin, transforms)
    assert_same_picture(draw_picture(atlas, items, CAMERA).rgba, reference(posed, CAMERA), 80)


@pytest.mark.parametrize("layout", ("compact", "paper10"))
def test_255_bones_in_packed_layouts(layout):
    cloud, skin, transforms = many_boned(255)
    atlas = build_atlas([Source(cloud, skin)], layout)
    assert atlas.layout == layout
    posed = baked(in_double(cloud), skin, transforms, layout=layout)
    drawn = draw_picture(atlas, [Item(0, IDENTITY, transforms)], CAMERA).rgba
    assert_same_picture(drawn, reference(posed, CAMERA), 80 if layout == "compact" else 60)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_clouds_that_interpenetrate_share_one_order(layout):
    first, skin, poses = rigged(250, 2, 3, seed=0)
    second, other, others = rigged(250, 1, 2, seed=5)
    atlas = build_atlas([Source(first, skin), Source(second, other)], layout)
    places = IDENTITY, about(np.diag([1.0, -1.0, 1.1]))
    items = [Item(0, places[0], poses[2]), Item(1, places[1], others[2], elastic=0.5)]
    parts = [
        (baked(in_double(first), skin, poses[2], layout=layout), places[0]),
        (baked(in_double(second), other, others[2], 0.5, layout), places[1]),
    ]
    expected = rasterise(parts, CAMERA).rgba
    drawn = draw_picture(atlas, items, CAMERA).rgba
    assert_same_picture(drawn, expected, 65 if layout == "paper10" else 80)
    swapped = draw_picture(atlas, items[::-1], CAMERA).rgba
    assert_same_picture(swapped, expected, 65 if layout == "paper10" else 80)
    behind, before = (rasterise([part], CAMERA).rgba for part in parts)
    for back, front in ((behind, before), (before, behind)):
        assert psnr(drawn, front + (1 - front[..., 3:]) * back) < 40, "one object simply over the other"


def test_an_object_drawn_several_times_with_its_own_matrix_and_pose():
    cloud, skin, poses = rigged(150, 2, 3)
    atlas = build_atlas([Source(cloud, skin)])
    places = [IDENTITY, MATRICES["turned"], MATRICES["mirrored"], affine(None, (0.2, 0.3, -0.2))]
    items = [
        Item(0, place, pose) for place, pose in zip(places, (poses[2], None, poses[4], poses[5]), strict=True)
    ]
    parts = [
        (cloud if i.transforms is None else baked(in_double(cloud), skin, i.transforms), i.matrix)
        for i in items
    ]
    assert_same_picture(draw_picture(atlas, items, CAMERA).rgba, rasterise(parts, CAMERA).rgba, 80)


def test_objects_with_and_without_bones_together():
    """An object without a skin is not moved by the bones of its neighbour, nor one at rest."""
    cloud, skin, poses = rigged(200, 1, 3)
    plain, _, _ = rigged(200, 3, seed=3)
    atlas = build_atlas([Source(plain), Source(cloud, skin), Source(cloud)])
    place = about(TURN, TARGET)
    items = [Item(0, IDENTITY, poses[2]), Item(1, IDENTITY, poses[2]), Item(2, place), Item(1, place)]
    parts = [
        (plain, IDENTITY),
        (baked(in_double(cloud), skin, poses[2]), IDENTITY),
        (cloud, place),
        (cloud, place),
    ]
    assert_same_picture(draw_picture(atlas, items, CAMERA).rgba, rasterise(parts, CAMERA).rgba, 80)


def test_as_many_items_as_are_allowed():
    cloud, skin, poses = rigged(8, 1, 2)
    cloud = replace(cloud, scales=cloud.scales * 2)
    rng = np.random.default_rng(2)
    atlas = build_atlas([Source(cloud, skin)])
    places = [affine(None, offset) for offset in rng.uniform(-0.4, 0.4, (MAX_ITEMS, 3))]
    items = [Item(0, place, poses[k % 8]) for k, place in enumerate(places)]
    assert upload_bones(bone_moves(atlas, items), items).capacity == 256
    parts = [(baked(in_double(cloud), skin, item.transforms), item.matrix) for item in items]
    assert_same_picture(draw_picture(atlas, items, CAMERA).rgba, rasterise(parts, CAMERA).rgba, 80)


def test_too_many_items_are_refused():
    cloud, _, _ = rigged(8, 1, 2)
    atlas = build_atlas([Source(cloud)])
    with pytest.raises(RigError, match="64 splat objects and instances at once, not 65; hide some"):
        draw_picture(atlas, [Item(0, IDENTITY)] * (MAX_ITEMS + 1), CAMERA)


def test_too_few_transforms_are_refused():
    """They would read the bones of the next object."""
    cloud, skin, poses = rigged(50, 1, 3)
    atlas = build_atlas([Source(cloud, skin)])
    with pytest.raises(RigError, match="names bone 2, but there are only 2 bone transforms"):
        draw_picture(atlas, [Item(0, IDENTITY, poses[2][:2])], CAMERA)
    more = np.concatenate([poses[2], np.full((2, 3, 4), np.nan)])
    expected = draw_picture(atlas, [Item(0, IDENTITY, poses[2])], CAMERA).rgba
    drawn = draw_picture(atlas, [Item(0, IDENTITY, more), Item(0, IDENTITY)], CAMERA)
    assert np.isfinite(drawn.rgba).all()
    np.testing.assert_array_equal(draw_picture(atlas, [Item(0, IDENTITY, more)], CAMERA).rgba, expected)
