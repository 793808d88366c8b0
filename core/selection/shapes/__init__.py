"""Shapes of selections on the screen, with exact signed distances."""

from __future__ import annotations

from typing import Any

from ...errors import SelectionError
from .base import Shape
from .ellipse import Ellipse
from .lasso import Lasso
from .rectangle import Rectangle
from .stroke import Stroke

KINDS: dict[str, type[Any]] = {shape.kind: shape for shape in (Rectangle, Ellipse, Lasso, Stroke)}


def shape_from_dict(data: dict[str, Any]) -> Shape:
    """Read what a shape's ``to_dict`` wrote.

    Raises
    ------
    SelectionError : the kind is not known, or values are missing or wrong
    """
    values = dict(data)
    kind = values.pop("kind", None)
    if kind not in KINDS:
        raise SelectionError(f"Selections have no shape {kind!r}; there are {', '.join(KINDS)}")
    try:
        return KINDS[kind](**values)
    except (TypeError, ValueError) as error:
        raise SelectionError(f"The {kind} of a selection cannot be read: {error}") from error
