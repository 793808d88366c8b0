"""The worker thread of a job. It never touches ``bpy``."""

from __future__ import annotations

import threading
from collections.abc import Callable
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
