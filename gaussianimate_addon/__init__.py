"""State inside Blender: preferences, properties, data bridges, the deformer and the job runner."""

from __future__ import annotations


def register() -> None:
    """Register preferences and properties."""
    import bpy

    from . import motion_store, properties
    from .drawer import lifecycle
    from .preferences import GaussianimatePreferences

    bpy.utils.register_class(GaussianimatePreferences)
    properties.register()
    motion_store.register()
    lifecycle.register()


def unregister() -> None:
    """Stop a running job and undo :func:`register`."""
    import bpy

    from . import job, motion_store, properties
    from .drawer import lifecycle
    from .preferences import GaussianimatePreferences

    lifecycle.unregister()
    job.stop_all()
    motion_store.unregister()
    properties.unregister()
    bpy.utils.unregister_class(GaussianimatePreferences)
