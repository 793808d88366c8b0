"""Arrows along the gradients of weights: which splats have one, where it points, and what hides it."""

from dataclasses import replace

import numpy as np
import pytest
from pictures import HEIGHT, IDENTITY, LAYOUTS, WIDTH, affine, orthographic, rigged, rotation

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.skinning.skin import Skin
from gaussianimate.gaussianimate_addon.drawer.atlas import Source, build_atlas
from gaussianimate.gaussianimate_addon.drawer.draw import Item, Shading
from gaussianimate.gaussianimate_addon.drawer.gradient_arrows import LIMIT, SPACING, arrow_rows
from gaussianimate.gaussianimate_addon.drawer.offscreen import draw_picture

pytestmark = pytest.mark.usefixtures("device")
CAMERA = orthographic(eye=(0, -5, 0), target=(0, 0, 0), span=0.1)
STILL = np.broadcast_to(np.eye(3, 4), (2, 3, 4))
MARK_FIRST = np.array([1, 0], np.float32)


def draw(atlas, items, camera=CAMERA, **settings):
    """Return splats and arrows as a picture (H, W, 4), row 0 at the bottom."""
    return draw_picture(atlas, items, camera, Shading(gradients=True, **settings)).rgba


def two_splats(front_opacity=0.0):
    """A splat whose first bone's weight grows along X, and a large one 1 m in front of it."""
    cloud = GaussianCloud(
        positions=np.float32([[0, 0, 0], [0, -1, 0]]),
        rotations=np.float32([[1, 0, 0, 0]] * 2),
        scales=np.float32([[0.02] * 3, [0.5] * 3]),
        opacities=np.float32([0.01, front_opacity]),
        sh=np.zeros((2, 1, 3), np.float32),
    )
    gradients = np.zeros((2, 2, 3), np.float32)
    gradients[0, :, 0] = 40, -40
    skin = Skin(np.int32([[0, 1]] * 2), np.full((2, 2), 0.5, np.float32), gradients)
    return cloud, skin


def white(picture):
    """Return pixels (n, 2), from the middle, of light arrows."""
    rows, columns = np.nonzero(picture[..., :3].min(axis=2) > 0.9)
    return np.column_stack([columns - WIDTH / 2, rows - HEIGHT / 2])


def test_an_arrow_points_along_the_posed_gradient():
    atlas = build_atlas([Source(*two_splats())])
    for angle in (0.0, 0.7, np.pi / 2, -2.5):
        turn = affine(rotation((0, -1, 0), angle))[:3]  # counter-clockwise for the camera
        item = Item(0, IDENTITY, np.stack([turn, turn]), marks=MARK_FIRST)
        pixels = white(draw(atlas, [item]))
        assert len(pixels) > 5
        direction = pixels.mean(axis=0)
        assert np.dot(direction / np.linalg.norm(direction), (np.cos(angle), np.sin(angle))) > 0.98
        along = pixels @ (np.cos(angle), np.sin(angle))
        assert along.min() > -2 and along.max() > 2


def test_the_other_bone_s_arrow_points_the_other_way():
    atlas = build_atlas([Source(*two_splats())])
    marked = [Item(0, IDENTITY, STILL, marks=np.float32(marks)) for marks in ((1, 0), (0, 1), (1, 1))]
    right, left, none = (white(draw(atlas, [item])) for item in marked)
    assert right[:, 0].mean() > 1 and left[:, 0].mean() < -1 and not len(none)


def test_opaque_splats_hide_arrows():
    for opacity, seen in ((0.0, True), (0.2, True), (0.99, False)):
        atlas = build_atlas([Source(*two_splats(opacity))])
        item = Item(0, IDENTITY, STILL, marks=MARK_FIRST)
        picture = draw(atlas, [item])
        without = np.abs(picture - draw(atlas, [replace(item, marks=None)])).max() < 1e-6
        assert without != seen


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("joints", [3, 300])
def test_arrows_are_drawn_in_every_layout(layout, joints):
    """300 bones lie in a larger buffer than 3; the packed layouts fall back to the exact one for them."""
    cloud, skin, poses = rigged(count=400, degree=0, influences=2, joints=3)
    cloud = replace(cloud, opacities=np.full(400, 0.3, np.float32))
    transforms = np.concatenate([poses[1], np.broadcast_to(np.eye(3, 4), (joints - 3, 3, 4))])
    marks = np.zeros(joints, np.float32)
    marks[1] = 1
    atlas = build_atlas([Source(cloud, skin)], layout)
    item = Item(0, IDENTITY, transforms, marks=marks)
    camera = orthographic(eye=(0.9, -5, 0), target=(0.9, 0, 0), span=0.4)
    with_arrows = draw(atlas, [item], camera)
    changed = np.abs(with_arrows - draw(atlas, [replace(item, marks=None)], camera)).max(axis=2) > 0.1
    assert np.isfinite(with_arrows).all() and 20 < changed.sum() < changed.size / 2


def test_arrows_are_where_the_weight_changes_and_spread_evenly():
    cloud, skin, poses = rigged(count=20_000, degree=0, joints=3)
    atlas = build_atlas([Source(cloud, skin), Source(cloud, skin)])
    (span, _) = atlas.spans
    marks = np.float32([0, 1, 0])
    items = [Item(i, IDENTITY, poses[0], marks=marks) for i in range(2)]
    rows = arrow_rows(atlas, items)
    assert 50 < len(rows) <= LIMIT and len(np.unique(rows)) == len(rows)
    np.testing.assert_array_equal(rows[: len(rows) // 2] + len(cloud), rows[len(rows) // 2 :])
    chosen = rows[: len(rows) // 2]
    weight = (skin.weights * (skin.indices == 1)).sum(axis=1)[chosen]
    assert weight.min() < 0.3 and weight.max() > 0.7
    cells = np.floor(span.local[chosen] / (SPACING * span.radius)).astype(int)
    assert len(np.unique(cells, axis=0)) == len(chosen)


def test_nothing_marked_or_posed_has_no_arrows():
    cloud, skin, poses = rigged(joints=3)
    atlas = build_atlas([Source(cloud, skin), Source(cloud)])
    marks = np.float32([0, 1, 0])
    for item in (
        Item(0, IDENTITY, poses[0]),
        Item(0, IDENTITY, poses[0], marks=0 * marks),
        Item(0, IDENTITY, None, marks=marks),
        Item(1, IDENTITY),
    ):
        assert not len(arrow_rows(atlas, [item]))
        assert np.abs(draw(atlas, [item]) - draw(atlas, [replace(item, marks=None)])).max() == 0
