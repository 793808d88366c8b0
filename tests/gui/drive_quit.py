"""Closing Blender while a job runs does not hang: the worker computes and, at the end, is left behind."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).parent))
import driver

driver.install()
jobs = import_module(f"{driver.PACKAGE}.gaussianimate_addon.job")


class GUI_OT_endless(jobs.JobOperator, bpy.types.Operator):
    """Computes until it is cancelled."""

    bl_idname = "gui.endless"
    bl_label = "Endless"

    @staticmethod
    def work(state, progress):
        import numpy as np

        while True:
            progress("Multiplying", 0.5)
            np.ones((400, 400)) @ np.ones((400, 400))


bpy.utils.register_class(GUI_OT_endless)


def script():
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.gui.endless("INVOKE_DEFAULT")
    yield 1.0
    assert jobs.running() is not None
    import faulthandler

    faulthandler.dump_traceback_later(20, exit=True)  # exit code 1
    print("quitting", time.strftime("%X"), flush=True)
    bpy.ops.wm.quit_blender()
    yield 60.0


driver.run(script)
