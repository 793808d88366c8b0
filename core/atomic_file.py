"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import FormatError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a file to write, beside ``path``; it takes that name once the block has ended well.

    Raises
    ------
    FormatError : the disk refuses
    """
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    try:
        try:
            yield temporary
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise FormatError(path, f"the file cannot be written ({error.strerror or error})") from error
