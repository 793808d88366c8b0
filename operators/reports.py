"""What an operator tells of what it did."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..core.errors import GaussiAnimateError


def reported(
    operator: Any, act: Callable[[], Iterable[str]], warn: Callable[[], Iterable[str]] = tuple
) -> set[str]:
    """Act, and report the notes that come back or the user's mistake; return the operator's answer.

    warn : asked after all went well, for what the user had hardly meant
    """
    try:
        notes = act()
    except GaussiAnimateError as error:
        operator.report({"ERROR"}, str(error))
        return {"CANCELLED"}
    for note in notes:
        operator.report({"INFO"}, note)
    for warning in warn():
        operator.report({"WARNING"}, warning)
    return {"FINISHED"}
