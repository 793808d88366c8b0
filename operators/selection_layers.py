"""What is done to the layers of the list: reorder, duplicate, delete, mirror, look at again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bpy

from ..core.errors import GaussiAnimateError
from ..gaussianimate_addon.deformer import deformer_armature
from ..gaussianimate_addon.job import Reasoned
from ..gaussianimate_addon.subject import active_splats, linked_reason
from ..gaussianimate_addon.weights.edits import (
    copy_bone_layers,
    delete_layer,
    duplicate_layer,
    move_layer,
)
from ..gaussianimate_addon.weights.layer_list import active_layer, layer_list, listed_layers, unreadable
from ..gaussianimate_addon.weights.layers import has_layers
from ..gaussianimate_addon.weights.reopen import show_view

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
        return None


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
        index, _ = active_layer(object)
        if self.action == "DUPLICATE":
            duplicate_layer(object, index)
        elif self.action == "DELETE":
            delete_layer(object, index)
        else:
            move_layer(object, index, 1 if self.action == "DOWN" else -1)
        return {"FINISHED"}


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
        to: bpy.props.StringProperty(name="To Bone", description="Empty: the bone of the other side")
        mirror: bpy.props.BoolProperty(
            name="Mirror",
            description="Mirror across the armature's X; off: select the same splats",
            default=True,
        )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Copy; weights follow."""
        object = active_splats(context)
        assert object is not None
        index, layer = active_layer(object)
        try:
            count, bone = copy_bone_layers(
                object, layer.bone, self.to, None if self.whole_bone else index, self.mirror
            )
        except GaussiAnimateError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        self.report({"INFO"}, f"{count} layer{'s'[: count != 1]} copied to '{bone}'")
        return {"FINISHED"}


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


class GAUSSIANIMATE_OT_toggle_rest(Reasoned, bpy.types.Operator):
    """Show the armature at rest, where weights are drawn, or posed again"""

    bl_idname = "gaussianimate.toggle_rest"
    bl_label = "Rest Position"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """There must be an armature of this file."""
        object = active_splats(context)
        armature = deformer_armature(object) if object is not None else None
        return "Bind the splats to an armature first" if armature is None else linked_reason(armature.data)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Switch."""
        object = active_splats(context)
        armature = deformer_armature(object) if object is not None else None
        assert armature is not None
        data: bpy.types.Armature = armature.data  # pyright: ignore[reportAssignmentType]
        data.pose_position = "POSE" if data.pose_position == "REST" else "REST"
        return {"FINISHED"}
