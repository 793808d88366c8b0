"""The job runner in a window: progress, Esc, undo steps, and what may happen to the scene meanwhile."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).parent))
import driver
from driver import view, wait_until

driver.install()
jobs = import_module(f"{driver.PACKAGE}.gaussianimate_addon.job")
subject = import_module(f"{driver.PACKAGE}.gaussianimate_addon.subject")


class GUI_OT_probe(jobs.JobOperator, bpy.types.Operator):
    """Counts for a while, then moves the object it was started on."""

    bl_idname = "gui.probe"
    bl_label = "Probe"
    bl_options = {"REGISTER"}

    seconds: bpy.props.FloatProperty(default=2.0)
    stubborn: bpy.props.BoolProperty()
    filepath: bpy.props.StringProperty(subtype="FILE_PATH", options={"SKIP_SAVE"})
    browsing = False
    log: list = []

    def invoke(self, context, event):
        if not self.filepath:
            return self.run_modal(context)
        self.browsing = True
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def execute(self, context):
        return self.run_modal(context) if self.browsing else super().execute(context)

    def prepare(self, context):
        self._uid, self._name = context.object.session_uid, context.object.name
        return self.seconds, self.stubborn

    @staticmethod
    def work(state, progress):
        seconds, stubborn = state
        end = time.monotonic() + seconds
        if stubborn:
            time.sleep(seconds)
        while time.monotonic() < end:
            progress("Counting", 1 - (end - time.monotonic()) / seconds)
            time.sleep(0.05)
        GUI_OT_probe.log.append("worked")
        return seconds

    def apply(self, context, result):
        subject.find_object(self._uid, self._name).location.x += 1


bpy.utils.register_class(GUI_OT_probe)


def start(**settings):
    with bpy.context.temp_override(**view()):
        assert bpy.ops.gui.probe("INVOKE_DEFAULT", **settings) == {"RUNNING_MODAL"}


def idle():
    return jobs.running() is None


def cube_x():
    return bpy.data.objects["Cube"].location.x


drawn = []  # whether a job was running, at each drawing of the sidebar


def sidebar_is_idle():
    """Wait until the sidebar was drawn without the job; nobody touches the mouse meanwhile."""
    yield from wait_until(lambda: drawn and drawn[-1], 5, "the sidebar to take the progress off")


def script():
    getattr(bpy.types, "GAUSSIANIMATE_PT_main").append(lambda panel, context: drawn.append(idle()))  # noqa: B009
    yield from driver.show_tab()
    yield 0.5
    # To the end: one undo step, undone and redone.
    start(seconds=1.5)
    yield 0.8
    job = jobs.running()
    assert job is not None and job.stage == "Counting" and 0 < job.fraction < 1
    driver.picture("job_progress")
    assert not bpy.ops.gui.probe.poll(), "only one job at a time"
    yield from wait_until(idle, 5, "the job to end")
    yield 0.3
    assert cube_x() == 1
    with bpy.context.temp_override(**view()):
        bpy.ops.ed.undo()
    assert cube_x() == 0, "one undo step takes the result back"
    with bpy.context.temp_override(**view()):
        bpy.ops.ed.redo()
    assert cube_x() == 1

    # Esc, also when the work does not listen for a while.
    for stubborn in (False, True):
        start(seconds=4.0, stubborn=stubborn)
        yield 0.6
        yield from driver.escape(idle)
        yield from sidebar_is_idle()
        assert cube_x() == 1
    yield 4.5
    assert cube_x() == 1, "a cancelled result is dropped"

    # The object goes away meanwhile: the result is dropped, nothing else happens.
    start(seconds=1.0)
    yield 0.3
    bpy.data.objects.remove(bpy.data.objects["Cube"])
    yield from wait_until(idle, 3, "the job to end")
    yield 0.3
    driver.picture("job_object_gone")

    # Undo meanwhile: the object is found again by its number.
    with bpy.context.temp_override(**view()):
        bpy.ops.mesh.primitive_cube_add()
        bpy.ops.ed.undo_push(message="Add")
        bpy.ops.transform.translate(value=(0, 0, 3))
        bpy.ops.ed.undo_push(message="Move")
    start(seconds=1.0)
    yield 0.3
    with bpy.context.temp_override(**view()):
        bpy.ops.ed.undo()
    yield from wait_until(idle, 3, "the job to end")
    yield 0.3
    assert [round(c) for c in bpy.data.objects["Cube"].location] == [1, 0, 0]

    # Another file is loaded meanwhile: the job is cancelled.
    start(seconds=5.0)
    yield 0.3
    bpy.ops.wm.read_homefile(app_template="")
    yield 0.5
    assert idle() and cube_x() == 0

    # Through the file browser: still one undo step.
    with bpy.context.temp_override(**view()):
        bpy.ops.gui.probe("INVOKE_DEFAULT", seconds=0.5, filepath="/tmp/x")
    yield 1.0
    browser = next(
        (window, area)
        for window in bpy.context.window_manager.windows
        for area in window.screen.areas
        if area.type == "FILE_BROWSER"
    )
    with bpy.context.temp_override(window=browser[0], area=browser[1]):
        bpy.ops.file.execute()
    yield 0.2
    assert not idle(), "the job runs beside the user after the file browser"
    yield from wait_until(idle, 3, "the job to end")
    yield 0.3
    assert cube_x() == 1
    with bpy.context.temp_override(**view()):
        bpy.ops.ed.undo()
    assert cube_x() == 0

    # Disabling the add-on stops a job.
    start(seconds=5.0)
    yield 0.3
    bpy.ops.preferences.addon_disable(module=driver.PACKAGE)
    yield 0.5
    assert idle()


driver.run(script)
