"""Checks of compressed splat files before they are handed to a decoder that trusts them.

gaussforge reads beyond its buffers, or asks for gigabytes, where a damaged header promises more than the file
holds; what is checked here is what it takes for granted.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from os import PathLike
from typing import Any

from ..errors import FormatError
from .memory import cloud_bytes, require_memory
from .ply_body import check_size
from .ply_header import read_header
from .ply_reader import EmptyCloudError

HARMONICS_VALUES = (0, 9, 24, 45)


def _require_size(path: str | PathLike[str], count: int, expected: int, actual: int) -> None:
    if count == 0:
        raise EmptyCloudError(path, "the file holds 0 splats")
    if actual < expected:
        raise FormatError(
            path, f"the file is cut short: {count:,} splats need {expected:,} bytes, it has {actual:,}"
        )


def _check_compressed_ply(data: bytes, path: str | PathLike[str]) -> None:
    stream = io.BytesIO(data)
    header = read_header(stream, path)
    vertices, chunks, sh = (header.element(name) for name in ("vertex", "chunk", "sh"))
    assert vertices is not None  # detection found packed_position
    if vertices.count == 0:
        raise EmptyCloudError(path, "the file holds 0 splats")
    if chunks is None or len(chunks.properties) != 18 or len(vertices.properties) != 4:
        raise FormatError(
            path, "the chunks or vertices of this compressed PLY are not those of the format: save it anew"
        )
    if sh is not None and (sh.count != vertices.count or len(sh.properties) not in HARMONICS_VALUES):
        raise FormatError(path, "the harmonics of this compressed PLY do not fit its splats")
    if any(e.has_lists for e in header.elements):
        raise FormatError(path, "this compressed PLY has list properties, which the format has not")
    check_size(stream, header, header.elements[-1])
    require_memory(path, vertices.count, cloud_bytes(3))


def _check_splat(data: bytes, path: str | PathLike[str]) -> None:
    if len(data) % 32:
        raise FormatError(path, f"{len(data):,} bytes are no multiple of 32: this is no .splat, or cut short")


def _check_ksplat(data: bytes, path: str | PathLike[str]) -> None:
    """Follow the layout of GaussianSplats3D's SplatBuffer: header, section headers, sections."""
    if len(data) < 4096 or data[0] != 0 or data[1] < 1:
        raise FormatError(path, "this is not a .ksplat file of a known version, or it is cut short")
    sections, splats = struct.unpack_from("<I", data, 4)[0], struct.unpack_from("<I", data, 16)[0]
    (mode,) = struct.unpack_from("<H", data, 20)
    _require_size(path, splats, 4096 + 1024 * sections, len(data))
    if mode > 2:
        raise FormatError(path, f"the compression mode {mode} of this .ksplat file is not known")
    offset, found = 4096 + 1024 * sections, 0
    for section in range(sections):
        offset, count = _check_ksplat_section(data, path, 4096 + 1024 * section, offset, mode)
        found += count
    if found != splats:
        raise FormatError(path, f"the .ksplat header promises {splats:,} splats, its sections hold {found:,}")


def _check_ksplat_section(
    data: bytes, path: str | PathLike[str], header: int, offset: int, mode: int
) -> tuple[int, int]:
    """Check one section; return the offset of the next one and the number of splats."""
    count, capacity, bucket_size, buckets = struct.unpack_from("<4I", data, header)
    (storage,) = struct.unpack_from("<H", data, header + 20)
    full, partial = struct.unpack_from("<2I", data, header + 32)
    (degree,) = struct.unpack_from("<H", data, header + 40)
    if degree > 3 or count > capacity:
        raise FormatError(path, "a section header of this .ksplat file is damaged")
    row = (44, 24, 24)[mode] + HARMONICS_VALUES[degree] * (4, 2, 1)[mode]
    row = (row + 3) // 4 * 4
    end = offset + 4 * partial + storage * buckets + row * capacity
    _require_size(path, capacity or 1, end, len(data))
    if mode:  # positions are relative to their bucket's centre
        sizes = struct.unpack_from(f"<{partial}I", data, offset)
        in_buckets = full * bucket_size + sum(sizes)
        if storage < 12 or full + partial > buckets or in_buckets < count or (full and not bucket_size):
            raise FormatError(path, "the buckets of this .ksplat file are damaged")
    return end, count


def _check_spz(data: bytes, path: str | PathLike[str]) -> None:
    """Compare the size a gzipped SPZ (versions 1 to 3) unpacks to with what its header promises."""
    if data.startswith(b"NGSP"):
        _check_spz_streams(data, path)
        return
    try:
        head = zlib.decompressobj(31).decompress(data, 16)
    except zlib.error as error:
        raise FormatError(path, f"the .spz data cannot be unpacked ({error})") from None
    if len(head) < 16 or head[:4] != b"NGSP":
        raise FormatError(path, "this gzip archive is not an SPZ file")
    version, count, degree = struct.unpack_from("<IIB", head, 4)
    if version not in (1, 2, 3) or degree > 3:
        raise FormatError(path, f"SPZ version {version} with harmonics of degree {degree} is not known")
    each = (6 if version == 1 else 9) + 1 + 3 + 3 + (3 if version < 3 else 4) + HARMONICS_VALUES[degree]
    (unpacked,) = struct.unpack_from("<I", data, len(data) - 4)
    _require_size(path, count, (16 + count * each) % 2**32, unpacked)
    require_memory(path, count, cloud_bytes(3))


def _check_spz_streams(data: bytes, path: str | PathLike[str]) -> None:
    if len(data) < 32:
        raise FormatError(path, "the file is cut short: not even its header is whole")
    _version, count, degree = struct.unpack_from("<IIB", data, 4)
    if degree > 3:
        raise FormatError(path, f"SPZ harmonics of degree {degree} are not known")
    if count == 0:
        raise EmptyCloudError(path, "the file holds 0 splats")
    # zstd packs a long run at most some ten thousand times: more splats than that are a damaged count.
    _require_size(path, count, count * 20 // 20_000, len(data))
    require_memory(path, count, cloud_bytes(3))


def _check_sog(data: bytes, path: str | PathLike[str]) -> None:
    """Check the archive's checksums, and that what its meta.json promises fits the images."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            damaged = archive.testzip()
            if damaged:
                raise ValueError(damaged)
            meta = json.loads(archive.read("meta.json"))
            count = int(meta["count"] if "count" in meta else meta["means"]["shape"][0])
            problem = _sog_problem(meta, count, archive)
    except Exception as error:  # zipfile and json meet damage with a dozen exception types
        raise FormatError(path, f"the .sog archive is damaged or cut short ({error})") from error
    if count == 0:
        raise EmptyCloudError(path, "the file holds 0 splats")
    if problem:
        raise FormatError(path, f"the .sog archive is damaged ({problem})")
    require_memory(path, count, cloud_bytes(3))


def _sog_problem(meta: dict[str, Any], count: int, archive: zipfile.ZipFile) -> str:
    """Return what does not fit, "" where all is well. One pixel is one splat, bar the centroids."""
    images = {"means": 2, "scales": 1, "quats": 1, "sh0": 1, **({"shN": 2} if "shN" in meta else {})}
    for part, number in images.items():
        files = meta[part]["files"]
        if len(files) != number:
            return f"{part} names {len(files)} images"
        for name in files:
            width, height = _webp_size(archive.read(name))
            if "centroids" not in name and width * height < count:
                return f"{name} has {width} x {height} pixels for {count} splats"
        if len(meta[part].get("codebook", range(256))) != 256:
            return f"the codebook of {part} has not 256 entries"
    if "shN" in meta and "bands" in meta["shN"]:
        bands, centroids = int(meta["shN"]["bands"]), int(meta["shN"]["count"])
        width, height = _webp_size(archive.read(meta["shN"]["files"][0]))
        if not 1 <= bands <= 3 or centroids < 1 or width * height < centroids * ((bands + 1) ** 2 - 1):
            return "the palette of its harmonics does not fit its image"
    return ""


def _webp_size(image: bytes) -> tuple[int, int]:
    """Return width and height of a lossless WebP, the only kind in a .sog."""
    if image[:4] != b"RIFF" or image[8:16] != b"WEBPVP8L":
        raise ValueError("an image is not a lossless WebP")
    (bits,) = struct.unpack_from("<I", image, 21)
    return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1


CHECKS: dict[str, Callable[[bytes, str | PathLike[str]], None]] = {
    "compressed.ply": _check_compressed_ply,
    "splat": _check_splat,
    "ksplat": _check_ksplat,
    "spz": _check_spz,
    "sog": _check_sog,
}
