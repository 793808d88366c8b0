"""Fixtures of the Blender-side tests: an empty scene without any add-on, and a graphics device."""

import subprocess
import sys

import bpy
import pytest


@pytest.fixture
def scene():
    """An empty file at 24 frames a second; nothing of ours is registered."""
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    return bpy.context.scene


@pytest.fixture(scope="session")
def device():
    """The `gpu` module on whatever driver this machine has, a software one mostly.

    Tried in a process of its own first: without a driver Blender raises SystemError, or crashes.
    """
    tried = subprocess.run(
        [sys.executable, "-c", "import bpy, gpu; gpu.init()"], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        reason = (tried.stderr.strip().splitlines() or ["it crashed"])[-1]
        pytest.skip(f"gpu.init() found no graphics driver: {reason}")
    import gpu

    gpu.init()
    return gpu
