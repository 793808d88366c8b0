"""Fixtures of the Blender-side tests: an empty scene without any add-on."""

import bpy
import pytest


@pytest.fixture
def scene():
    """An empty file at 24 frames a second; nothing of ours is registered."""
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    return bpy.context.scene
