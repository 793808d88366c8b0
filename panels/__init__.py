"""Panels: the sidebar tab "GaussiAnimate"."""

from __future__ import annotations


def _classes() -> tuple[type, ...]:
    from .animate_panel import GAUSSIANIMATE_PT_animate
    from .bake_panel import GAUSSIANIMATE_PT_bake
    from .display_panel import GAUSSIANIMATE_PT_display
    from .import_panel import GAUSSIANIMATE_PT_import
    from .main import GAUSSIANIMATE_PT_main
    from .resample_panel import GAUSSIANIMATE_PT_resample
    from .retarget_panel import GAUSSIANIMATE_PT_retarget, GAUSSIANIMATE_UL_bone_map
    from .rig_panel import GAUSSIANIMATE_PT_rig
    from .secondary_panel import GAUSSIANIMATE_PT_secondary
    from .weights_panel import GAUSSIANIMATE_PT_weights, GAUSSIANIMATE_UL_layers

    return (
        GAUSSIANIMATE_PT_main,
        GAUSSIANIMATE_PT_import,
        GAUSSIANIMATE_PT_rig,
        GAUSSIANIMATE_UL_layers,
        GAUSSIANIMATE_PT_weights,
        GAUSSIANIMATE_PT_animate,
        GAUSSIANIMATE_PT_secondary,
        GAUSSIANIMATE_UL_bone_map,
        GAUSSIANIMATE_PT_retarget,
        GAUSSIANIMATE_PT_resample,
        GAUSSIANIMATE_PT_bake,
        GAUSSIANIMATE_PT_display,
    )


def register() -> None:
    """Register the panels, the parent first."""
    import bpy

    from . import selection_tools

    for cls in _classes():
        bpy.utils.register_class(cls)
    selection_tools.register()


def unregister() -> None:
    """Undo :func:`register`."""
    import bpy

    from . import selection_tools

    selection_tools.unregister()
    for cls in reversed(_classes()):
        bpy.utils.unregister_class(cls)
