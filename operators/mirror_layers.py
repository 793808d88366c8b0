"""Layers copied to another bone, mirrored or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bpy

from ..gaussianimate_addon.subject import active_splats
from ..gaussianimate_addon.weights.edits import copy_bone_layers
from ..gaussianimate_addon.weights.layer_list import active_layer
from .edit_layers import NeedsLayer
from .reports import reported


class GAUSSIANIMATE_OT_mirror_layers(NeedsLayer, bpy.types.Operator):
    """Copy layers to the bone of the other side, named by .L and .R, mirrored across the armature's X; \
a bone in the middle takes the layer's mirror image itself"""

    bl_idname = "gaussianimate.mirror_layers"
    bl_label = "Mirror to Other Side"
    bl_options = {"REGISTER", "UNDO"}

    if TYPE_CHECKING:
        whole_bone: bool
        to: str
        mirror: bool
    else:
        whole_bone: bpy.props.BoolProperty(
            name="All Layers of the Bone",
            description="All layers, in place of those the other bone has; off: the active layer only",
        )
        to: bpy.props.StringProperty(
            name="To Bone", description="Empty: the bone of the other side", options={"SKIP_SAVE"}
        )
        mirror: bpy.props.BoolProperty(
            name="Mirror",
            description="Mirror across the armature's X; off: select the same splats",
            default=True,
            options={"SKIP_SAVE"},  # the buttons say Mirror
        )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Copy; weights follow."""
        object = active_splats(context)
        assert object is not None
        return reported(self, lambda: self._copy(object))

    def _copy(self, object: bpy.types.Object) -> tuple[str, ...]:
        index, layer = active_layer(object)
        count, bone, notes = copy_bone_layers(
            object, layer.bone, self.to, None if self.whole_bone else index, self.mirror
        )
        return f"{count} layer{'s'[: count != 1]} copied to '{bone}'", *notes
