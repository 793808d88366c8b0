"""What lies on the GPU: bytes a splat, quantised values as core has them, and a device's limits."""

import numpy as np
import pytest
from pictures import IDENTITY, LAYOUTS, assert_same_picture, baked, perspective, reference, rigged
from rigs import make_cloud

from gaussianimate.core.deform.deform import deform_points, jacobian_terms
from gaussianimate.core.errors import RigError
from gaussianimate.core.skinning.quantize import pack, unpack
from gaussianimate.core.skinning.skin import Skin
from gaussianimate.gaussianimate_addon.drawer.atlas import Source, build_atlas
from gaussianimate.gaussianimate_addon.drawer.draw import Item
from gaussianimate.gaussianimate_addon.drawer.offscreen import draw_picture

pytestmark = pytest.mark.usefixtures("device")

CAMERA = perspective()
SPLAT_BYTES = 64
SH_BYTES = {"exact": (0, 48, 96, 192), "compact": (0, 24, 48, 96), "paper10": (0, 24, 48, 96)}
SKIN_BYTES = {
    "exact": (16, 32, 48, 64),
    # The bones of exact skins lie in free values of the splats' texels.
    "compact": (10, 10, 20, 28),  # K = 1 is stored as 2; bones are in fours from three on
    "paper10": (8, 8, 8, 8),  # the second gradient is the first reversed
}


def texels(atlas, name, top):
    """Return a texture's texels (T, C) as the integers they stand for."""
    values = np.array(atlas.textures[name].read())
    if values.dtype == np.float32:
        np.testing.assert_allclose(values * top, np.rint(values * top), atol=0.01)
        values = np.rint(values * top)
    return values.astype(np.int64).reshape(-1, values.shape[-1])


def read_back(atlas, influences, layout):
    """Return the skin that textures hold: indices, integer weights and integer gradients."""
    count = len(atlas.spans[0])
    if layout == "paper10":
        table = texels(atlas, "skin_table", 255)[: 2 * count].reshape(count, 2, 4)
        return table[:, 0, :2], table[:, 0, 2:3], table[:, 1:, :3] - 128
    bones = texels(atlas, "bone_table", 255)[:count, :influences]
    table = texels(atlas, "skin_table", 65535)[: count * (influences - 1)].reshape(count, influences - 1, 4)
    return bones, table[..., 0], table[..., 1:] - 32768


@pytest.mark.parametrize("degree", range(4))
@pytest.mark.parametrize("influences", range(1, 5))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_is_that_of_the_formats(layout, influences, degree):
    count = 400
    cloud, skin, _ = rigged(count, degree, influences, joints=4)
    atlas = build_atlas([Source(cloud, skin)], layout)
    expected = SPLAT_BYTES + SH_BYTES[layout][degree] + SKIN_BYTES[layout][influences - 1]
    assert 0 <= atlas.memory - count * expected <= 64, "some texels more at most"
    without = build_atlas([Source(cloud)], layout)
    assert atlas.memory - without.memory == count * SKIN_BYTES[layout][influences - 1]


@pytest.mark.parametrize(
    ("layout", "influences"), (("paper10", 2), ("compact", 2), ("compact", 3), ("compact", 4))
)
def test_textures_hold_what_core_packs_and_keep_its_bounds(layout, influences):
    cloud, skin, poses = rigged(1000, 0, influences, joints=4)
    skin = Skin(np.where(skin.indices == 3, -1, skin.indices), skin.weights, skin.gradients)
    atlas = build_atlas([Source(cloud, skin)], layout)
    packed = pack(skin, layout)
    bones, weights, gradients = read_back(atlas, influences, layout)
    np.testing.assert_array_equal(bones, packed.records["bones"])
    np.testing.assert_array_equal(weights, packed.records["weights"][:, : influences - 1])
    np.testing.assert_array_equal(gradients, packed.records["gradients"][:, : influences - 1])
    assert atlas.spans[0].gradient_range == packed.gradient_range == np.abs(skin.gradients).max()

    top, steps = (255, 127) if layout == "paper10" else (65535, 32767)
    shares = np.concatenate([weights / top, 1 - weights.sum(axis=1, keepdims=True) / top], axis=1)
    slopes = gradients * (packed.gradient_range / steps)
    slopes = np.concatenate([slopes, -slopes.sum(axis=1, keepdims=True)], axis=1)
    held = Skin(np.where(bones == 255, -1, bones).astype(np.int32), np.maximum(shares, 0), slopes)
    as_core = unpack(packed)
    np.testing.assert_allclose(held.weights, as_core.weights, atol=1e-7)
    np.testing.assert_allclose(held.gradients, as_core.gradients, atol=1e-6 * packed.gradient_range)
    if influences == 2:
        check_bounds(cloud, skin, held, poses[2], 2 * top, 2 * steps)


def check_bounds(cloud, skin, held, transforms, weight_step, gradient_step):
    """|dp'| <= |u| / weight_step and |dR| <= |u| sqrt(3) g / gradient_step, u = (T_a - T_b) p."""
    p = cloud.positions.astype(np.float64)
    bones = np.concatenate([transforms, np.eye(3, 4)[None]])  # -1 is the last
    ends = [np.einsum("nab,nb->na", bones[i, :, :3], p) + bones[i, :, 3] for i in skin.indices.T]
    u, reach = np.linalg.norm(ends[0] - ends[1], axis=1), np.abs(skin.gradients).max()
    exact = Skin(skin.indices, skin.weights.astype(float), skin.gradients.astype(float))
    shift = np.linalg.norm(deform_points(p, held, transforms) - deform_points(p, exact, transforms), axis=1)
    assert (shift <= u / weight_step + 1e-6).all()
    assert shift.max() > 0.3 * (u / weight_step).max()
    same = Skin(skin.indices, exact.weights, held.gradients)
    bend = jacobian_terms(p, same, transforms)[1] - jacobian_terms(p, exact, transforms)[1]
    bound = u * np.sqrt(3) * reach / gradient_step + 1e-6
    assert (np.linalg.norm(bend, axis=(1, 2)) <= bound * (1 + 1e-6)).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_skins_of_different_width_share_an_atlas(layout):
    cloud, wide, poses = rigged(200, 1, 4, joints=4)
    parts = []
    for influences in (1, 2, 3):
        _, skin, _ = rigged(200, 1, influences, joints=4)
        parts.append(Source(cloud, skin))
    atlas = build_atlas([*parts, Source(cloud, wide), Source(cloud)], layout)
    assert atlas.influences == (2 if layout == "paper10" else 4)
    for span, source in enumerate(parts):
        drawn = draw_picture(atlas, [Item(span, IDENTITY, poses[2])], CAMERA).rgba
        posed = baked(cloud, source.skin, poses[2], layout=layout)
        assert_same_picture(drawn, reference(posed, CAMERA), 65 if layout == "paper10" else 75)
    drawn = draw_picture(atlas, [Item(4, IDENTITY, poses[2])], CAMERA).rgba
    assert_same_picture(drawn, reference(cloud, CAMERA), 80)


@pytest.mark.parametrize("limit", (4096, 256, 128, 90))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_small_devices_draw_the_same(layout, limit):
    cloud, skin, poses = rigged(450, 3, 3)
    atlas = build_atlas([Source(cloud, skin)], layout, limit=limit)
    assert atlas.notes == ()
    assert all(max(texture.width, texture.height) <= limit for texture in atlas.textures.values())
    drawn = draw_picture(atlas, [Item(0, IDENTITY, poses[2])], CAMERA).rgba
    as_usual = draw_picture(build_atlas([Source(cloud, skin)], layout), [Item(0, IDENTITY, poses[2])], CAMERA)
    np.testing.assert_array_equal(drawn, as_usual.rgba)


@pytest.mark.parametrize(("count", "degree"), ((500, 2), (1000, 1), (1020, 1)))
def test_colours_lose_degrees_where_a_device_is_too_small(count, degree):
    cloud, _, _ = rigged(count, 3)
    atlas = build_atlas([Source(cloud)], limit=64)
    (note,) = atlas.notes
    assert f"degree {degree}" in note
    assert atlas.spans[0].sh_degree == degree
    used = type(cloud)(**{**vars(cloud), "sh": cloud.sh[:, : (degree + 1) ** 2]})
    drawn = draw_picture(atlas, [Item(0, IDENTITY)], CAMERA).rgba
    assert_same_picture(drawn, reference(used, CAMERA), 80)


@pytest.mark.parametrize(("degree", "full"), ((3, 32), (2, 64)))
def test_colours_that_fill_a_texture_to_the_last_texel(degree, full):
    """Textures of 16 x 24; one texel must stay free."""
    for count, expected in ((full - 1, degree), (full, degree - 1), (full + 1, degree - 1)):
        atlas = build_atlas([Source(make_cloud(count, degree=degree))], limit=24)
        assert atlas.spans[0].sh_degree == expected


def test_a_device_that_is_too_small_says_so():
    with pytest.raises(RigError, match=r"holds 4,096 values in a texture.* needs 4,401; use Native display"):
        build_atlas([Source(make_cloud(1100))], limit=64)


@pytest.mark.parametrize("layout", ("compact", "paper10"))
@pytest.mark.parametrize(("bones", "packs"), ((255, True), (256, False)))
def test_skins_of_too_many_bones_are_not_packed(bones, packs, layout):
    cloud, skin, _ = rigged(200, 1, 2)
    many = Skin(
        np.where(np.arange(200)[:, None] == 7, [0, bones - 1], skin.indices), skin.weights, skin.gradients
    )
    atlas = build_atlas([Source(cloud, many)], layout)
    assert atlas.layout == (layout if packs else "exact")
    assert len(atlas.notes) == (not packs)
    if not packs:
        assert "255 bones" in atlas.notes[0]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_empty_clouds_and_scenes(layout):
    cloud, skin, poses = rigged(100, 2, 3)
    none = np.zeros(0, int)
    atlas = build_atlas([Source(cloud.take(none), skin.take(none)), Source(cloud)], layout)
    drawn = draw_picture(atlas, [Item(0, IDENTITY, poses[2]), Item(1, IDENTITY)], CAMERA).rgba
    assert_same_picture(drawn, reference(cloud, CAMERA), 80)
    for items in ([], [Item(0, IDENTITY, poses[2])]):
        assert not draw_picture(atlas, items, CAMERA).rgba.any()
    assert not draw_picture(build_atlas([], layout), [], CAMERA).rgba.any()
