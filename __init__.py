"""GaussiAnimate: turn 4D captures of Gaussian splats or meshes into posable native Blender rigs.

Blender imports this package as an extension and calls :func:`register`. Importing it stays free of
``bpy``, so that ``gaussianimate.core`` and the command line work without Blender.
"""

from __future__ import annotations

from types import ModuleType


def _rooms() -> tuple[ModuleType, ...]:
    """Return the Blender-facing subpackages, in registration order."""
    from . import gaussianimate_addon, operators, panels

    return gaussianimate_addon, operators, panels


def register() -> None:
    """Register preferences, properties, operators and panels with Blender."""
    for room in _rooms():
        room.register()


def unregister() -> None:
    """Undo :func:`register`, in reverse order."""
    for room in reversed(_rooms()):
        room.unregister()
