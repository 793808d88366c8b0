"""The one job runner: a mix-in for every operator that takes over half a second.

An operator defines three steps::

    class GAUSSIANIMATE_OT_thing(JobOperator, bpy.types.Operator):
        def prepare(self, context): ...          # main thread: read bpy, return plain data
        @staticmethod
        def work(state, progress): ...           # worker thread: numpy only, never bpy
        def apply(self, context, result): ...    # main thread: write bpy, one undo step

``prepare`` may be a generator that yields ``(stage, fraction)`` between slices of work only the main
thread can do (sampling frames of the scene) and returns the state; its ``finally`` puts back what it
changed. In a window the job runs beside the user, with its stage in the status bar, and Esc cancels it;
in background mode and from scripts it blocks and prints its progress.

``bl_options`` of a job must not hold UNDO: Blender pushes an undo step when a file browser *starts* an
operator, which for a job is too early. The runner pushes the step itself, once the result is applied.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import bpy

from ..core.errors import Cancelled, GaussiAnimateError
from ..core.progress import Progress
from .worker import Job, join_leaving

INTERVAL = 0.1  # seconds between looks at the worker
SLICE = 0.05  # seconds of main-thread work between two redraws

_running: Job | None = None


class Reasoned:
    """Mix-in for operators whose buttons say why they are grey."""

    bl_label: str

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """Return one sentence on what is missing, or None where the operator can run."""
        return None

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Refuse with the reason of :meth:`unready` as the button's tooltip."""
        reason = cls.unready(context)
        if reason is not None:
            cls.poll_message_set(reason)  # pyright: ignore[reportAttributeAccessIssue]
        return reason is None


class JobOperator(Reasoned):
    """Mix-in that runs ``prepare``, ``work`` and ``apply``; see the module's text."""

    job_undo = True  # whether apply changes the scene, which takes an undo step
    job_cancelled = "cancelled, nothing was changed"

    def prepare(self, context: bpy.types.Context) -> Any:
        """Read the scene; return plain data, or yield progress and return it (main thread)."""

    @staticmethod
    def work(state: Any, progress: Progress) -> Any:
        """Compute (worker thread, no bpy)."""
        raise NotImplementedError

    def apply(self, context: bpy.types.Context, result: Any) -> None:
        """Write the result into the scene (main thread)."""
        raise NotImplementedError

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """As in :class:`Reasoned`; refuses too while another job runs."""
        if _running is not None:
            cls.poll_message_set(f"{_running.label} is running; press Esc to cancel it")  # pyright: ignore[reportAttributeAccessIssue]
            return False
        return super().poll(context)

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Run beside the user."""
        return self.run_modal(context)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Run now and block until done, as scripts and background mode need it."""
        return self._guarded(context, self._block)

    def run_modal(self, context: bpy.types.Context) -> set[str]:
        """Start the job beside the user where there is a window, else run it now."""
        if bpy.app.background or context.window is None:
            return self.execute(context)
        return self._guarded(context, self._start)

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Advance at each tick of the timer; Esc cancels."""
        if _running is None or _running is not self._job:  # ended from outside: the add-on is going away
            self._tidy(context)
            return {"CANCELLED"}
        if event.type == "ESC" and event.value == "PRESS":
            self.cancel(context)
            self.report({"INFO"}, f"{self.bl_label}: {self.job_cancelled}")  # pyright: ignore[reportAttributeAccessIssue]
            return {"CANCELLED"}
        if event.type != "TIMER":
            return {"RUNNING_MODAL"} if self._job.uses_scene else {"PASS_THROUGH"}
        return self._guarded(context, self._tick)

    def cancel(self, context: bpy.types.Context) -> None:
        """Stop the job; Blender calls this too when a file is loaded, the window closed or Blender quit."""
        self._end(context)

    # How it runs: each step may raise; _guarded turns that into a report and tidies up.

    def _start(self, context: bpy.types.Context) -> set[str]:
        global _running
        self._job = Job(self.bl_label, self.prepare(context), self.work)
        _running = self._job
        manager = context.window_manager
        self._timer = manager.event_timer_add(INTERVAL, window=context.window)
        manager.progress_begin(0, 100)
        manager.modal_handler_add(self)  # pyright: ignore[reportArgumentType]
        self._show(context)
        return {"RUNNING_MODAL"}

    def _tick(self, context: bpy.types.Context) -> set[str]:
        if self._job.done and self._drawn_done:
            result = self._job.result()
            self._tidy(context)
            self._apply(context, result)
            return {"FINISHED"}
        self._job.advance(SLICE)
        # Applying keeps the window waiting a moment: let it draw the reason first.
        self._drawn_done = self._job.done
        self._show(context)
        return {"RUNNING_MODAL"}

    def _block(self, context: bpy.types.Context) -> set[str]:
        global _running
        self._job = Job(self.bl_label, self.prepare(context), self.work)
        _running = self._job
        printed = ("", 0.0, 0.0)
        while not self._job.done:
            self._job.advance(0.25)
            printed = _print_progress(self.bl_label, self._job, printed)
        result = self._job.result()
        self._tidy(context)
        self._apply(context, result)
        return {"FINISHED"}

    def _apply(self, context: bpy.types.Context, result: Any) -> None:
        with nothing_half_done():
            self.apply(context, result)
        if self.job_undo and bpy.context.window is not None:
            bpy.ops.ed.undo_push(message=self.bl_label)

    def _guarded(self, context: bpy.types.Context, step: Callable[[bpy.types.Context], set[str]]) -> set[str]:
        try:
            return step(context)
        except Cancelled:
            message, level = f"{self.bl_label}: {self.job_cancelled}", "WARNING"
        except GaussiAnimateError as error:
            message, level = str(error), "ERROR"
        except MemoryError:
            message, level = f"{self.bl_label}: this computer has not enough free memory for that", "ERROR"
        except Exception as error:
            traceback.print_exception(error)
            problem = f"{type(error).__name__}: {error}".splitlines()[0]
            message, level = (
                f"{self.bl_label} failed ({problem}); the system console has the details",
                "ERROR",
            )
        except BaseException:  # Ctrl+C in a terminal
            self._end(context)
            raise
        self._end(context)
        self.report({level}, message)  # pyright: ignore[reportAttributeAccessIssue]
        return {"CANCELLED"}

    def _end(self, context: bpy.types.Context) -> None:
        if self._job is not None:
            self._job.cancel()
        self._tidy(context)

    _job: Any = None
    _timer: Any = None
    _drawn_done = False
    _shown = ""

    def _show(self, context: bpy.types.Context) -> None:
        stage = "Applying" if self._job.done else f"{self._job.stage} {self._job.fraction:.0%}"
        if stage == self._shown:  # each change costs a redraw
            return
        self._shown = stage
        context.workspace.status_text_set(f"{self.bl_label}: {stage}    (Esc cancels)")
        context.window_manager.progress_update(100 * self._job.fraction)
        _redraw_sidebars()

    def _tidy(self, context: bpy.types.Context) -> None:
        """Leave no timer, status text, cursor or lock behind; harmless when repeated."""
        global _running
        if _running is self._job:
            _running = None
        self._job = None  # Blender keeps operators for a while; the arrays need not stay
        if self._timer is None:
            return
        manager = bpy.context.window_manager
        manager.event_timer_remove(self._timer)
        self._timer = None
        manager.progress_end()
        for workspace in bpy.data.workspaces:
            workspace.status_text_set(None)
        _redraw_sidebars()  # where nothing in the scene changed, nothing else takes the progress off


def _redraw_sidebars() -> None:
    """Let the panels say what runs, and that it has ended."""
    for window in bpy.context.window_manager.windows:
        for area in window.screen.areas:
            for region in area.regions:
                if area.type == "VIEW_3D" and region.type == "UI":
                    region.tag_redraw()


def running() -> Job | None:
    """Return the job that is running, for panels and tests."""
    return _running


def stop_all(seconds: float = 2.0) -> None:
    """Cancel what is running and give its thread a moment to end (the add-on is going away)."""
    global _running
    if _running is not None:
        _running.cancel()
        _running = None
    join_leaving(seconds)


@contextmanager
def nothing_half_done() -> Iterator[None]:
    """Remove every data-block made inside the block when it fails."""
    before = {block.session_uid for block in _all_data()}
    try:
        yield
    except BaseException:
        bpy.data.batch_remove([block for block in _all_data() if block.session_uid not in before])
        raise


def _all_data() -> list[bpy.types.ID]:
    return list(bpy.data.user_map())


def _print_progress(label: str, job: Job, printed: tuple[str, float, float]) -> tuple[str, float, float]:
    """Print stage and fraction at a new stage and then every two seconds; return what was printed when."""
    stage, fraction, when = printed
    now = time.monotonic()
    if job.stage == stage and (now - when < 2.0 or job.fraction == fraction):
        return printed
    print(f"{label}: {job.stage} {job.fraction:.0%}", file=sys.stderr, flush=True)
    return job.stage, job.fraction, now
