"""The rows of a PLY element as blocks of float32, whatever the file's own types and order are."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .ply_header import Element, Header

# Small enough that a block stays in the cache while its columns are taken apart.
BLOCK_ROWS = 4096


def element_blocks(
    stream: BinaryIO, header: Header, element: Element
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield (first row, block (n, P) float32) over all rows, columns as in ``element.properties``.

    Binary blocks share one buffer: copy what is to be kept before the next step.

    Raises
    ------
    FormatError : the body is shorter than the header promises, or holds text that is not a number
    """
    if element.has_lists:
        raise FormatError(header.path, f"element {element.name!r} has list properties, which splats have not")
    if header.order == "":
        return _ascii_blocks(stream, header, element)
    return _binary_blocks(stream, header, element)


def check_size(stream: BinaryIO, header: Header, element: Element) -> None:
    """Raise FormatError unless the file is long enough for all rows of `element`."""
    if header.order:
        first = _first_byte(stream, header, element)
        _check_size(stream, header, element, first)


def _check_size(stream: BinaryIO, header: Header, element: Element, first: int) -> None:
    expected, actual = first + element.count * element.row_bytes, _size(stream)
    if actual < expected:
        raise FormatError(
            header.path,
            f"the file is cut short: its {element.count:,} rows need {expected:,} bytes, it has {actual:,}",
        )


def _binary_blocks(
    stream: BinaryIO, header: Header, element: Element
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    first = _first_byte(stream, header, element)
    _check_size(stream, header, element, first)
    dtype = np.dtype([(p.name, header.order + p.type) for p in element.properties])
    plain = header.order == "<" and all(p.type == "f4" for p in element.properties)
    buffer = bytearray(BLOCK_ROWS * dtype.itemsize)
    stream.seek(first)
    for row in range(0, element.count, BLOCK_ROWS):
        rows = min(BLOCK_ROWS, element.count - row)
        view = memoryview(buffer)[: rows * dtype.itemsize]
        if stream.readinto(view) != len(view):  # type: ignore[attr-defined]
            raise FormatError(header.path, "the file became shorter while it was read")
        if plain:
            yield row, np.frombuffer(view, "<f4").reshape(rows, -1)
        else:
            table = np.frombuffer(view, dtype)
            yield row, np.stack([table[name].astype(np.float32) for name in element.names], axis=1)


def _ascii_blocks(
    stream: BinaryIO, header: Header, element: Element
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    stream.seek(header.body)
    lines = (line for line in stream.read().splitlines() if line.strip())
    for other in header.elements[: header.elements.index(element)]:
        for _ in range(other.count if other.properties else 0):
            if next(lines, None) is None:
                break
    columns = len(element.properties)
    for row in range(0, element.count, BLOCK_ROWS):
        rows = min(BLOCK_ROWS, element.count - row)
        text = [line for line, _ in zip(lines, range(rows), strict=False)]
        if len(text) < rows:
            found = row + len(text)
            raise FormatError(
                header.path,
                f"the file is cut short: its header promises {element.count:,} rows, it has {found:,}",
            )
        yield row, _parse_rows(text, columns, header)


def _parse_rows(text: list[bytes], columns: int, header: Header) -> NDArray[np.float32]:
    try:
        block = np.loadtxt(io.BytesIO(b"\n".join(text)), np.float64, comments=None, ndmin=2)
    except ValueError as error:
        raise FormatError(header.path, f"the ASCII body is damaged ({error})") from None
    if block.shape != (len(text), columns):
        raise FormatError(
            header.path, f"ASCII rows have {block.shape[1]} values where {columns} are expected"
        )
    with np.errstate(over="ignore"):  # beyond float32 is infinite, and dropped as such
        return block.astype(np.float32)


def _size(stream: BinaryIO) -> int:
    return stream.seek(0, os.SEEK_END)


def _first_byte(stream: BinaryIO, header: Header, element: Element) -> int:
    """Return the offset of the first row of `element`, walking over the elements before it."""
    offset, size = header.body, _size(stream)
    for other in header.elements[: header.elements.index(element)]:
        if not other.has_lists:
            offset += other.count * other.row_bytes
            continue
        for _ in range(other.count):
            offset = _skip_list_row(stream, header, other, offset)
            if offset > size:
                break
    return offset


def _skip_list_row(stream: BinaryIO, header: Header, element: Element, offset: int) -> int:
    for prop in element.properties:
        item = int(prop.type[1])
        if prop.length_type is None:
            offset += item
            continue
        stream.seek(offset)
        width = int(prop.length_type[1])
        raw = stream.read(width)
        if len(raw) < width:
            raise FormatError(header.path, f"the file is cut short within element {element.name!r}")
        (length,) = np.frombuffer(raw, header.order + prop.length_type)
        if not 0 <= length < 2**40:
            raise FormatError(header.path, f"a list of element {element.name!r} has the length {length}")
        offset += width + int(length) * item
    return offset
