"""Layers that select nothing, which is told: whoever drew one would wait for weights."""

from __future__ import annotations

import bpy
import numpy as np

from ...core.selection.evaluate import CHUNK, LayerField
from ...core.selection.layer import SelectionLayer
from ..attributes import read_attribute, splats
from .layer_values import layer_title


def nothing_selected(object: bpy.types.Object, layer: SelectionLayer) -> tuple[str, ...]:
    """Return one sentence where a layer selects no splat of an object, none where it does."""
    points, field = read_attribute(splats(object), "position").astype(np.float64), LayerField(layer)
    for start in range(0, len(points), CHUNK):  # most layers select something in the first
        rows = points[start : start + CHUNK]
        if field.select(rows, layer.viewpoint.project(rows), gradients=False).fade.any():
            return ()
    return (
        f"The layer '{layer_title(layer)}' of '{layer.bone}' selects no splats; draw it over some, or check "
        "its points and its view",
    )
