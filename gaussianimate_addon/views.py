"""The 3D viewports of all windows."""

from __future__ import annotations

from collections.abc import Callable

import bpy


def view_regions() -> list[bpy.types.Region]:
    """Return the regions in which 3D viewports show the scene."""
    return [
        region
        for window in bpy.context.window_manager.windows
        for area in window.screen.areas
        if area.type == "VIEW_3D"
        for region in area.regions
        if region.type == "WINDOW"
    ]


def redraw_views(only: Callable[[int], bool] = lambda region: True) -> None:
    """Let 3D viewports be drawn anew.

    Parameters
    ----------
    only : which regions, given their pointers
    """
    for region in view_regions():
        if only(region.as_pointer()):
            region.tag_redraw()


def redraw_sidebars(tab: str = "") -> None:
    """Let the sidebars of 3D viewports be drawn anew, or of those only that show a tab."""
    for window in bpy.context.window_manager.windows:
        for area in window.screen.areas:
            for region in area.regions:
                if area.type != "VIEW_3D" or region.type != "UI":
                    continue
                if not tab or (region.width > 1 and region.active_panel_category == tab):
                    region.tag_redraw()
