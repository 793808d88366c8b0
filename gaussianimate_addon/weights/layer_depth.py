"""How deep layers reach: to the surface seen first, so far behind it, or through everything."""

from __future__ import annotations

from dataclasses import replace

import bpy

from ...core.selection.depth import FrontSurface
from ...core.selection.layer import SelectionLayer


def with_depth(front: FrontSurface | None, depth: float) -> FrontSurface | None:
    """Return the surface for a selection full so far behind it and gone at twice that; 0: as it was found."""
    return front if front is None or depth <= 0 else replace(front, thickness=depth, falloff=depth)


def layer_depth(layer: SelectionLayer) -> float:
    """Return how far behind the surface a layer is full, units of its view; 0 where it goes through."""
    return 0.0 if layer.front is None else layer.front.thickness


def let_through(object: bpy.types.Object, layer: SelectionLayer, through: bool) -> SelectionLayer:
    """Return the layer selecting through everything, or only the surface that is seen first in its view."""
    from .gestures import surface_below

    if through or layer.front is not None:
        return replace(layer, front=None if through else layer.front)
    return replace(layer, front=surface_below(object, layer.viewpoint, layer.shape, layer.feather))
