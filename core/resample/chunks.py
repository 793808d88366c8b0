"""Work on many splats, some at a time, on all cores: numpy lets go of the interpreter while it computes."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed

from ..progress import Progress, no_progress

MOST_THREADS = 8


def each_chunk(
    work: Callable[[slice], None], count: int, size: int, progress: Progress = no_progress, stage: str = ""
) -> None:
    """Call ``work`` with slices that cover 0..count; it writes its results where no other slice does.

    Parameters
    ----------
    size : rows of a slice
    progress : told of every slice that is done, in this thread; what it raises ends the work
    """
    slices = [slice(start, min(start + size, count)) for start in range(0, count, size)]
    threads = min(os.cpu_count() or 1, MOST_THREADS, len(slices))
    if threads < 2:
        for done, part in enumerate(slices):
            progress(stage, done / len(slices))
            work(part)
        return
    with ThreadPoolExecutor(threads) as pool:
        tasks = [pool.submit(work, part) for part in slices]
        try:
            for done, task in enumerate(as_completed(tasks)):
                task.result()
                progress(stage, done / len(tasks))
        finally:
            for task in tasks:
                task.cancel()
