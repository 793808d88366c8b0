"""Which optional libraries this Blender has."""

from __future__ import annotations

import importlib.util


def missing_library(name: str, purpose: str) -> str | None:
    """Return one sentence on how to get a library that is not installed, None where it is."""
    if importlib.util.find_spec(name) is not None:
        return None
    return f"{purpose} needs {name}: install the GaussiAnimate archive made for this system, which holds it"
