"""What went wrong where nobody asked for anything: in handlers and draw callbacks."""

from __future__ import annotations

import traceback
from pathlib import Path

from ..core.errors import GaussiAnimateError


def sentence(error: Exception) -> str:
    """Return what went wrong; where it is not the user's to mend, with what it takes to find it."""
    if isinstance(error, GaussiAnimateError):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})"
