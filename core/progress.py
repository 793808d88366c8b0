"""How long computations report where they are, and how they are cancelled."""

from __future__ import annotations

from collections.abc import Callable

# progress(stage, fraction): `stage` is a short name a user understands ("SSDR weights"), `fraction` the
# part of that stage that is done, 0..1. It may raise `errors.Cancelled`; core lets that pass. Long
# functions call it at least three times a second, so that Esc answers within a second.
Progress = Callable[[str, float], None]


def no_progress(stage: str, fraction: float) -> None:
    """Ignore progress; the default of every long function."""
