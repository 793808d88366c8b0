"""What renders of a view layer show, as far as switches of objects and collections decide it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import bpy

from ..point_cloud import is_splat_data


def rendering_names(layer: bpy.types.ViewLayer) -> set[str]:
    """Return the names of the objects that render by themselves: not those that only instances show."""
    return set(_names(layer.layer_collection))


def _names(layer: bpy.types.LayerCollection) -> set[str]:
    if layer.exclude or layer.collection.hide_render:
        return set()
    own = {object.name for object in layer.collection.objects if not object.hide_render}
    return own.union(*map(_names, layer.children))


def rendering_splats(layer: bpy.types.ViewLayer) -> list[bpy.types.Object]:
    """Return the splat objects that render by themselves, by name."""
    return [
        bpy.data.objects[n] for n in sorted(rendering_names(layer)) if is_splat_data(bpy.data.objects[n].data)
    ]


@contextmanager
def evaluated_as_rendered(layer: bpy.types.ViewLayer) -> Iterator[None]:
    """Show splat objects that render and are hidden in viewports: Blender does not evaluate these."""
    eyes, disabled = [], []
    try:
        for object in rendering_splats(layer):
            if object.hide_viewport:
                disabled.append(object.name)
                object.hide_viewport = False
            if object.hide_get(view_layer=layer):
                eyes.append(object.name)
                object.hide_set(False, view_layer=layer)
        yield
    finally:
        for name in eyes:
            bpy.data.objects[name].hide_set(True, view_layer=layer)
        for name in disabled:
            bpy.data.objects[name].hide_viewport = True


def left_out(layer: bpy.types.ViewLayer, depsgraph: bpy.types.Depsgraph) -> list[str]:
    """Return the names of splat objects that render, yet are in no collection that viewports show."""
    present = depsgraph.view_layer_eval.objects
    return [object.name for object in rendering_splats(layer) if object.name not in present]
