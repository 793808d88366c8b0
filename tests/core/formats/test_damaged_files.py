"""Whatever is in a file: a clean cloud or one FormatError sentence, and nothing else."""

import gzip
import random
import shutil
import zipfile
from importlib import import_module

import numpy as np
import pytest

from gaussianimate.core.errors import FormatError
from gaussianimate.core.formats import memory, read_capture, read_cloud
from gaussianimate.core.formats.ply_reader import read_ply

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 123\n"


def test_git_lfs_pointer_is_told(tmp_path):
    for name in ("a.ply", "a.splat", "a.spz", "a.npz"):
        (tmp_path / name).write_bytes(LFS)
        with pytest.raises(FormatError, match="Git LFS pointer.*git lfs pull"):
            read_cloud(tmp_path / name)


def test_a_splat_renamed_ply_is_told_with_its_first_bytes(tmp_path):
    data = np.arange(16, dtype="f4").tobytes()
    (tmp_path / "a.ply").write_bytes(data)
    with pytest.raises(FormatError, match=r"not a PLY file \(it starts with b'"):
        read_cloud(tmp_path / "a.ply")


def test_archives_and_strangers_are_told(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.ply", "w") as archive:
        archive.writestr("inside.ply", "ply")
    with pytest.raises(FormatError, match="zip archive: unpack it"):
        read_cloud(tmp_path / "a.ply")
    (tmp_path / "b.ply").write_bytes(gzip.compress(b"ply\n"))
    with pytest.raises(FormatError, match="gzip archive: unpack it"):
        read_cloud(tmp_path / "b.ply")
    (tmp_path / "c.ply").write_bytes(b"<!DOCTYPE html><html>")
    with pytest.raises(FormatError, match="<!DOCTYPE"):
        read_cloud(tmp_path / "c.ply")
    (tmp_path / "d.txt").write_bytes(b"hello")
    with pytest.raises(FormatError, match="of no known kind"):
        read_cloud(tmp_path / "d.txt")


def test_empty_and_missing_files(tmp_path):
    (tmp_path / "a.ply").write_bytes(b"")
    with pytest.raises(FormatError, match="empty: 0 bytes"):
        read_cloud(tmp_path / "a.ply")
    with pytest.raises(FormatError, match="cannot be opened"):
        read_cloud(tmp_path / "b.ply")


def test_zero_vertices_is_an_error(splats):
    columns = {name: np.zeros(0, "f4") for name in splats.names(0)}
    for read in (read_cloud, read_capture):
        with pytest.raises(FormatError, match="holds 0 splats"):
            read(splats.write(columns=columns))


def test_truncation_names_expected_and_actual_bytes(splats):
    path = splats.write()
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(FormatError) as info:
        read_cloud(path)
    assert f"need {len(whole):,} bytes, it has {len(whole) - 30:,}" in str(info.value)


@pytest.mark.parametrize("order", ["binary_little_endian", "binary_big_endian", "ascii"])
def test_count_larger_than_the_data(splats, order):
    with pytest.raises(FormatError, match="cut short.*1,000 rows"):
        read_cloud(splats.write(order=order, count=1000))


def test_forty_million_splats_end_in_one_sentence(splats, tmp_path, monkeypatch):
    head = splats.bytes({name: np.zeros(0, "f4") for name in splats.names(3)}, count=40_000_000)
    path = tmp_path / "huge.ply"
    with path.open("wb") as stream:
        stream.write(head)
        stream.truncate(len(head) + 40_000_000 * 62 * 4)
    monkeypatch.setattr(memory, "available_memory", lambda: 8 << 30)
    for read in (read_cloud, read_capture):
        with pytest.raises(FormatError, match=r"40,000,000 splats need about 17.6 GiB .* 8.0 GiB are free"):
            read(path)


def test_available_memory_is_plausible():
    available = memory.available_memory()
    assert available is None or 1 << 24 < available < 1 << 50


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b"format binary_little_endian 1.0\n", b"", "no valid format"),
        (b"binary_little_endian", b"binary_middle_endian", "not understood"),
        (b"property float x", b"property quux x", "'property quux x' is not understood"),
        (b"property float y", b"property float x", "'x' of 'vertex' twice"),
        (b"element vertex 8", b"element vertex -8", "not understood"),
        (b"element vertex", b"element point", "not understood|no vertices"),
        (b"end_header", b"end_heads!", "no end"),
        (b"property float z", b"property list uchar float z", "list properties"),
    ],
)
def test_damaged_headers(splats, old, new, problem):
    path = splats.write()
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.raises(FormatError, match=problem):
        read_cloud(path)


def assert_clean_or_format_error(read, path):
    try:
        cloud = read(path)
    except FormatError as error:
        text = str(error)
        assert text.startswith(str(path)) and "\n" not in text and len(text) < 600
        return False
    for values in (cloud.positions, cloud.rotations, cloud.scales, cloud.opacities, cloud.sh):
        assert np.isfinite(values).all()
    np.testing.assert_allclose(np.linalg.norm(cloud.rotations, axis=1), 1, atol=1e-5)
    assert len(cloud) > 0 and (cloud.scales >= 0).all()
    return True


def mutate(data, rng, span):
    """Change, insert, delete or cut bytes, mostly within the first `span`."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(min(span, len(data)) if rng.random() < 0.7 else len(data))
        match rng.randrange(4):
            case 0:
                data[at] = rng.choice([0, 1, 9, 10, 13, 32, 45, 48, 57, 127, 255, rng.randrange(256)])
            case 1:
                del data[at : at + rng.randint(1, 8)]
            case 2:
                data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 8)))
            case 3:
                data = data[: max(at, 1)] if rng.random() < 0.3 else data
        if not data:
            break
    return bytes(data)


@pytest.mark.parametrize("order", ["binary_little_endian", "binary_big_endian", "ascii"])
def test_mutated_ply_gives_a_cloud_or_one_sentence(splats, tmp_path, order):
    element = (["element face 1", "property list uchar int vertex_indices"], b"\x03" + bytes(12))
    if order == "ascii":
        element = (element[0], b"3 0 1 2\n")
    data = splats.bytes(
        splats.columns(6, 1), order=order, before=[element], comments=["comment made by hand"]
    )
    header = data.index(b"end_header") + 11
    path = tmp_path / "fuzz.ply"
    outcomes = []
    for seed in range(600):
        path.write_bytes(mutate(data, random.Random(seed), header))
        outcomes.append(assert_clean_or_format_error(lambda p: read_cloud(p)[0], path))
    assert any(outcomes) and not all(outcomes)


def test_random_bit_patterns_give_clean_clouds(splats, tmp_path):
    rng = np.random.default_rng(5)
    for seed in range(100):
        columns = splats.columns(20, 1, seed)
        for name in rng.choice(list(columns), 4):
            columns[name][rng.integers(20, size=5)] = rng.integers(2**32, size=5, dtype=np.uint32).view("f4")
        path = splats.write(columns=columns)
        assert_clean_or_format_error(lambda p: read_cloud(p)[0], path)


@pytest.mark.parametrize("kind", ["compressed.ply", "splat", "ksplat", "spz", "sog"])
def test_mutated_compressed_files_give_a_cloud_or_one_sentence(splats, tmp_path, kind):
    gaussforge = import_module("gaussforge")
    data = gaussforge.GaussForge().convert(splats.bytes(splats.columns(40, 1)), "ply", kind)["data"]
    path = tmp_path / f"fuzz.{kind}"
    outcomes = []
    for seed in range(300):
        rng = random.Random(seed)
        path.write_bytes(mutate(data, rng, 5300 if kind == "ksplat" else 400))
        outcomes.append(assert_clean_or_format_error(lambda p: read_cloud(p)[0], path))
    assert not all(outcomes)


@pytest.mark.parametrize("version", [2, 3])
def test_mutated_content_of_spz_gives_a_cloud_or_one_sentence(splats, tmp_path, version):
    gaussforge = import_module("gaussforge")
    ply = splats.bytes(splats.columns(40, 1))
    data = gzip.decompress(gaussforge.GaussForge().convert(ply, "ply", "spz", spz_version=version)["data"])
    path = tmp_path / "fuzz.spz"
    for seed in range(150):
        path.write_bytes(gzip.compress(mutate(data, random.Random(seed), 16), 1))
        assert_clean_or_format_error(lambda p: read_cloud(p)[0], path)


def test_mutated_archives_give_a_capture_or_one_sentence(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "a.npz",
        vertices=rng.normal(size=(3, 5, 3)),
        quat_wxyz=rng.normal(size=(3, 5, 4)),
        scales=np.full((5, 3), 0.1),
    )
    data = (tmp_path / "a.npz").read_bytes()
    path = tmp_path / "fuzz.npz"
    for seed in range(200):
        path.write_bytes(mutate(data, random.Random(seed), len(data)))
        assert_clean_or_format_error(lambda p: read_capture(p).load_cloud(1), path)


def test_a_file_that_shrinks_after_the_import_is_told(splats, tmp_path):
    path = splats.write("a.ply", splats.columns(20))
    capture = read_capture(path)
    splats.write("a.ply", splats.columns(19))
    with pytest.raises(FormatError, match="changed since"):
        capture.load_cloud(0)
    shutil.rmtree(tmp_path)
    with pytest.raises(FormatError, match="cannot be opened"):
        capture.load_cloud(0)


def test_raw_reader_keeps_every_row(splats):
    columns = splats.columns(5)
    columns["x"][3] = np.nan
    raw = read_ply(splats.write(columns=columns))
    assert len(raw.cloud) == 5
    np.testing.assert_array_equal(raw.faults != 0, [0, 0, 0, 1, 0])
