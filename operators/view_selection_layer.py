"""The viewport brought to where a layer was drawn from."""

from __future__ import annotations

import bpy

from ..core.errors import GaussiAnimateError
from ..gaussianimate_addon.subject import active_splats
from ..gaussianimate_addon.weights.layer_list import active_layer
from ..gaussianimate_addon.weights.reopen import show_view
from .edit_layers import NeedsLayer


class GAUSSIANIMATE_OT_view_selection_layer(NeedsLayer, bpy.types.Operator):
    """Look from where the layer was drawn"""

    bl_idname = "gaussianimate.view_selection_layer"
    bl_label = "Look from Its View"

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Turn the viewport."""
        object = active_splats(context)
        assert object is not None
        _, layer = active_layer(object)
        try:
            show_view(context, object, layer.viewpoint)
        except GaussiAnimateError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"FINISHED"}
