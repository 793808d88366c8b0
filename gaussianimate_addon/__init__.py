"""State inside Blender: preferences, properties, data bridges, the deformer and the job runner."""

from __future__ import annotations


def register() -> None:
    """Register preferences and properties."""
    import bpy

    from . import motion_store, properties, retarget_map
    from .drawer import lifecycle
    from .preferences import GaussianimatePreferences
    from .resampling import settings as resample_settings
    from .secondary import handlers
    from .weights import handlers as weight_handlers

    bpy.utils.register_class(GaussianimatePreferences)
    properties.register()
    retarget_map.register()
    motion_store.register()
    handlers.register()
    weight_handlers.register()
    resample_settings.register()
    lifecycle.register()


def unregister() -> None:
    """Stop a running job and undo :func:`register`."""
    import bpy

    from . import job, motion_store, properties, retarget_map
    from .drawer import lifecycle
    from .preferences import GaussianimatePreferences
    from .resampling import settings as resample_settings
    from .secondary import handlers
    from .weights import handlers as weight_handlers

    lifecycle.unregister()
    job.stop_all()
    resample_settings.unregister()
    weight_handlers.unregister()
    handlers.unregister()
    motion_store.unregister()
    retarget_map.unregister()
    properties.unregister()
    bpy.utils.unregister_class(GaussianimatePreferences)
