"""Operators: one verb a file, over the bridges and the core."""
from __future__ import annotations
def register() -> None: pass
def unregister() -> None: pass
