"""Where the command line writes: streams, progress, and what it quotes."""

from __future__ import annotations

import io
import os
import sys
import time

from .progress import Progress


def prepare_streams() -> None:
    """Have somewhere to write to, whatever is written: started without streams, Python has None there."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files may hold what a terminal has no letters for
        sys.stdout.reconfigure(errors="backslashreplace")


def printable(text: str) -> str:
    """Return a text that quotes a damaged file without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def console_progress() -> Progress:
    """Progress on stderr: one line a stage, on a terminal with its per cents rewritten in place."""
    live = sys.stderr.isatty()
    shown, at = "", 0.0

    def show(stage: str, fraction: float) -> None:
        nonlocal shown, at
        if stage == shown and (not live or time.monotonic() - at < 0.1):
            return
        start = "\r" if stage == shown else "\n" if live and shown else ""
        end = f" {100 * fraction:3.0f} %" if live else "\n"
        print(f"{start}{stage}", end=end, file=sys.stderr, flush=True)
        shown, at = stage, time.monotonic()

    return show
