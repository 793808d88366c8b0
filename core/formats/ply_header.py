"""The header of a PLY file: which elements it holds and how their rows are laid out.

The format is that of Turk, "The PLY Polygon File Format" (1994).
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from ..errors import FormatError

MAX_HEADER_BYTES = 1 << 20
BYTE_ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
TYPES = {
    **{"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"},
    **{"int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4"},
    **{"float": "f4", "double": "f8", "float32": "f4", "float64": "f8"},
}


@dataclass(frozen=True)
class Property:
    """A scalar column, or a list when `length_type` is set; types are numpy codes without byte order."""

    name: str
    type: str
    length_type: str | None = None


@dataclass(frozen=True)
class Element:
    """`count` rows of the same properties."""

    name: str
    count: int
    properties: tuple[Property, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the properties, in the order of the file."""
        return tuple(p.name for p in self.properties)

    @property
    def has_lists(self) -> bool:
        """Whether rows differ in size."""
        return any(p.length_type for p in self.properties)

    @property
    def row_bytes(self) -> int:
        """Bytes of a binary row without lists."""
        return sum(int(p.type[1]) for p in self.properties)


@dataclass(frozen=True)
class Header:
    """What a PLY file says about itself.

    path : the file, for messages
    order : "<" or ">" of a binary body, "" of an ASCII one
    elements : in the order of the body
    comments : texts of comment and obj_info lines
    body : offset of the first byte after the header
    """

    path: str | PathLike[str]
    order: str
    elements: tuple[Element, ...]
    comments: tuple[str, ...]
    body: int

    def element(self, name: str) -> Element | None:
        """Return the element of that name, None where the file has none."""
        return next((e for e in self.elements if e.name == name), None)


def describe_start(start: bytes) -> str:
    """Say in a few words what a file that is not of a known format seems to be."""
    if start.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer, not the file itself: run `git lfs pull` and import again"
    if not start:
        return "empty: 0 bytes"
    if start.startswith(b"PK"):
        return "a zip archive: unpack it and import what it holds"
    if start.startswith(b"\x1f\x8b"):
        return "a gzip archive: unpack it and import what it holds"
    return f"starts with {start[:12]!r}"


def read_header(stream: BinaryIO, path: str | PathLike[str]) -> Header:
    """Parse the header at the start of `stream`.

    Lines may end in LF, CRLF or CR; the first line decides, as binary data follow the last one.

    Raises
    ------
    FormatError : the stream is not a PLY, or its header is damaged
    """
    stream.seek(0)
    start = stream.read(MAX_HEADER_BYTES)
    if start[:4] not in (b"ply\n", b"ply\r"):
        raise FormatError(path, f"this is not a PLY file ({describe_start(start)})")
    newline = b"\n" if start[3:4] == b"\n" or start[4:5] == b"\n" else b"\r"
    lines, offset = [], 0
    while not lines or lines[-1] != "end_header":
        end = start.find(newline, offset)
        if end < 0:
            raise FormatError(path, "the PLY header has no end: the file is cut short or damaged")
        lines.append(start[offset:end].decode("utf-8", "replace").strip())
        offset = end + 1
    order, elements, comments = _parse_lines(lines[1:-1], path)
    return Header(path, order, elements, comments, offset)


def _parse_lines(
    lines: list[str], path: str | PathLike[str]
) -> tuple[str, tuple[Element, ...], tuple[str, ...]]:
    order: str | None = None
    elements: list[tuple[str, int, list[Property]]] = []
    comments = []
    for line in lines:
        try:
            match line.split():
                case []:
                    pass
                case ["comment" | "obj_info", *_]:
                    comments.append(line.partition(" ")[2].strip())
                case ["format", kind, _version]:
                    order = BYTE_ORDERS[kind]
                case ["element", name, count] if int(count) >= 0:
                    elements.append((name, int(count), []))
                case ["property", "list", length_type, item_type, name]:
                    elements[-1][2].append(Property(name, TYPES[item_type], TYPES[length_type]))
                case ["property", item_type, name]:
                    elements[-1][2].append(Property(name, TYPES[item_type]))
                case _:
                    raise ValueError
        except (ValueError, KeyError, IndexError):
            raise FormatError(path, f"the PLY header line {line[:60]!r} is not understood") from None
    if order is None:
        raise FormatError(path, "the PLY header has no valid format line")
    for name, _, properties in elements:
        names = [p.name for p in properties]
        if twice := next((n for n in names if names.count(n) > 1), None):
            raise FormatError(path, f"the PLY header names property {twice!r} of {name!r} twice")
    return order, tuple(Element(n, c, tuple(p)) for n, c, p in elements), tuple(comments)


def open_header(path: str | PathLike[str]) -> Header:
    """Read the header of the file at `path`."""
    with Path(path).open("rb") as stream:
        return read_header(stream, path)
