"""One run of a job: slices of main-thread work, then a worker thread. Nothing here touches ``bpy``."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from typing import Any

from ..core.errors import Cancelled
from ..core.progress import Progress


class Worker(threading.Thread):
    """Runs ``work(state, progress)`` off the main thread and keeps what came of it.

    Parameters
    ----------
    work : the computation; numpy releases the GIL, so the window stays alive meanwhile
    state : whatever ``work`` needs, plain data only
    after : an earlier worker that was cancelled and may still be on its way out; waited for, so that
        two never share the memory

    Attributes
    ----------
    stage, fraction : the last progress report, "" before the first
    result, error : what ``work`` returned, or what it raised; read them once the thread has ended
    """

    def __init__(self, work: Callable[[Any, Progress], Any], state: Any, after: Worker | None) -> None:
        # A daemon: closing Blender must not wait for a computation nobody will see the end of.
        super().__init__(name="gaussianimate-job", daemon=True)
        self._work, self._state, self._after = work, state, after
        self._cancel = threading.Event()
        self.stage, self.fraction = "", 0.0
        self.result: Any = None
        self.error: BaseException | None = None

    def cancel(self) -> None:
        """Ask the computation to stop; it does at its next progress report."""
        self._cancel.set()

    def run(self) -> None:
        """Do the work (called by ``start``)."""
        try:
            if self._after is not None:
                self._after.join()
            self._check()
            self.result = self._work(self._state, self._progress)
        except BaseException as error:  # handed to the main thread, which reports or prints it
            self.error = error
        finally:
            self._after = self._state = None

    def _progress(self, stage: str, fraction: float) -> None:
        self.stage, self.fraction = stage, fraction
        self._check()

    def _check(self) -> None:
        if self._cancel.is_set():
            raise Cancelled("cancelled")


_leaving: Worker | None = None  # a cancelled worker that has not reached its next progress report yet


def join_leaving(seconds: float) -> None:
    """Give a cancelled worker a moment to end."""
    global _leaving
    if _leaving is not None:
        _leaving.join(seconds)
        _leaving = None


class Job:
    """One run of an operator's ``prepare`` and ``work``, advanced in slices from the main thread.

    ``done`` tells when :meth:`result` can be asked for; ``stage`` and ``fraction`` say where it is.
    """

    def __init__(self, label: str, prepared: Any, work: Callable[[Any, Progress], Any]) -> None:
        self.label, self._work = label, work
        self._steps: Generator[tuple[str, float], None, Any] | None = None
        self._worker: Worker | None = None
        self._error: BaseException | None = None
        self.stage, self.fraction = "Preparing", 0.0
        if isinstance(prepared, Generator):
            self._steps = prepared
        else:
            self._start(prepared)

    def _start(self, state: Any) -> None:
        self._worker = Worker(self._work, state, after=_leaving)
        self._worker.start()

    @property
    def uses_scene(self) -> bool:
        """Whether main-thread steps are under way, so that nothing else may change the scene."""
        return self._steps is not None

    @property
    def done(self) -> bool:
        """Whether the work has ended, well or not."""
        return self._error is not None or (self._worker is not None and not self._worker.is_alive())

    def advance(self, seconds: float) -> None:
        """Run main-thread steps, or wait for the worker, for at most about ``seconds``."""
        end = time.monotonic() + seconds
        while self._steps is not None and time.monotonic() < end:
            try:
                self.stage, self.fraction = next(self._steps)
            except StopIteration as stop:
                self._steps = None
                self._start(stop.value)
            except BaseException as error:  # told by result(), as the worker's own are
                self._steps, self._error = None, error
        if self._worker is not None:
            self._worker.join(max(end - time.monotonic(), 0.0))
            if self._worker.stage:
                self.stage, self.fraction = self._worker.stage, self._worker.fraction

    def result(self) -> Any:
        """Return what ``work`` returned, or raise what went wrong."""
        assert self.done
        if self._error is not None:
            raise self._error
        assert self._worker is not None
        if self._worker.error is not None:
            raise self._worker.error
        return self._worker.result

    def cancel(self) -> None:
        """Stop at once: put back what ``prepare`` changed and leave the worker to end by itself."""
        global _leaving
        if self._steps is not None:
            self._steps.close()
            self._steps = None
        if self._worker is not None:
            self._worker.cancel()
            if self._worker.is_alive():
                _leaving = self._worker
        self._error = Cancelled("cancelled")
