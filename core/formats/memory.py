"""How much memory there is, so that a huge file ends in a sentence and not in a killed program."""

from __future__ import annotations

import ctypes
import os
import sys
from os import PathLike
from pathlib import Path

from ..errors import FormatError

# The cloud itself and its copy as attributes in Blender.
COPIES = 2


def available_memory() -> int | None:
    """Return the bytes that can be had without swapping, None where the system does not say."""
    if sys.platform == "win32":
        return _available_on_windows()
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:  # macOS counts cached files as used: half of all memory is the better guess
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (ValueError, OSError):
        return None


def _available_on_windows() -> int | None:
    class MemoryStatus(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ulong), ("load", ctypes.c_ulong)] + [
            (name, ctypes.c_ulonglong)
            for name in ("total", "available", "page_total", "page", "virtual_total", "virtual", "extended")
        ]

    status = MemoryStatus(length=ctypes.sizeof(MemoryStatus))
    if not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):  # type: ignore[attr-defined]
        return None
    return status.available


def cloud_bytes(degree: int) -> int:
    """Return the bytes of one splat of a GaussianCloud with harmonics of that degree."""
    return 4 * (11 + 3 * (degree + 1) ** 2)


def require_memory(path: str | PathLike[str], count: int, bytes_each: int, copies: int = COPIES) -> None:
    """Raise FormatError when `count` splats of `bytes_each` bytes would not fit into memory."""
    needed, available = copies * count * bytes_each, available_memory()
    if available is not None and needed > available:
        raise FormatError(
            path,
            f"{count:,} splats need about {needed / 2**30:.1f} GiB of memory and {available / 2**30:.1f} GiB "
            "are free: reduce the splats (or the degree of their spherical harmonics) first",
        )
