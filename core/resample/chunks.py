"""Work on many splats, some at a time, on all cores: numpy lets go of the interpreter while it computes."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np
from numpy.typing import NDArray

from ..progress import Progress, no_progress

MOST_THREADS = 8
CELLS = 64  # along each side of a cloud


def together(positions: NDArray[np.floating]) -> NDArray[np.intp]:
    """Return an order (N,) in which positions (N, 3) that follow each other are near to each other.

    Along the Z-order curve of cells: a chunk of splats lies in few layers of a stack.
    """
    low = np.nanmin(positions, axis=0, initial=np.inf, where=np.isfinite(positions))
    size = np.nanmax(positions, axis=0, initial=-np.inf, where=np.isfinite(positions)) - low
    with np.errstate(all="ignore"):
        cells = np.nan_to_num((positions - low) / size.max(initial=0) * CELLS, nan=0, posinf=0, neginf=0)
    cells = np.clip(cells, 0, CELLS - 1).astype(np.uint32)
    code = np.zeros(len(positions), np.uint32)
    for bit in range(CELLS.bit_length() - 1):
        for axis in range(3):
            code |= ((cells[:, axis] >> bit) & 1) << (3 * bit + axis)
    return np.argsort(code, kind="stable")


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
