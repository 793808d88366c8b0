"""What an operator tells of what it did."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..core.errors import GaussiAnimateError


def reported(operator: Any, act: Callable[[], Iterable[str]]) -> set[str]:
    """Act, and report the notes that come back or the user's mistake; return the operator's answer."""
    try:
        notes = act()
    except GaussiAnimateError as error:
        operator.report({"ERROR"}, str(error))
        return {"CANCELLED"}
    for note in notes:
        operator.report({"INFO"}, note)
    return {"FINISHED"}
