"""The geometry-nodes deformer of an object: made, found, checked and mended.

It is native data (a modifier and a node group), so a rigged file plays and renders where this add-on is
absent. What it was bound to is stored as custom properties; see ``bind.py``.
"""

from __future__ import annotations

import bpy
import numpy as np

from ..core.deform.deform import diagonal
from ..core.errors import RigError
from .armature import SKIN_BONE, indexed_bones
from .attributes import has_attribute, read_attribute, splats
from .bind import bind_is_stale, rebind, remember_bind
from .deform_nodes import DeformNodes, build_deform_group, is_deform_group
from .modifiers import DEFORM, add_modifier, find_modifier, get_input, remove_modifier, set_input
from .point_cloud import cloud_sh_degree
from .skin_attributes import influence_count

__all__ = ["add_deformer", "bind_is_stale", "deformer", "deformer_armature", "rebind"]


def add_deformer(
    object: bpy.types.Object, armature: bpy.types.Object, bind: np.ndarray | None = None
) -> bpy.types.NodesModifier:
    """Bind the splats (which carry a skin) to the armature's skin bones where both objects stand now.

    A deformer the object had is replaced.

    Parameters
    ----------
    bind : (4, 4) object to armature space, where not as both stand now

    Raises
    ------
    RigError : no skin, no skin bones, or an object scaled to nothing.
    """
    data = splats(object)
    if not influence_count(data):
        raise RigError(f"'{object.name}' carries no skin weights; build a rig for it first")
    bones = indexed_bones(armature, SKIN_BONE)
    if not bones:
        raise RigError(f"'{armature.name}' has no skin bones; build a rig first")
    bind = bind_matrix(object, armature) if bind is None else bind
    settings = DeformNodes(
        bones=[bone.name for bone in bones],
        influences=influence_count(data),
        bind=bind,
        size=diagonal(read_attribute(data, "position")),
        sh_degree=cloud_sh_degree(data),
        with_radius=has_attribute(data, "radius"),
    )
    group = build_deform_group(f"{object.name} deform", settings)
    remove_modifier(object, DEFORM)
    group.name = f"{object.name} deform"  # free again where a deformer was replaced
    modifier = add_modifier(object, DEFORM, group)
    set_input(modifier, "Armature", armature)
    remember_bind(object, armature)
    return modifier


def bind_matrix(object: bpy.types.Object, armature: bpy.types.Object) -> np.ndarray:
    """Return M = H^-1 O (4, 4), object to armature space, of the world matrices as last evaluated."""
    try:
        return np.linalg.inv(np.array(armature.matrix_world, np.float64)) @ np.array(object.matrix_world)
    except np.linalg.LinAlgError:
        raise RigError(f"'{armature.name}' is scaled to nothing; give it a scale other than 0") from None


def deformer(object: bpy.types.Object) -> bpy.types.NodesModifier | None:
    """Return the object's deformer modifier, None where it has none, or one whose nodes were changed."""
    found = find_modifier(object, DEFORM)
    return found if found is not None and is_deform_group(found.node_group) else None


def deformer_armature(object: bpy.types.Object) -> bpy.types.Object | None:
    """Return the armature that deforms the object, None where there is none."""
    modifier = deformer(object)
    found = get_input(modifier, "Armature") if modifier else None
    return found if found is not None and found.type == "ARMATURE" else None
