"""GPU objects kept from draw to draw, and their end: they must be gone before the GPU module of Blender is.

Python frees what modules hold only after Blender has shut its GPU down, which crashes the process on its way
out.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from functools import cache
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])

_releases: list[Callable[[], object]] = []


def kept(function: Function) -> Function:
    """Keep what a function returns, as `functools.cache` does, until `release`."""
    keeping = cache(function)
    released_by(keeping.cache_clear)
    return keeping  # pyright: ignore[reportReturnType]


def released_by(forget: Callable[[], object]) -> None:
    """Let `release` call ``forget``."""
    _releases.append(forget)


def release() -> None:
    """Forget all that is kept; it is made anew when needed."""
    for forget in _releases:
        forget()


atexit.register(release)  # before Blender's own, which was registered when bpy was imported
