"""Who draws the splats in viewports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bpy

from ..gaussianimate_addon.drawer.display import DRAWER, set_display
from ..gaussianimate_addon.drawer.viewport import retry
from ..gaussianimate_addon.job import Reasoned
from ..gaussianimate_addon.subject import active_splats, linked_reason


class GAUSSIANIMATE_OT_set_display(Reasoned, bpy.types.Operator):
    """Choose who draws the splats in viewports; renders always show them natively"""

    bl_idname = "gaussianimate.set_display"
    bl_label = "Set Display"
    bl_options = {"REGISTER", "UNDO"}

    if TYPE_CHECKING:
        display: str
    else:
        display: bpy.props.EnumProperty(
            name="Display",
            items=(
                ("DRAWER", "GaussiAnimate", "Splats are posed on the graphics card and follow bones at once"),
                ("NATIVE", "Native", "Blender draws the splats"),
            ),
        )

    @classmethod
    def description(cls, context: bpy.types.Context, properties: GAUSSIANIMATE_OT_set_display) -> str:
        """Say what the button does, not what the operator is."""
        if properties.display == DRAWER:
            return (
                "Pose splats on the graphics card: they follow bones at once. Renders do not change; "
                "Render Viewport Preview leaves these splats out, for previews use Render Splats"
            )
        return "Let Blender draw the splats in viewports, as posed by the modifier. Renders do not change"

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """Splats of this file must be active."""
        object = active_splats(context)
        return "Select Gaussian splats" if object is None else linked_reason(object)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Switch the display; the drawer tries again where it failed before."""
        set_display(active_splats(context), self.display)
        retry()
        return {"FINISHED"}
