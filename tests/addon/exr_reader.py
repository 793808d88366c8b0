"""A reader of what `core.render.exr_writer` writes, by the description of the format, for its tests."""

import struct
import zlib

import numpy as np


def read_exr(path):
    """Return channels by name, (H, W), the bottom row first, and the raw attributes."""
    data = path.read_bytes()
    assert struct.unpack_from("<ii", data) == (20000630, 2)
    at, attributes = 8, {}
    while data[at]:
        end = data.index(b"\0", at)
        name = data[at:end].decode()
        at = data.index(b"\0", end + 1) + 1
        size = struct.unpack_from("<i", data, at)[0]
        attributes[name] = data[at + 4 : at + 4 + size]
        at += 4 + size
    kinds = _channels(attributes["channels"])
    x0, y0, x1, y1 = struct.unpack("<4i", attributes["dataWindow"])
    width, height = x1 - x0 + 1, y1 - y0 + 1
    offsets = np.frombuffer(data, "<u8", -(-height // 16), at + 1)
    rows = [line for offset in offsets.tolist() for line in _block(data, offset, kinds, width, height)]
    pixels = {name: [] for name in kinds}
    for line in rows:
        start = 0
        for name, kind in kinds.items():
            pixels[name].append(np.frombuffer(line, kind, width, start))
            start += width * np.dtype(kind).itemsize
    return {name: np.array(lines)[::-1] for name, lines in pixels.items()}, attributes


def _channels(text):
    kinds, at = {}, 0
    while text[at]:
        end = text.index(b"\0", at)
        kinds[text[at:end].decode()] = {1: "<f2", 2: "<f4"}[struct.unpack_from("<i", text, end + 1)[0]]
        at = end + 17
    return kinds


def _block(data, offset, kinds, width, height):
    y, size = struct.unpack_from("<ii", data, offset)
    lines = min(16, height - y)
    length = sum(np.dtype(kind).itemsize for kind in kinds.values()) * width
    packed = data[offset + 8 : offset + 8 + size]
    if size < lines * length:
        steps = np.frombuffer(zlib.decompress(packed), np.uint8).astype(np.int64)
        steps[1:] -= 128
        split = np.cumsum(steps).astype(np.uint8)
        plain = np.empty_like(split)
        half = (len(split) + 1) // 2
        plain[::2], plain[1::2] = split[:half], split[half:]
        packed = plain.tobytes()
    return [packed[i * length : (i + 1) * length] for i in range(lines)]
