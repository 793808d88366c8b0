"""What a line of the layer list shows of its layer, and what it writes back.

Getters and setters are functions: Blender evaluates annotations where it finds no names within lambdas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import bpy

from ...core.errors import GaussiAnimateError, SelectionError
from ...core.selection.layer import SelectionLayer
from ..bind import applied_reason
from .layer_depth import layer_depth, let_through, with_depth
from .layers import REFUSED, has_layers, read_layers, write_layers

OPERATIONS = ("add", "subtract", "replace", "multiply", "mix")
CURVES = ("smoothstep", "linear")


def object_of(data: Any) -> bpy.types.Object | None:
    """Return an object that has these splats."""
    return next((object for object in bpy.data.objects if object.data == data), None)


def _read(line: Any) -> SelectionLayer | None:
    """Return the layer of a line, None where the document does not go that far."""
    object = object_of(line.id_data)
    if object is None or not has_layers(object):
        return None
    try:
        layers = read_layers(object).layers
    except SelectionError:
        return None  # the panel says so
    return layers[line.index] if 0 <= line.index < len(layers) else None


def _write(line: Any, change: Callable[[bpy.types.Object, SelectionLayer], dict[str, Any]]) -> None:
    """Give a layer the values that ``change`` returns; where that fails the panel says why (`REFUSED`).

    Blender lets no setter raise, so scripts read of it on the console.
    """
    object, layer = object_of(line.id_data), _read(line)
    if object is None or layer is None:
        return
    try:
        if (reason := applied_reason(object)) is not None:
            raise SelectionError(reason)
        values, stack = change(object, layer), read_layers(object)
        changed = stack.changed(line.index, **values)
        if changed != stack:
            write_layers(object, changed, evaluate=set(values) != {"name"})
    except GaussiAnimateError as error:
        REFUSED[line.id_data.session_uid] = str(error)
        print(f"GaussiAnimate: {error}")


def get_title(line: Any) -> str:
    """Return the name."""
    return layer_title(_read(line))


def set_title(line: Any, value: str) -> None:
    """Set the name."""
    _write(line, lambda _, layer: {"name": value})


def get_shown(line: Any) -> bool:
    """Return whether the layer acts."""
    layer = _read(line)
    return layer is not None and not layer.muted


def set_shown(line: Any, value: bool) -> None:
    """Set whether the layer acts."""
    _write(line, lambda _, layer: {"muted": not value})


def get_smoothness(line: Any) -> float:
    """Return the width of its fade, pixels."""
    layer = _read(line)
    return 0.0 if layer is None else layer.feather.width


def set_smoothness(line: Any, value: float) -> None:
    """Set the width of its fade, pixels."""
    _write(line, lambda _, layer: {"feather": replace(layer.feather, width=value)})


def get_strength(line: Any) -> float:
    """Return its strength."""
    layer = _read(line)
    return 0.0 if layer is None else layer.strength


def set_strength(line: Any, value: float) -> None:
    """Set its strength."""
    _write(line, lambda _, layer: {"strength": value})


def get_operation(line: Any) -> int:
    """Return its operation, by number."""
    layer = _read(line)
    return 0 if layer is None else OPERATIONS.index(layer.operation)


def set_operation(line: Any, value: int) -> None:
    """Set its operation, by number."""
    _write(line, lambda _, layer: {"operation": OPERATIONS[value]})


def get_curve(line: Any) -> int:
    """Return the curve of its fade, by number."""
    layer = _read(line)
    return 0 if layer is None else CURVES.index(layer.feather.curve)


def set_curve(line: Any, value: int) -> None:
    """Set the curve of its fade, by number."""
    _write(line, lambda _, layer: {"feather": replace(layer.feather, curve=CURVES[value])})


def get_through(line: Any) -> bool:
    """Return whether it selects through everything."""
    layer = _read(line)
    return layer is not None and layer.front is None


def set_through(line: Any, value: bool) -> None:
    """Set whether it selects through everything."""
    _write(line, lambda object, layer: {"front": let_through(object, layer, value).front})


def get_depth(line: Any) -> float:
    """Return how far behind the surface it reaches."""
    layer = _read(line)
    return 0.0 if layer is None else layer_depth(layer)


def set_depth(line: Any, value: float) -> None:
    """Set how far behind the surface it reaches."""
    _write(line, lambda _, layer: {"front": with_depth(layer.front, value)})


def layer_title(layer: SelectionLayer | None) -> str:
    """Return the name the user gave, else what was drawn."""
    if layer is None:
        return ""
    return layer.name or {"stroke": "Brush"}.get(layer.shape.kind, layer.shape.kind.title())
