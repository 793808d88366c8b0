"""Operators: one verb a file, over the bridges and the core."""

from __future__ import annotations


def _classes() -> tuple[type, ...]:
    from .add_capture import GAUSSIANIMATE_OT_add_capture
    from .add_selection_layer import GAUSSIANIMATE_OT_add_selection_layer
    from .bake_partmm import GAUSSIANIMATE_OT_bake_partmm
    from .bake_ply import GAUSSIANIMATE_OT_bake_ply
    from .bind import GAUSSIANIMATE_OT_apply_transform, GAUSSIANIMATE_OT_rebind
    from .bind_armature import GAUSSIANIMATE_OT_bind
    from .build_rig import GAUSSIANIMATE_OT_build_rig
    from .capture_from_object import GAUSSIANIMATE_OT_capture_from_object
    from .display import GAUSSIANIMATE_OT_set_display
    from .edit_layers import GAUSSIANIMATE_OT_edit_layers
    from .estimate_gradients import GAUSSIANIMATE_OT_estimate_gradients
    from .import_capture import GAUSSIANIMATE_OT_import_capture
    from .mirror_layers import GAUSSIANIMATE_OT_mirror_layers
    from .pose import GAUSSIANIMATE_OT_reset_pose, GAUSSIANIMATE_OT_set_motion
    from .redraw_selection_layer import GAUSSIANIMATE_OT_redraw_selection_layer
    from .refit_skeleton import GAUSSIANIMATE_OT_refit_skeleton
    from .render_splats import GAUSSIANIMATE_OT_render_splats
    from .resample import GAUSSIANIMATE_OT_resample, GAUSSIANIMATE_OT_restore_splats
    from .retarget_action import GAUSSIANIMATE_OT_retarget_action, GAUSSIANIMATE_OT_suggest_bone_map
    from .secondary_motion import GAUSSIANIMATE_OT_set_secondary_motion
    from .show_bent import GAUSSIANIMATE_OT_hide_bent, GAUSSIANIMATE_OT_show_bent
    from .toggle_rest import GAUSSIANIMATE_OT_toggle_rest
    from .view_selection_layer import GAUSSIANIMATE_OT_view_selection_layer

    return (
        GAUSSIANIMATE_OT_import_capture,
        GAUSSIANIMATE_OT_capture_from_object,
        GAUSSIANIMATE_OT_build_rig,
        GAUSSIANIMATE_OT_bind,
        GAUSSIANIMATE_OT_add_selection_layer,
        GAUSSIANIMATE_OT_edit_layers,
        GAUSSIANIMATE_OT_mirror_layers,
        GAUSSIANIMATE_OT_view_selection_layer,
        GAUSSIANIMATE_OT_redraw_selection_layer,
        GAUSSIANIMATE_OT_toggle_rest,
        GAUSSIANIMATE_OT_estimate_gradients,
        GAUSSIANIMATE_OT_refit_skeleton,
        GAUSSIANIMATE_OT_add_capture,
        GAUSSIANIMATE_OT_set_motion,
        GAUSSIANIMATE_OT_reset_pose,
        GAUSSIANIMATE_OT_set_secondary_motion,
        GAUSSIANIMATE_OT_bake_partmm,
        GAUSSIANIMATE_OT_suggest_bone_map,
        GAUSSIANIMATE_OT_retarget_action,
        GAUSSIANIMATE_OT_resample,
        GAUSSIANIMATE_OT_restore_splats,
        GAUSSIANIMATE_OT_show_bent,
        GAUSSIANIMATE_OT_hide_bent,
        GAUSSIANIMATE_OT_apply_transform,
        GAUSSIANIMATE_OT_rebind,
        GAUSSIANIMATE_OT_bake_ply,
        GAUSSIANIMATE_OT_render_splats,
        GAUSSIANIMATE_OT_set_display,
    )


def register() -> None:
    """Register the operators, menu entries and the file handler."""
    import bpy

    from . import menus

    for cls in _classes():
        bpy.utils.register_class(cls)
    menus.register()


def unregister() -> None:
    """Undo :func:`register`."""
    import bpy

    from . import menus
    from .selection_gesture import stop_drawing

    stop_drawing(bpy.context.scene)
    menus.unregister()
    for cls in reversed(_classes()):
        bpy.utils.unregister_class(cls)
