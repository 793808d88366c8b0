"""Numbers in the names of a sequence's files: written, put in order, and told from the rest of a name."""

from __future__ import annotations

import re
from pathlib import Path

DIGITS = 4
# A minus that follows an underscore, as in walk_-0010, is a sign; any other is a separator (2024-05-01).
_NUMBER = r"(?:(?<=_)-)?\d+"
_NUMBERS = re.compile(f"({_NUMBER})")
_LAST_NUMBER = re.compile(rf"(.*?)({_NUMBER})(\D*)$")


def frame_name(stem: str, frame: int, last: int) -> str:
    """Return the name of a frame's file without its ending, ``stem_0012``; negative ones are ``stem_-0012``.

    Parameters
    ----------
    stem : beginning of the name
    frame : number of the frame
    last : number of the last frame of the sequence, for the padding
    """
    digits = max(DIGITS, len(str(abs(last))))
    return f"{stem}_{'-' * (frame < 0)}{abs(frame):0{digits}d}"


def natural_key(path: Path) -> tuple[tuple[int, int, str], ...]:
    """Sort key in which frame_2 comes before frame_10, whatever the padding, in folders as in names.

    A negative frame, frame_-3, comes before all others.
    """
    parts = _NUMBERS.split(path.as_posix().casefold())
    # What the pattern caught stands at the odd places.
    return tuple((0, int(part), part) if place % 2 else (1, 0, part) for place, part in enumerate(parts))


def is_sibling(name: str, other: str) -> bool:
    """Return whether two names differ in their last number at most, and have one."""
    parts = _LAST_NUMBER.match(name)
    if parts is None:
        return False
    return re.fullmatch(re.escape(parts[1]) + _NUMBER + re.escape(parts[3]), other) is not None
