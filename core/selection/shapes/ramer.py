"""Paths drawn by hand, without the points they do not need."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]


def kept_by_ramer(points: F64, tolerance: float) -> list[int]:
    """Return the rows (ascending) that approximate a path (N, D) within ``tolerance`` (Ramer 1972)."""
    kept, open_spans = {0, len(points) - 1}, [(0, len(points) - 1)]
    while open_spans:
        first, last = open_spans.pop()
        if last - first < 2:
            continue
        chord = points[last] - points[first]
        offsets = points[first + 1 : last] - points[first]
        t = np.clip(offsets @ chord / max(float(chord @ chord), 1e-300), 0, 1)
        away = np.linalg.norm(offsets - t[:, None] * chord, axis=1)
        worst = int(np.argmax(away))
        if away[worst] > tolerance:
            kept.add(first + 1 + worst)
            open_spans += [(first, first + 1 + worst), (first + 1 + worst, last)]
    return sorted(kept)
