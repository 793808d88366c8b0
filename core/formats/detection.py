"""What a file is, told from its content; its name counts only where the format has no signature."""

from __future__ import annotations

import zipfile
from os import PathLike
from pathlib import Path

from ..errors import FormatError
from .ply_header import Header, describe_start, open_header
from .splat_layout import is_splat

SPLAT_KINDS = ("ply", "compressed.ply", "spz", "sog", "splat", "ksplat")
SPLAT_SUFFIXES = (".ply", ".spz", ".sog", ".splat", ".ksplat")
MESH_SUFFIXES = (".obj", ".glb")
UNSIGNED_SUFFIXES = (".splat", ".ksplat")


def detect(path: str | PathLike[str]) -> str:
    """Return the kind of a file: one of SPLAT_KINDS, "mesh" or "npz".

    Raises
    ------
    FormatError : the file cannot be opened, or is of no kind that can be read
    """
    path = Path(path)
    try:
        with path.open("rb") as stream:
            start = stream.read(64)
    except OSError as error:
        raise FormatError(path, f"the file cannot be opened ({error.strerror or error})") from None
    if start[:4] in (b"ply\n", b"ply\r"):
        return _kind_of_ply(open_header(path))
    if start.startswith(b"PK"):
        return _kind_of_zip(path, start)
    if start.startswith(b"NGSP") or (start.startswith(b"\x1f\x8b") and path.suffix.lower() == ".spz"):
        return "spz"
    if start.startswith(b"glTF"):
        return "mesh"
    return _kind_by_suffix(path, start)


def _kind_of_ply(header: Header) -> str:
    vertices, faces = header.element("vertex"), header.element("face")
    names = vertices.names if vertices else ()
    if "packed_position" in names:
        return "compressed.ply"
    if faces is not None and faces.count and not is_splat(names):
        return "mesh"
    return "ply"


def _kind_of_zip(path: Path, start: bytes) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except Exception as error:  # zipfile meets damage with a dozen exception types
        raise FormatError(path, f"the archive is damaged or cut short ({error})") from error
    if "meta.json" in names:
        return "sog"
    if names and all(name.endswith(".npy") for name in names):
        return "npz"
    raise FormatError(path, f"this is {describe_start(start)}")


def _kind_by_suffix(path: Path, start: bytes) -> str:
    suffix = path.suffix.lower()
    if not start or start.startswith((b"version https://git-lfs", b"\x1f\x8b")):
        raise FormatError(path, f"the file is {describe_start(start)}")
    if suffix in UNSIGNED_SUFFIXES:
        return suffix[1:]
    if suffix == ".obj":
        return "mesh"
    known = suffix in (*SPLAT_SUFFIXES, *MESH_SUFFIXES, ".npz")
    what = f"is not a {suffix[1:].upper()} file" if known else "is of no known kind"
    raise FormatError(path, f"the file {what} (it {describe_start(start)})")
