"""The list of layers changed: reorder, duplicate, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bpy

from ..gaussianimate_addon.bind import applied_reason
from ..gaussianimate_addon.job import Reasoned
from ..gaussianimate_addon.subject import active_splats, linked_reason
from ..gaussianimate_addon.weights.edits import delete_layer, duplicate_layer, move_layer
from ..gaussianimate_addon.weights.layer_list import active_layer, layer_list, listed_layers, unreadable
from ..gaussianimate_addon.weights.layers import has_layers
from .reports import reported

ACTIONS = (
    ("UP", "Move Up", "Let the layer act before the one above it"),
    ("DOWN", "Move Down", "Let the layer act after the one below it"),
    ("DUPLICATE", "Duplicate", "Add a copy of the layer after it"),
    ("DELETE", "Delete", "Delete the layer"),
)


class NeedsLayer(Reasoned):
    """Mix-in for operators on the active layer of the list."""

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """There must be an active layer in splats of this file."""
        object = active_splats(context)
        if object is None or not has_layers(object):
            return "Select splats that are bound to an armature"
        if reason := linked_reason(object, object.data):
            return reason
        if problem := unreadable(object):
            return problem
        if not 0 <= layer_list(object).active < len(listed_layers(object)):
            return "Choose a layer in the list"
        return applied_reason(object)


class GAUSSIANIMATE_OT_edit_layers(NeedsLayer, bpy.types.Operator):
    """Change the list of layers"""

    bl_idname = "gaussianimate.edit_layers"
    bl_label = "Edit Layers"
    bl_options = {"REGISTER", "UNDO"}

    if TYPE_CHECKING:
        action: str
    else:
        action: bpy.props.EnumProperty(name="Action", items=ACTIONS)

    @classmethod
    def description(cls, context: bpy.types.Context, properties: GAUSSIANIMATE_OT_edit_layers) -> str:
        """Say what the button does."""
        return next(text for name, _, text in ACTIONS if name == properties.action)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Change the list; weights follow."""
        object = active_splats(context)
        assert object is not None
        return reported(self, lambda: self._edit(object))

    def _edit(self, object: bpy.types.Object) -> tuple[str, ...]:
        index, _ = active_layer(object)
        if self.action == "DUPLICATE":
            return duplicate_layer(object, index)
        if self.action == "DELETE":
            return delete_layer(object, index)
        return move_layer(object, index, 1 if self.action == "DOWN" else -1)
