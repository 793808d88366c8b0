"""Where splat objects are shown: they themselves, where they are visible, and their instances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import bpy
import numpy as np
from numpy.typing import NDArray

from .render_visibility import rendering_names

F64 = NDArray[np.float64]


def appearances(
    depsgraph: bpy.types.Depsgraph,
    object: bpy.types.Object,
    space: bpy.types.SpaceView3D | None,
    instanced: bool,
) -> list[F64]:
    """Return the world matrices (4, 4) of the object, where it is visible, and of its visible instances.

    Left out are those that no splat can stand in: scaled to a point, or not finite.

    Parameters
    ----------
    space : the viewport whose hiding, local view and collections count; None: what renders
    instanced : whether to look for instances, which takes long in scenes of many objects
    """
    worlds = (np.array(matrix, np.float64) for matrix in _matrices(depsgraph, object, space, instanced))
    return [world for world in worlds if np.isfinite(world).all() and world[:3, :3].any()]


def _matrices(
    depsgraph: bpy.types.Depsgraph,
    object: bpy.types.Object,
    space: bpy.types.SpaceView3D | None,
    instanced: bool,
) -> Iterator[Any]:
    evaluated = object.evaluated_get(depsgraph)
    is_shown = _shown_by_renders(depsgraph) if space is None else _shown_in(space)
    if evaluated.name in depsgraph.view_layer_eval.objects and is_shown(evaluated):
        yield evaluated.matrix_world
    if not instanced:
        return
    for instance in depsgraph.object_instances:
        if instance.is_instance and instance.object.original == object and is_shown(instance.parent):
            yield instance.matrix_world


def _shown_in(space: bpy.types.SpaceView3D) -> Callable[[Any], bool]:
    return lambda evaluated: evaluated.visible_in_viewport_get(space)


def _shown_by_renders(depsgraph: bpy.types.Depsgraph) -> Callable[[Any], bool]:
    names = rendering_names(cast(bpy.types.ViewLayer, depsgraph.view_layer))
    return lambda evaluated: evaluated.name in names


def may_be_instanced(object: bpy.types.Object) -> bool:
    """Whether a collection instance, a parent or geometry nodes may show the object once more."""
    parent = object.parent
    if parent is not None and parent.instance_type != "NONE":
        return True
    holders = {c for c in bpy.data.collections if object.name in c.all_objects}
    users = set().union(*bpy.data.user_map(subset=[object, *holders]).values())
    return any(
        may_instance(user) if isinstance(user, bpy.types.Object) else isinstance(user, bpy.types.NodeTree)
        for user in users - {object}
    )


def may_instance(object: bpy.types.Object) -> bool:
    """Whether the object may show others once more: its children, a collection, or what its nodes take."""
    return object.instance_type != "NONE" or any(m.type == "NODES" for m in object.modifiers)


def may_appear(object: bpy.types.Object, scene: bpy.types.Scene) -> bool:
    """Whether the object is in the scene, or may be shown there by an instance."""
    return scene.objects.get(object.name) == object or scene in object.users_scene or may_be_instanced(object)
