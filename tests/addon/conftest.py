"""Fixtures of the Blender-side tests: an empty scene without any add-on, and a graphics device."""

import bpy
import pytest


@pytest.fixture
def scene():
    """An empty file at 24 frames a second; nothing of ours is registered."""
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    return bpy.context.scene


@pytest.fixture(scope="session")
def device():
    """The `gpu` module on whatever driver this machine has, a software one mostly."""
    import gpu

    try:
        gpu.init()
    except SystemError as error:
        pytest.skip(f"no graphics driver: {error}")
    return gpu
