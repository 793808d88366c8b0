"""Pictures in files: what was written is read, by Blender and by the format's description."""

import bpy
import numpy as np
import pytest
from exr_reader import read_exr

from gaussianimate.core.errors import FormatError
from gaussianimate.core.render.exr_writer import write_exr
from gaussianimate.gaussianimate_addon.picture_files import write_exr_picture, write_png_picture

SHAPE = (37, 53)  # the last block is shorter than the others


def picture(seed=0, shape=SHAPE):
    rng = np.random.default_rng(seed)
    alpha = np.linspace(0, 1, shape[1], dtype=np.float32) * np.ones((shape[0], 1), np.float32)
    alpha[:10] = 0
    return np.dstack([rng.uniform(0, 1, (*shape, 3)).astype(np.float32) * alpha[..., None], alpha])


def read_image(path):
    image = bpy.data.images.load(str(path))
    pixels = np.array(image.pixels[:], np.float32).reshape(image.size[1], image.size[0], 4)
    bpy.data.images.remove(image)
    return pixels


@pytest.mark.parametrize("kind", (np.float16, np.float32))
@pytest.mark.parametrize("shape", (SHAPE, (1, 1), (16, 5), (33, 1)))
def test_blender_reads_what_was_written(scene, tmp_path, kind, shape):
    values = np.random.default_rng(1).normal(size=(*shape, 4)).astype(kind)
    values[: shape[0] // 2] = 0.25  # packed well; noise is stored as it is
    values[..., 3] = np.abs(values[..., 3])
    write_exr(tmp_path / "a.exr", dict(zip("RGBA", np.moveaxis(values, -1, 0), strict=True)))
    np.testing.assert_array_equal(read_image(tmp_path / "a.exr"), values.astype(np.float32))


def test_channels_of_both_kinds(tmp_path):
    rgba, depth = picture(), np.random.default_rng(2).uniform(1, 9, SHAPE).astype(np.float32)
    depth[:10] = np.inf
    write_exr_picture(tmp_path / "a.exr", rgba, depth, 16, pixel_aspect=2.0)
    channels, attributes = read_exr(tmp_path / "a.exr")
    assert list(channels) == ["A", "B", "Depth.Z", "G", "R"], "channels are in the order of their names"
    for i, name in enumerate("RGBA"):
        assert channels[name].dtype == np.float16
        np.testing.assert_array_equal(channels[name], rgba[..., i].astype(np.float16))
    np.testing.assert_array_equal(channels["Depth.Z"], np.where(np.isinf(depth), np.float32(1e10), depth))
    assert np.frombuffer(attributes["pixelAspectRatio"], "<f4") == 2


def test_compositor_finds_the_depth(scene, tmp_path):
    write_exr_picture(tmp_path / "a.exr", picture(), np.ones(SHAPE, np.float32), 16)
    node = bpy.data.node_groups.new("layers", "CompositorNodeTree").nodes.new("CompositorNodeImage")
    node.image = bpy.data.images.load(str(tmp_path / "a.exr"))
    assert {"Combined", "Depth"} <= {socket.name for socket in node.outputs}


def test_colours_too_bright_for_half_precision_stay_finite(tmp_path):
    write_exr_picture(tmp_path / "a.exr", np.full((2, 2, 4), 1e6, np.float32), None, 16)
    channels, _ = read_exr(tmp_path / "a.exr")
    assert (channels["R"] == np.finfo(np.float16).max).all()


@pytest.mark.parametrize("bits", (8, 16))
def test_png_is_straight_and_encoded(scene, tmp_path, bits):
    scene.view_settings.view_transform, scene.render.dither_intensity = "Standard", 0
    settings = scene.render.image_settings
    settings.media_type = "VIDEO"
    settings.file_format = "FFMPEG"
    rgba = picture()
    write_png_picture(tmp_path / "a.png", rgba, scene, bits)
    assert (settings.media_type, settings.file_format) == ("VIDEO", "FFMPEG")
    assert (tmp_path / "a.png").read_bytes()[24:26] == bytes([bits, 6]), "depth; colour with alpha"
    shown = read_image(tmp_path / "a.png")
    step = 1 / (2**bits - 1)
    np.testing.assert_allclose(shown[..., 3], rgba[..., 3], atol=0.51 * step)
    seen = rgba[..., 3] > 0.1
    straight, read = rgba[..., :3][seen] / rgba[..., 3:][seen], shown[..., :3][seen]
    if bits == 16:  # which Blender loads as premultiplied scene-linear floats
        read = encode(read / shown[..., 3:][seen])
    np.testing.assert_allclose(read, encode(straight), atol=0.6 * step + 5e-5)
    assert not bpy.data.images


def encode(linear):
    return np.where(
        linear <= 0.0031308, 12.92 * linear, 1.055 * np.maximum(linear, 1e-9) ** (1 / 2.4) - 0.055
    )


def test_png_takes_the_scenes_view(scene, tmp_path):
    rgba = np.ones((4, 4, 4), np.float32) * np.float32([0.2, 0.4, 0.1, 1])
    shown = []
    for transform, exposure in (("Standard", 0), ("AgX", 0), ("Standard", 1)):
        scene.view_settings.view_transform, scene.view_settings.exposure = transform, exposure
        write_png_picture(tmp_path / "a.png", rgba, scene, 8)
        shown.append(read_image(tmp_path / "a.png")[0, 0, :3])
    np.testing.assert_allclose(shown[0], encode(rgba[0, 0, :3]), atol=2 / 255)
    np.testing.assert_allclose(shown[2], encode(2 * rgba[0, 0, :3]), atol=2 / 255)
    assert np.abs(shown[1] - shown[0]).max() > 0.02


@pytest.mark.parametrize("kind", ("png", "exr"))
def test_a_refused_file_leaves_nothing_half_written(scene, tmp_path, kind):
    path = tmp_path / f"a.{kind}"
    path.mkdir()
    with pytest.raises(FormatError, match=f"a.{kind}: the file cannot be written"):
        if kind == "png":
            write_png_picture(path, picture(), scene, 8)
        else:
            write_exr_picture(path, picture(), None, 16)
    (tmp_path / "file").touch()
    with pytest.raises(FormatError, match="the file cannot be written"):
        if kind == "png":
            write_png_picture(tmp_path / "file" / "a.png", picture(), scene, 8)
        else:
            write_exr_picture(tmp_path / "file" / "a.exr", picture(), None, 16)
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "file"]
    assert not bpy.data.images
