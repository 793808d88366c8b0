"""Mesh files as captures, and their colours."""

import struct
from importlib import import_module

import numpy as np
import pytest

from gaussianimate.core.errors import FormatError, MissingDependencyError
from gaussianimate.core.formats import mesh_to_splats, read_capture, read_texture

trimesh = import_module("trimesh")


def box(frame=0):
    mesh = trimesh.creation.box()
    mesh.apply_translation([frame, 0, 0])
    return mesh


@pytest.mark.parametrize("suffix", ["obj", "ply", "glb"])
def test_mesh_sequence(tmp_path, suffix):
    for frame in range(12):
        box(frame).export(tmp_path / f"box{frame}.{suffix}")
    capture = read_capture(tmp_path)
    assert capture.positions.shape == (12, 8, 3) and capture.faces.shape == (12, 3)
    np.testing.assert_allclose(capture.positions.mean(axis=1)[:, 0], np.arange(12), atol=1e-6)
    assert capture.load_cloud is None and capture.name == "box"
    assert capture.up == ("y" if suffix == "glb" else None)
    assert any("12 meshes of 8 vertices" in note for note in capture.notes)


def test_one_mesh_and_vertex_colors(tmp_path):
    mesh = box()
    mesh.visual.vertex_colors = np.tile([255, 51, 0, 255], (8, 1))
    mesh.export(tmp_path / "a.ply")
    np.testing.assert_allclose(
        read_capture(tmp_path / "a.ply").colors, np.tile([1, 0.2, 0], (8, 1)), atol=1e-6
    )
    mesh.export(tmp_path / "a.glb")  # glTF's are linear: 0.2 is displayed as 0.4845
    np.testing.assert_allclose(
        read_capture(tmp_path / "a.glb").colors, np.tile([1, 0.4845, 0], (8, 1)), atol=1e-3
    )
    box().export(tmp_path / "plain.ply")
    assert read_capture(tmp_path / "plain.ply").colors is None


def test_other_topology_is_named(tmp_path):
    box().export(tmp_path / "a1.ply")
    other = box()
    other.faces = other.faces[:, [1, 2, 0]]
    other.export(tmp_path / "a2.ply")
    with pytest.raises(FormatError, match=r"a2.ply \(frame 1\).*joins them otherwise"):
        read_capture(tmp_path)
    trimesh.creation.icosphere().export(tmp_path / "a2.ply")
    with pytest.raises(FormatError, match=r"a2.ply \(frame 1\): the mesh has 642 vertices"):
        read_capture(tmp_path)


def test_damaged_meshes(tmp_path):
    for name, data in {
        "a.obj": b"v 0 0 0\nv 1 0 0\nf 1 2 9\n",
        "b.obj": b"hello",
        "c.glb": b"glTF\x02\x00\x00\x00\xff\x00\x00\x00",
        "d.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\n",
    }.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(FormatError, match="mesh"):
            read_capture(tmp_path / name)


def test_mutated_meshes_give_a_capture_or_one_sentence(tmp_path):
    for suffix in ("obj", "ply", "glb"):
        data = box().export(file_type=suffix)
        data = data.encode() if isinstance(data, str) else data
        for seed in range(60):
            rng = np.random.default_rng(seed)
            mutant = bytearray(data)
            for _ in range(3):
                mutant[rng.integers(len(mutant))] = rng.integers(256)
            path = tmp_path / f"fuzz.{suffix}"
            path.write_bytes(bytes(mutant[: rng.integers(1, len(mutant))] if seed % 3 == 0 else mutant))
            try:
                capture = read_capture(path)
            except FormatError:
                continue
            assert np.isfinite(capture.positions).all()


def textured_quad(tmp_path, suffix):
    """A unit square whose texture is red left, blue right, and dark in the lower half."""
    image = np.zeros((64, 64, 3), np.uint8)
    image[:, :32, 0], image[:, 32:, 2] = 200, 200
    image[32:] //= 2
    pillow = import_module("PIL.Image")
    material = trimesh.visual.material.PBRMaterial(baseColorTexture=pillow.fromarray(image))
    if suffix == "obj":
        material = trimesh.visual.material.SimpleMaterial(image=pillow.fromarray(image))
    corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], float)
    mesh = trimesh.Trimesh(np.c_[corners, np.zeros(4)], [[0, 1, 2], [0, 2, 3]], process=False)
    mesh.visual = trimesh.visual.TextureVisuals(uv=corners, material=material)
    mesh.export(tmp_path / f"quad.{suffix}")
    return tmp_path / f"quad.{suffix}"


@pytest.mark.parametrize("suffix", ["glb", "obj"])
def test_texture_colours_the_splats(tmp_path, suffix):
    path = textured_quad(tmp_path, suffix)
    splats = mesh_to_splats(read_capture(path), 2000, texture=read_texture(path)).load_cloud(0)
    colors = splats.sh[:, 0] * 0.28209479 + 0.5
    x, y = splats.positions[:, 0], splats.positions[:, 1]
    clear = (
        (np.abs(x - 0.5) > 0.02)
        & (np.abs(y - 0.5) > 0.02)
        & (np.abs(x - 0.5) < 0.48)
        & (np.abs(y - 0.5) < 0.48)
    )
    bright = np.where(y > 0.5, 200, 100) / 255
    expected = np.stack([np.where(x < 0.5, bright, 0), 0 * x, np.where(x < 0.5, 0, bright)], axis=1)
    np.testing.assert_allclose(colors[clear], expected[clear], atol=0.01)
    assert clear.sum() > 1500


def test_mesh_without_texture_has_none(tmp_path):
    box().export(tmp_path / "a.ply")
    assert read_texture(tmp_path / "a.ply") is None


def test_animation_inside_glb_is_noted(tmp_path):
    data = bytearray(box().export(file_type="glb"))
    (length,) = struct.unpack_from("<I", data, 12)
    json_text = data[20 : 20 + length].rstrip(b" ")
    new = bytes(json_text[:-1]) + b',"animations":[{"channels":[],"samplers":[]}]}'
    new += b" " * (-len(new) % 4)
    data[20 : 20 + length] = new
    struct.pack_into("<I", data, 12, len(new))
    struct.pack_into("<I", data, 8, len(data))
    (tmp_path / "a.glb").write_bytes(bytes(data))
    assert any("animation inside a.glb was not read" in n for n in read_capture(tmp_path / "a.glb").notes)


def test_without_trimesh_the_message_says_how_to_get_it(tmp_path, monkeypatch):
    box().export(tmp_path / "a.obj")
    monkeypatch.setitem(__import__("sys").modules, "trimesh", None)
    with pytest.raises(MissingDependencyError, match="pip install trimesh"):
        read_capture(tmp_path / "a.obj")
