"""State inside Blender: preferences, properties, data bridges, the deformer and the job runner."""

from __future__ import annotations


def register() -> None:
    """Register preferences and properties."""
    import bpy

    from . import properties
    from .drawer import lifecycle
    from .preferences import GaussianimatePreferences

    bpy.utils.register_class(GaussianimatePreferences)
    properties.register()
    lifecycle.register()


def unregister() -> None:
    """Stop a running job and undo :func:`register`."""
    import bpy

    from . import job, properties
    from .drawer import lifecycle
    from .preferences import GaussianimatePreferences

    lifecycle.unregister()
    job.stop_all()
    properties.unregister()
    bpy.utils.unregister_class(GaussianimatePreferences)
