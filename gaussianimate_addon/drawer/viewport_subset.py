"""Geometry nodes that let only a few splats through in viewports: what the drawer poses on the graphics card
need not be posed by the deformer's nodes as well.

The few keep the object's bounding box about the pose. Renders get every splat, by the Is Viewport node.
"""

from __future__ import annotations

from typing import Any

import bpy

from ..modifiers import DISPLAY, ROLE, add_modifier, find_modifier
from ..node_builder import NodeBuilder

KEPT = 256  # splats at most twice as many; 200 of 100,000 come within 2 % of the bounding box


def thin_out(object: bpy.types.Object, on: bool) -> None:
    """Let the object's modifiers see few splats in viewports, or again all."""
    modifier = find_modifier(object, DISPLAY)
    if modifier is None and on:
        modifier = add_modifier(object, DISPLAY, _group())
        modifier.show_expanded = False
    if modifier is None:
        return
    if modifier.show_viewport != on:
        modifier.show_viewport = on
    modifiers: Any = object.modifiers
    if modifiers[0] != modifier:
        modifiers.move(modifiers.find(modifier.name), 0)


def _group() -> bpy.types.NodeTree:
    """Return the group, one for all objects of the file."""
    for group in bpy.data.node_groups:
        if group.get(ROLE) == DISPLAY and group.library is None:
            return group
    n = NodeBuilder("Viewport subset")
    n.input("Geometry", "Geometry")
    n.output("Geometry", "Geometry")
    geometry, _ = n.node("NodeGroupInput").outputs
    size = n.node("GeometryNodeAttributeDomainSize", geometry, component="POINTCLOUD")
    step = n.integer("MAXIMUM", n.integer("DIVIDE", size.outputs["Point Count"], KEPT), 1)
    place = n.integer("MODULO", n.one("GeometryNodeInputIndex"), step)
    dropped = n.one("FunctionNodeCompare", place, 0, data_type="INT", operation="NOT_EQUAL")
    few = n.one("GeometryNodeDeleteGeometry", geometry, dropped, domain="POINT")
    shown = n.one("GeometryNodeIsViewport")
    n.node("NodeGroupOutput", n.one("GeometryNodeSwitch", shown, geometry, few, input_type="GEOMETRY"))
    n.arrange()
    return n.tree
