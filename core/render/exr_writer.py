"""Pictures to OpenEXR files, written whole or not at all. Needs numpy only.

The layout of the file is that of *OpenEXR File Layout* (openexr.com): one part of scan lines, blocks of 16
lines, each compressed losslessly (ZIP).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..atomic_file import replacing

MAGIC, VERSION = 20000630, 2
LINES = 16  # of a block
LEVEL = 4  # of zlib: 6 takes twice as long for a few per cent
ZIP, INCREASING_Y = b"\3", b"\0"
KINDS = {"float16": 1, "float32": 2}
REC709 = (0.64, 0.33, 0.3, 0.6, 0.15, 0.06, 0.3127, 0.329)  # red, green, blue, white point


def write_exr(
    path: str | PathLike[str], channels: Mapping[str, NDArray[np.floating]], pixel_aspect: float = 1.0
) -> None:
    """Write a picture.

    Parameters
    ----------
    path : the file, in an existing folder; overwritten
    channels : by name ("R", "G", "B", "A", "Z") (H, W) float16 or float32, row 0 is the bottom row; colours
        are linear with the primaries of Rec. 709, premultiplied by alpha
    pixel_aspect : width of a pixel over its height

    Raises
    ------
    FormatError : the disk refuses
    """
    names = sorted(channels)
    pictures = [channels[name][::-1] for name in names]  # files begin with the top row
    height, width = pictures[0].shape
    blocks = range(0, height, LINES)
    with replacing(Path(path)) as temporary, temporary.open("wb") as stream:
        stream.write(_header(names, pictures, width, height, pixel_aspect))
        table = stream.tell()
        stream.write(bytes(8 * len(blocks)))
        offsets = []
        with ThreadPoolExecutor() as pool:  # zlib lets other threads run
            packed = pool.map(lambda y: _block([picture[y : y + LINES] for picture in pictures]), blocks)
            for y, data in zip(blocks, packed, strict=True):
                offsets.append(stream.tell())
                stream.write(struct.pack("<ii", y, len(data)) + data)
        stream.seek(table)
        stream.write(np.array(offsets, "<u8").tobytes())


def _header(names: list[str], pictures: list[NDArray], width: int, height: int, pixel_aspect: float) -> bytes:
    kinds = [KINDS[picture.dtype.name] for picture in pictures]
    channels = (
        name.encode() + b"\0" + struct.pack("<iB3xii", kind, 0, 1, 1)
        for name, kind in zip(names, kinds, strict=True)
    )
    window = struct.pack("<4i", 0, 0, width - 1, height - 1)
    attributes = (
        ("channels", "chlist", b"".join(channels) + b"\0"),
        ("chromaticities", "chromaticities", struct.pack("<8f", *REC709)),
        ("compression", "compression", ZIP),
        ("dataWindow", "box2i", window),
        ("displayWindow", "box2i", window),
        ("lineOrder", "lineOrder", INCREASING_Y),
        ("pixelAspectRatio", "float", struct.pack("<f", pixel_aspect)),
        ("screenWindowCenter", "v2f", struct.pack("<2f", 0, 0)),
        ("screenWindowWidth", "float", struct.pack("<f", 1)),
    )
    texts = (
        f"{name}\0{kind}\0".encode() + struct.pack("<i", len(value)) + value
        for name, kind, value in attributes
    )
    return struct.pack("<ii", MAGIC, VERSION) + b"".join(texts) + b"\0"


def _block(pictures: list[NDArray]) -> bytes:
    """Return the data of some lines: line by line, in each channel by channel."""
    parts = [np.ascontiguousarray(p, p.dtype.newbyteorder("<")).view(np.uint8) for p in pictures]
    plain = np.concatenate(parts, axis=1).ravel()
    # Low and high bytes apart, each as the difference from the one before: zlib finds more in that.
    split = np.concatenate([plain[::2], plain[1::2]])
    split[1:] -= split[:-1].copy() - np.uint8(128)
    data = zlib.compress(split.tobytes(), LEVEL)
    return data if len(data) < len(plain) else plain.tobytes()
