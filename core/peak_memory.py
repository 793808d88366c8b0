"""How much memory this process has needed."""

from __future__ import annotations

import sys


def peak_memory_mb() -> float | None:
    """Largest resident memory of this process so far, MB (2^20 bytes); None where unknown."""
    if sys.platform == "win32":
        return _peak_on_windows()
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def _peak_on_windows() -> float | None:
    import ctypes
    from ctypes import wintypes

    class Counters(ctypes.Structure):
        _fields_ = [("cb", wintypes.DWORD), ("PageFaultCount", wintypes.DWORD)] + [
            (name, ctypes.c_size_t)
            for name in (
                "PeakWorkingSetSize",
                "WorkingSetSize",
                "QuotaPeakPagedPoolUsage",
                "QuotaPagedPoolUsage",
                "QuotaPeakNonPagedPoolUsage",
                "QuotaNonPagedPoolUsage",
                "PagefileUsage",
                "PeakPagefileUsage",
            )
        ]

    counters = Counters(cb=ctypes.sizeof(Counters))
    windll = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined]
    windll.GetCurrentProcess.restype = wintypes.HANDLE
    query = windll.K32GetProcessMemoryInfo
    query.argtypes = [wintypes.HANDLE, ctypes.POINTER(Counters), wintypes.DWORD]
    if not query(windll.GetCurrentProcess(), ctypes.byref(counters), counters.cb):
        return None
    return counters.PeakWorkingSetSize / 2**20
