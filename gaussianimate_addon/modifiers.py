"""Find the add-on's geometry-nodes modifiers and reach their inputs."""

from __future__ import annotations

from typing import Any

import bpy

PLAYBACK, DEFORM, DISPLAY = "Playback", "Deform", "Display"
ROLE = "gaussianimate_role"  # custom property of the node groups: which of these they are


def find_modifier(object: bpy.types.Object, role: str) -> bpy.types.NodesModifier | None:
    """Return the object's modifier of that role, None where it has none."""
    modifier: Any
    for modifier in object.modifiers:
        if modifier.type == "NODES" and modifier.node_group and modifier.node_group.get(ROLE) == role:
            return modifier
    return None


def add_modifier(object: bpy.types.Object, role: str, group: bpy.types.NodeTree) -> bpy.types.NodesModifier:
    """Add a modifier that runs ``group``."""
    group[ROLE] = role
    modifier: Any = object.modifiers.new(role, "NODES")
    modifier.node_group = group
    return modifier


def remove_modifier(object: bpy.types.Object, role: str) -> None:
    """Remove the modifier of that role, if there is one, and its group where nobody else uses it."""
    modifier = find_modifier(object, role)
    if modifier is None:
        return
    group: Any = modifier.node_group
    for item in group.interface.items_tree:
        if item.item_type == "SOCKET" and item.in_out == "INPUT" and item.socket_type == "NodeSocketObject":
            set_input(modifier, item.name, None)  # Blender would count the armature's user for ever
    object.modifiers.remove(modifier)
    if group.users == 0:
        inner = {node.node_tree for node in group.nodes if node.bl_idname == "GeometryNodeGroup"}
        bpy.data.node_groups.remove(group)
        for tree in inner:
            if tree.users == 0:
                bpy.data.node_groups.remove(tree)


def get_input(modifier: bpy.types.NodesModifier | None, name: str) -> Any:
    """Return the value of a modifier input."""
    return input_property(modifier, name).value


def set_input(modifier: bpy.types.NodesModifier, name: str, value: Any) -> None:
    """Set the value of a modifier input and let the object be evaluated anew."""
    input_property(modifier, name).value = value
    modifier.id_data.update_tag()


def input_property(modifier: bpy.types.NodesModifier | None, name: str) -> Any:
    """Return what holds a modifier input; its ``value`` can be read, set, keyed and drawn."""
    item: Any
    holder: Any = modifier
    for item in holder.node_group.interface.items_tree:
        if item.item_type == "SOCKET" and item.in_out == "INPUT" and item.name == name:
            return getattr(holder.properties.inputs, item.identifier)
    raise KeyError(name)
