"""Jobs that the file browser starts."""

from __future__ import annotations

from typing import cast

import bpy

from .job import JobOperator


class BrowsingJobOperator(JobOperator):
    """Mix-in of jobs on files: opens the browser first, runs beside the user after it, at once from a script.

    browser_options : names of the properties shown beside the browser
    """

    browser_options: tuple[str, ...] = ()
    browsing = False

    def open_browser(self, context: bpy.types.Context) -> set[str]:
        """Let the user choose; Blender calls `execute` afterwards."""
        self.browsing = True
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Run beside the user after the file browser, blocking from a script."""
        if self.browsing:
            self.browsing = False
            return self.run_modal(context)
        return super().execute(context)

    def draw(self, context: bpy.types.Context) -> None:
        """Options beside the file browser."""
        layout = cast(bpy.types.Operator, self).layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        for name in self.browser_options:
            layout.prop(self, name)
