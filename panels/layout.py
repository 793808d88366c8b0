"""Small pieces the panels share."""

from __future__ import annotations

import textwrap

import bpy

from ..gaussianimate_addon.job import Reasoned, running

CHARACTER = 6.5  # mean width of a letter at scale 1, pixels


class SidebarPanel:
    """Where all panels live."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "GaussiAnimate"


class SubPanel(SidebarPanel):
    """A step of the way, under the main panel."""

    bl_parent_id = "GAUSSIANIMATE_PT_main"


def wrapped(context: bpy.types.Context, layout: bpy.types.UILayout, text: str, icon: str = "NONE") -> None:
    """Write text in as many lines as the sidebar's width makes of it."""
    width = context.region.width / context.preferences.system.ui_scale - 60
    column = layout.column(align=True)
    column.scale_y = 0.8
    for line in text.splitlines():
        for i, part in enumerate(textwrap.wrap(line, max(int(width / CHARACTER), 16))):
            column.label(text=part, icon=icon if i == 0 else "BLANK1" if icon != "NONE" else "NONE")


def reason_below(context: bpy.types.Context, layout: bpy.types.UILayout, operator: type[Reasoned]) -> None:
    """Say why an operator's button is grey."""
    reason = None if running() else operator.unready(context)
    if reason is not None:
        wrapped(context, layout, reason, "INFO")
